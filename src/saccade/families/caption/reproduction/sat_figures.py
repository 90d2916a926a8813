"""Figures 2, 3, 5 and 6 to 15 of Xu et al. (2015, arXiv:1502.03044) with the captioners that ship.

The paper draws photographs of COCO. None ships, so there are two stand-ins, and every caption says which it is:
generated scenes, where soft and hard attention ship and what a word names is known; and photographs, with soft
attention alone, those that ship with saccade or the test pictures of ``--data READER:PATH``.

========= ==========================================================================================================
Figure 2   one scene word by word, soft above hard
Figure 3   words with the most attention on what they name, one a scene; the caption says the mean over all words
Figure 5   sentences that are wrong; the caption says how many there were
6 to 15    the first ten scenes with two digits, hard (a) and soft (b), chosen by nothing else
========= ==========================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from PIL import Image
from torch import Tensor

from saccade.data.scenes.photographs import SHIPPED
from saccade.data.tables.references import split_reference
from saccade.errors import ConfigError, DataError
from saccade.families.caption.batch import CaptionBatch
from saccade.families.caption.data import CaptionData, CaptionDataConfig
from saccade.families.caption.published import XU_2015
from saccade.families.caption.readers import CAPTION_READERS, read_captions
from saccade.predict import load
from saccade.show.colours import PAPER
from saccade.show.contact_sheet import contact_sheet
from saccade.show.marks import Box
from saccade.show.overlay import paint
from saccade.show.report import Section
from saccade.show.scaling import by_own_peak
from saccade.sighting import Sighting
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.page import reproduction_page, table_block
from saccade.verbs.reproduction.request import ALL, Request
from saccade.verbs.reproduction.result import Reproduction

SOFT, HARD, PHOTOS = "sat-soft-scenes", "sat-hard-scenes", "sat-soft-photos"
"""Shipped models."""
FULL, QUICK = 64, 24
"""Test scenes that are looked at."""
BEAM = 5
PAIRS = tuple(range(6, 16))
"""Numbers of the paper's figures with one picture each, said twice."""
AT_ONCE = 6
"""Examples in Figures 3 and 5."""
LEGEND = (
    "Scenes are generated (MNIST test digits that training never saw), photographs are not the paper's. The shipped "
    "captioner of photographs learned from Flickr8k: of what Flickr8k does not show, it says something wrong."
)


@dataclass(frozen=True)
class Said:
    """One scene, as both systems said it."""

    row: int
    truth: str
    soft: Sighting
    hard: Sighting

    @property
    def both(self) -> tuple[tuple[str, Sighting], ...]:
        """Soft, then hard."""
        return (("soft", self.soft), ("hard", self.hard))


@dataclass(frozen=True, eq=False)
class Word:
    """One word, with where the model looked and where the thing is."""

    word: str
    system: str
    seen: Sighting
    map: Tensor
    """(H,W)"""
    mask: Tensor
    """(H,W) bool: the pixels of what the word names."""

    @property
    def share(self) -> float:
        """How much of the attention lies on what the word names."""
        return float((self.map * self.mask).sum() / self.map.sum().clamp(min=1e-12))


def reproduce(request: Request) -> Reproduction:
    """What the shipped captioners say, and with a folder the figures."""
    if request.protocol != ALL:
        raise ConfigError(f"protocol '{request.protocol}': figures have none; leave it out")
    sources = [_checked(reference) for reference in request.data or ()]
    scenes, batch = _scenes(request)
    pictured = _photographs(sources, request)
    words = list(_words(scenes, batch))
    rows = [*_scene_rows(scenes), *((PHOTOS, name, "", seen.answer) for name, seen in pictured)]
    tables = [PlainTable("what was said", ("figure", "picture", "truth", "sentence"), rows), _share_table(words)]
    drawings: list[Drawing] = []
    page = None
    if request.folder is not None:
        request.progress("drawing", 0, 1)
        drawings = _drawings(scenes, words, pictured)
        page = reproduction_page(
            "Show, attend and tell: attention over time",
            f"{XU_2015.partition(',')[0]}, Figures 2, 3, 5 and 6 to 15, with the shipped models. {LEGEND}",
            [
                Section("Figures", "", [each.block() for each in drawings]),
                Section("What was said", "", [table_block(each) for each in tables]),
            ],
            again="From the shipped models; with the pictures of a data set by naming it.",
            commands=(
                "saccade reproduce sat-figures --out figures",
                "saccade reproduce sat-figures --data flickr8k:FOLDER --out figures",
            ),
        )
    cells = [{"figure": row[0], "picture": row[1], "truth": row[2], "said": row[3]} for row in rows]
    return request.result(tables, cells, LEGEND, drawings=drawings, page=page)


