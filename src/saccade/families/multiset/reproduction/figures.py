"""Figures 3, 4 and 12 of Welleck et al. (2017, arXiv:1711.05165): how scenes are read, and where saliency falls short.

Figure 3 shows a most salient cell that several objects share, so that a glimpse there holds something of each; Figure 4
an object that stands out less than what is around it. Both are looked for among the first test scenes, and the captions
say how often they occur there. The paper shows one picture of each; here they are the clearest scenes found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from saccade import geometry
from saccade.families.multiset.batch import read_all
from saccade.families.multiset.data import SCENES, MultisetBatch, MultisetData, MultisetDataConfig
from saccade.metrics import cells_in_boxes, most_salient
from saccade.models.base import ImageOnlyModel
from saccade.predict import Predictor, load
from saccade.show.colours import PAPER
from saccade.show.contact_sheet import contact_sheet
from saccade.show.marks import Box
from saccade.show.overlay import overlay
from saccade.sighting import Sighting
from saccade.verbs.reproduction.drawing import Drawing
from saccade.zoo import shipped

LOOKED_AT, EXAMPLES = 256, 2
REACH = 0.5
"""How far around a cell its activations come from at least, in cells: convolutions see more than their own square."""
INK = 12
"""Pixels of an object within reach of a cell from which on it has a part in what the cell holds."""


def reading_figures(runs: Path, data: Sequence[str], titles: dict[str, str], device: str) -> list[Drawing]:
    """The figures of each generated set in ``data`` that has a reader: a run in ``runs``, else the shipped model."""
    drawings: list[Drawing] = []
    for name in data:
        model = _reader(runs, name) if name in SCENES else None
        if model is not None:
            drawings += _figures(_Read(load(model, device), name), name, titles[name])
    return drawings


def _reader(runs: Path, data: str) -> Path | str | None:
    """The first finished run of HSAL-RL on ``data``, or the name of the shipped model; None without either."""
    finished = (folder for folder in sorted(runs.glob(f"hsal-{data}-*")) if (folder / "model").is_dir())
    return next(finished, f"hsal-{data}" if f"hsal-{data}" in shipped() else None)


class _Read:
    """The first test scenes of a set as a model read them, side by side."""

    def __init__(self, predictor: Predictor, data: str) -> None:
        split = MultisetData(MultisetDataConfig(name=data), "test", predictor.device, allow_pack=True)
        self.predictor, self.glyphs = predictor, split.material
        self.batch: MultisetBatch = split.take(torch.arange(min(LOOKED_AT, len(split))))
        size = (self.batch.images.shape[-2], self.batch.images.shape[-1])
        model, wanted = predictor.model, predictor.facts.preprocessing
        if not isinstance(model, ImageOnlyModel) or wanted is None:
            raise TypeError(f"{type(model).__name__} does not read multisets")
        with torch.no_grad():
            raw, trace = read_all(model, self.batch.images, wanted.size)
        self.saliency: Tensor = raw["saliency.weights"][:, 0]  # S_1: (B,h,w)
        self.frame = trace.frame_on(trace.look("saliency"), size).to(self.saliency.device)  # (B,2,3)

    def seen(self, rows: Sequence[int]) -> list[Sighting]:
        """What the model says of some scenes."""
        return list(self.predictor.look_many([self.batch.images[row].cpu() for row in rows])) if rows else []

    def truth(self, row: int) -> list[str]:
        """What is on a scene."""
        words = self.predictor.facts.answers
        return sorted(words[label] for label in self.batch.labels[row].tolist() if label >= 0)


def around_peaks(saliency: Tensor, frame: Tensor) -> Tensor:
    """The square of pixels within reach of the most salient cell of each map (B,h,w), xyxy: (B,4).

    ``frame`` (B,2,3) leads from cells to pixels.
    """
    cell = most_salient(saliency.unsqueeze(1)).flatten()  # (B,)
    across = saliency.shape[-1]
    corner = torch.stack([cell % across, cell // across], dim=-1).double()  # (B,2) as (x, y)
    ends = (geometry.apply(frame, corner + end) for end in (-REACH, 1 + REACH))  # (B,2) each
    return torch.cat([*ends], dim=-1)


def crowding(squares: Tensor, masks: Tensor) -> Tensor:
    """Pixels of the object (B,M,H,W) that has the second most of them in its square (B,4), 0 if few: (B,)."""
    here = geometry.touched(squares, (masks.shape[-2], masks.shape[-1])).unsqueeze(1)  # (B,1,H,W)
    ink = (masks & here).flatten(2).sum(2)  # (B,M)
    second = ink.sort(dim=1, descending=True).values[:, 1]  # (B,)
    return torch.where(second >= INK, second, 0)


def hiding(saliency: Tensor, frame: Tensor, boxes: Tensor) -> Tensor:
    """How much the peak of a map (B,h,w) off all boxes (B,M,4) exceeds that in each: (B,M), NaN without a cell."""
    inside = cells_in_boxes(boxes, frame, (saliency.shape[-2], saliency.shape[-1]))  # (B,M,h,w)
    own = (saliency.unsqueeze(1) * inside).flatten(2).amax(2)  # (B,M)
    off = (saliency * ~inside.any(1)).flatten(1).amax(1, keepdim=True)  # (B,1)
    return torch.where(inside.flatten(2).any(2), off - own, torch.nan)


@dataclass(frozen=True)
class _Pair:
    """A scene with its saliency beside it, and what both are marked with."""

    row: int
    marks: Sequence[Box]


def _figures(read: _Read, data: str, title: str) -> list[Drawing]:
    source = f"{read.predictor.name}; the first {len(read.batch):,} test scenes of {read.glyphs}"
    found = [draw(read, data, title, source) for draw in (_crowded, _hidden, _readings)]
    return [drawing for drawing in found if drawing is not None]


def _crowded(read: _Read, data: str, title: str, source: str) -> Drawing | None:
    """Figure 3: the most salient cell holds something of several objects."""
    squares = around_peaks(read.saliency, read.frame)  # (B,4)
    shared = crowding(squares, read.batch.masks())  # (B,)
    found = int((shared > 0).sum())
    rows = shared.argsort(descending=True)[: min(found, EXAMPLES)].tolist()
    caption = (
        f"Figure 3, {title}. The most salient cell holds something of several objects: on {found:,} of "
        f"{len(read.batch):,} scenes two have {INK} pixels or more each in the outlined square, the cell and what is "
        "around it. Right the saliency map."
    )
    pairs = [_Pair(row, [Box(squares[row].tolist())]) for row in rows]
    return Drawing(f"hsal-figure3-{data}", caption, source, _sheet(read, pairs)) if pairs else None


def _hidden(read: _Read, data: str, title: str, source: str) -> Drawing | None:
    """Figure 4: an object stands out less than what is around it."""
    below = hiding(read.saliency, read.frame, read.batch.boxes)  # (B,M)
    objects, hidden = int((~below.isnan()).sum()), int((below > 0).sum())
    worst, which = below.nan_to_num(-torch.inf).max(1)  # (B,)
    rows = worst.argsort(descending=True)[: min(int((worst > 0).sum()), EXAMPLES)].tolist()
    caption = (
        f"Figure 4, {title}. An object (outlined) stands out less than what is around it: {hidden:,} of {objects:,} "
        "objects do. Right the saliency map."
    )
    pairs = [_Pair(row, [Box(read.batch.boxes[row, which[row]].tolist())]) for row in rows]
    return Drawing(f"hsal-figure4-{data}", caption, source, _sheet(read, pairs)) if pairs else None


def _sheet(read: _Read, pairs: Sequence[_Pair]) -> Image.Image:
    """Each scene beside its saliency, with what is there and what was read."""
    pictures: list[Image.Image | Tensor] = []
    captions: list[str] = []
    for pair, seen in zip(pairs, read.seen([pair.row for pair in pairs])):
        picture = read.batch.images[pair.row].cpu()
        pictures += [picture, overlay(picture, seen.trace.image_map("saliency")[0, 0], outline=pair.marks)]
        captions += [f"there is {{{', '.join(read.truth(pair.row))}}}", f"read as {seen.answer}"]
    marks = [each for pair in pairs for each in (pair.marks, ())]
    return contact_sheet(pictures, captions, marks=marks, columns=4, panel=300)


def _readings(read: _Read, data: str, title: str, source: str) -> Drawing:
    """Figure 12: a label that repeats, a full scene, and one that was misread."""
    rows = list(range(min(len(read.batch), LOOKED_AT // 4)))
    seen = dict(zip(rows, read.seen(rows)))
    right = [row for row in rows if sorted(word for word, _ in seen[row].labels or ()) == read.truth(row)]
    repeated = [row for row in right if len(set(read.truth(row))) < len(read.truth(row))]
    full = sorted(right, key=lambda row: -len(read.truth(row)))
    wrong = [row for row in rows if row not in right]
    chosen = list(dict.fromkeys([*repeated[:1], *full[:1], *wrong[:1]]))
    strips = []
    for row in chosen:
        boxes = [Box(box) for box in read.batch.boxes[row].tolist() if box[0] == box[0]]
        strips.append(seen[row].filmstrip(outline=boxes, panel=200))
    caption = (
        f"Figure 12, {title}. Scenes read label by label: {len(right):,} of {len(rows):,} rightly. The first of these "
        "with a label that repeats, the fullest, and the first that was misread; objects are outlined."
    )
    return Drawing(f"hsal-figure12-{data}", caption, source, _stacked(strips))


def _stacked(pictures: Sequence[Image.Image]) -> Image.Image:
    """Pictures one below the other."""
    sheet = Image.new("RGB", (max(each.width for each in pictures), sum(each.height for each in pictures)), PAPER)
    top = 0
    for each in pictures:
        sheet.paste(each, (0, top))
        top += each.height
    return sheet