def _checked(reference: str) -> str:
    """``reference``, if it names a reader of captions and a path."""
    try:
        split_reference(reference, CAPTION_READERS)
    except DataError as error:
        raise ConfigError(f"data '{reference}': {error}") from error
    return reference


def _scenes(request: Request) -> tuple[list[Said], CaptionBatch]:
    """The first test scenes, each said by both systems."""
    count = request.limit or (QUICK if request.quick else FULL)
    data = CaptionData(CaptionDataConfig(), "test", allow_pack=True)
    batch = data.pictures(torch.arange(count))
    seen = []
    for done, name in enumerate((SOFT, HARD)):
        request.progress("saying scenes", done, 2)
        seen.append(list(load(name, request.device).look_many(list(batch.images.cpu()))))
    truths = [data.vocabulary.decode(words) for words in batch.words.tolist()]
    return [Said(row, *each) for row, each in enumerate(zip(truths, *seen))], batch


def _photographs(sources: Sequence[str], request: Request) -> list[tuple[str, Sighting]]:
    """Photographs by name, each with what soft attention says of it."""
    files = [row.image for each in sources for row in read_captions(each, {}).rows if row.split == "test"]
    chosen = files[: len(PAIRS)] if sources else sorted(SHIPPED.rglob("*.jpg"))
    chosen = chosen[:1] if request.quick else chosen
    request.progress("saying photographs", 0, 1)
    return list(zip((file.name for file in chosen), load(PHOTOS, request.device).look_many(chosen, beam=BEAM)))


def _words(scenes: Sequence[Said], batch: CaptionBatch) -> Iterator[Word]:
    """Every word of a right sentence that names something on its scene."""
    masks = batch.word_masks()
    if masks is None:
        return
    for said in scenes:
        for system, seen in said.both:
            if seen.answer != said.truth:
                continue
            look = seen.trace.look("word")
            for step, (word, _) in enumerate(seen.labels or ()):
                mask = masks[said.row, step].cpu()
                if mask.any():
                    # a mask has two sides
                    laid = seen.trace.image_map(look.step(step), tuple(mask.shape))  # type: ignore[arg-type]
                    yield Word(word, system, seen, laid.reshape(mask.shape), mask)


def _pairs(scenes: Sequence[Said]) -> list[Said]:
    """The first ten scenes of two digits: their sentences have two nouns, and more words."""
    longest = max((len(said.truth.split()) for said in scenes), default=0)
    return [said for said in scenes if len(said.truth.split()) >= longest - 1][: len(PAIRS)]


def _scene_rows(scenes: Sequence[Said]) -> list[tuple[str, str, str, str]]:
    rows = []
    for number, said in zip(PAIRS, _pairs(scenes)):
        for letter, seen in (("a, hard", said.hard), ("b, soft", said.soft)):
            rows.append((f"{number} {letter}", f"scene {said.row}", said.truth, seen.answer))
    return rows


def _share_table(words: Sequence[Word]) -> PlainTable:
    """Attention on what a word names, by system; that is what Figure 3 picks from."""
    rows = []
    for system in ("soft", "hard"):
        held = [word for word in words if word.system == system]
        if held:
            even = fmean(float(word.mask.float().mean()) for word in held)
            mean = fmean(word.share for word in held)
            rows.append((system, f"{100 * mean:.1f}", f"{100 * even:.1f}", str(len(held))))
    return PlainTable(
        "attention on what a word names, %, right sentences only", ("system", "mean", "even map", "words"), rows
    )


def _drawings(scenes: Sequence[Said], words: Sequence[Word], pictured: Sequence[tuple[str, Sighting]]) -> list[Drawing]:
    found: list[Drawing] = []
    pairs = _pairs(scenes)
    right = next((said for said in pairs if all(seen.answer == said.truth for _, seen in said.both)), None)
    scene = "a generated scene, the shipped models"
    if right is not None:
        found.append(
            Drawing(
                "figure-02",
                f"Figure 2. “{right.truth}”: soft above, hard below.",
                scene,
                _stacked(right, soft_first=True),
            )
        )
    if words:
        found.append(_objects(words))
    found += _mistakes(scenes)
    for number, said in zip(PAIRS, pairs):
        caption = f"Figure {number}. (a) hard: “{said.hard.answer}”; (b) soft: “{said.soft.answer}”."
        found.append(Drawing(f"figure-{number:02d}", caption, scene, _stacked(said, soft_first=False)))
    for number, (name, seen) in enumerate(pictured, 1):
        caption = f"A photograph, soft attention: “{seen.answer}”."
        source = f"{name}, {PHOTOS}, beam {BEAM}; not a picture of the paper"
        found.append(Drawing(f"photograph-{number:02d}", caption, source, seen.filmstrip(panel=150)))
    return found


def _objects(words: Sequence[Word]) -> Drawing:
    """Figure 3: of each scene the word with the most attention on what it names, those with the most of all."""
    best: dict[int, Word] = {}
    for word in words:
        held = best.get(id(word.seen))
        if held is None or word.share > held.share:
            best[id(word.seen)] = word
    chosen = sorted(best.values(), key=lambda word: -word.share)[:AT_ONCE]
    pictures = [paint(_picture(word.seen), by_own_peak(word.map.numpy()).values, 0.85) for word in chosen]
    captions = [f"“{word.word}”, {word.system}: {word.share:.0%} on it" for word in chosen]
    marks = [[_box(word.mask)] for word in chosen]
    return Drawing(
        "figure-03",
        f"Figure 3. The words with the most attention on what they name; over all {len(words)} words the mean is "
        f"{fmean(word.share for word in words):.0%}.",
        "generated scenes, right sentences, the shipped models",
        contact_sheet(pictures, captions, marks=marks, columns=3),
    )


def _mistakes(scenes: Sequence[Said]) -> list[Drawing]:
    """Figure 5: sentences that are wrong, as many as there is room for."""
    wrong = [(said, system, seen) for said in scenes for system, seen in said.both if seen.answer != said.truth]
    if not wrong:
        return []
    strips = [seen.filmstrip(panel=110) for _, _, seen in wrong[:AT_ONCE]]
    told = "; ".join(f"“{said.truth}” ({system})" for said, system, _ in wrong[:AT_ONCE])
    counts = f"{len(wrong)} of {2 * len(scenes)} sentences are wrong"
    return [
        Drawing(
            "figure-05", f"Figure 5. {counts}; the truth, from the top: {told}.", "generated scenes", _under(strips)
        )
    ]


def _picture(seen: Sighting) -> Image.Image:
    picture: Image.Image = seen.picture.image
    return picture


def _stacked(said: Said, *, soft_first: bool) -> Image.Image:
    order = (said.soft, said.hard) if soft_first else (said.hard, said.soft)
    return _under([seen.filmstrip(panel=130) for seen in order])


def _under(pictures: Sequence[Image.Image]) -> Image.Image:
    """Pictures under one another."""
    sheet = Image.new("RGB", (max(each.width for each in pictures), sum(each.height for each in pictures)), PAPER)
    top = 0
    for each in pictures:
        sheet.paste(each, (0, top))
        top += each.height
    return sheet


def _box(mask: Tensor) -> Box:
    y, x = mask.nonzero(as_tuple=True)
    return Box([int(x.min()), int(y.min()), int(x.max()) + 1, int(y.max()) + 1])
