"""Readers of questions by name: your own tables (``csv:my.csv``), causal sets, CUB and Visual Genome.

**CUB-200-2011** (Wah, Branson, Welinder, Perona, Belongie, CNS-TR-2011-001): what colour is the crown? Body parts as
queries, colours as answers, part clicks as evidence; read in its official layout.

* The answer is a fact about the species: the colour that most people named for that part, where at least
  ``min_percent`` of them did. Single birds differ, so some labels are wrong by nature.
* The evidence is the click on the part (the mean over the annotators); ``box`` is the whole bird. A hidden part is not
  asked about, nor a wing where both show.
* Colours that are the answer for fewer than ``min_species`` species are left out.

With ``splits: pictures`` train is the official training list less a tenth of its pictures for val, test the official
test list; a model may recall the species without looking at the part. With ``species`` no species of test or val is in
train: 125 / 25 / 50 of the 200, in the order of a hash of their names.

**Visual Genome** (Krishna et al., arXiv:1602.07332, version 1.2): which attributes has the object asked for? It is the
task of Seo et al. (arXiv:1606.02393, §5.2): 488 classes and 274 attributes that appear more than 100 times, 45,393
images with 255,118 labels, 25,393 / 10,000 / 10,000 of them for train / val / test. What the paper leaves open:

* An object is named by its first name; names and attributes are compared in lower case, without outer spaces. An
  attribute appears once for each object that has it, a class once for each object of it that has any attribute; both
  are counted over the whole file.
* One question for each class in an image, with the labels of all its objects and the smallest box around them.
* Images are taken in the order of a hash of their numbers until there are ``images`` of them; val and test have 10,000
  / 45,393 each. The authors do not name their release, so counts may differ.

**Causal sets** of questions about scenes are written here too, in the folder of :mod:`saccade.data.causal.scenes`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from saccade.config import Seed, Within
from saccade.data.causal.photographs.format import PhotographPicture, PhotographSet
from saccade.data.causal.row_folder import CausalPicture
from saccade.data.causal.scene_writing import causal_batches, write_set
from saccade.data.causal.scenes import CausalFacts, CausalSet, read_causal_set
from saccade.data.examples import SPLITS, Split, hashed_share
from saccade.data.pictures.labelled import check_new
from saccade.data.scenes import LICENCE
from saccade.data.scenes.drawing import COLOURS, Drawing
from saccade.data.scenes.glyphs import GlyphPolicy, glyphs_for
from saccade.data.scenes.hashing import derive_seed
from saccade.data.scenes.layout import other_background
from saccade.data.tables.published import CubFiles
from saccade.data.tables.readers import Reader, own_readers
from saccade.data.tables.rows import Box, json_in, layout_of
from saccade.data.tables.table import ONE_QUESTION, Columns, Found, Row, Table, answers_in
from saccade.errors import DataError
from saccade.families.question.scenes import SceneDataConfig, SceneName
from saccade.progress import OnProgress, no_progress

# A picture, what is asked about it, and one answer or several.
COLUMNS = Columns(
    needed=("image", "label|labels"),
    optional=frozenset({"box", "point", "mask"}),
    labels=answers_in,
    asks=True,
    thing="question",
    word=("answer", "answers"),
    unknown="label",
)

# Parts with one colour, by the name in its attributes. The tail has two, so it is not asked about.
Part = Literal["back", "belly", "bill", "breast", "crown", "eye", "forehead", "leg", "nape", "throat", "wing"]
# Clicks of parts with another name.
CLICKS: dict[str, tuple[str, ...]] = {
    "bill": ("beak",),
    "eye": ("left eye", "right eye"),
    "leg": ("left leg", "right leg"),
    "wing": ("left wing", "right wing"),
}

_VAL_SPECIES, _TEST_SPECIES = 1 / 8, 1 / 4  # of all species


@dataclass(frozen=True)
class CubOptions:
    """Which questions about birds."""

    splits: Literal["pictures", "species"] = "pictures"  # New pictures of known species, or unseen species
    min_percent: Annotated[float, Within(0, 100)] = 50.0  # Least share of annotators who named the colour
    min_species: int = 5  # Colours of fewer species are left out
    # Not by default: eyes, black for 191 of 200 species, and legs, mostly seen as a pair.
    parts: tuple[Part, ...] = ("back", "belly", "bill", "breast", "crown", "forehead", "nape", "throat", "wing")


def read_cub(path: Path, options: CubOptions) -> Table:
    """The questions about the birds in ``path``, the folder CUB_200_2011 or its parent."""
    files = CubFiles(path)
    colours, reasons = _colours(files, options)
    split_of = files.splits if options.splits == "pictures" else _split_by_species(files)
    rows: list[Found] = []
    skipped: list[str] = []
    # Not in the order of the species, so that the first questions of a split are a fair sample of it.
    for number, name in sorted(files.images.items(), key=lambda item: hashed_share(item[1])):
        species, image = files.species_of[number], files.folder / "images" / name
        for part in options.parts:
            clicks = [files.clicks.get((number, click)) for click in CLICKS.get(part, (part,))]
            visible = [click for click in clicks if click is not None]
            if not image.is_file():
                skipped.append(f"no such picture: {image.name}, {part}")
            elif (species, part) not in colours:
                skipped.append(f"{reasons[species, part]}: {image.name}, {part}")
            elif len(visible) != 1:
                skipped.append(f"{'both sides show' if visible else 'not visible'}: {image.name}, {part}")
            else:
                place, group = (files.boxes[number], visible[0]), files.species[species]
                row = Row(image, (colours[species, part],), split_of[number], part, *place, group=group)
                rows.append((image.name, row))
    return Table.of(f"cub:{path}", rows, COLUMNS, skipped=skipped)


def _colours(files: CubFiles, options: CubOptions) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], str]]:
    """(species, part) → colour, and for other pairs why there is none."""
    colours: dict[tuple[str, str], str] = {}
    reasons: dict[tuple[str, str], str] = {}
    for species in files.species:
        for part in options.parts:
            percent = files.percent[species, part]
            first, second = sorted(percent, key=lambda colour: -percent[colour])[:2]
            if percent[first] < options.min_percent or percent[first] == percent[second]:
                reasons[species, part] = "no colour named by enough people"
            else:
                colours[species, part] = first
    wearers: dict[str, set[str]] = defaultdict(set)
    for (species, _), colour in colours.items():
        wearers[colour].add(species)
    rare = {key: colour for key, colour in colours.items() if len(wearers[colour]) < options.min_species}
    reasons |= {key: f"'{colour}' is the answer for too few species" for key, colour in rare.items()}
    return {key: colour for key, colour in colours.items() if key not in rare}, reasons


def _split_by_species(files: CubFiles) -> dict[str, str]:
    order = sorted(files.species, key=lambda species: hashed_share(files.species[species]))
    tests, vals = round(len(order) * _TEST_SPECIES), round(len(order) * _VAL_SPECIES)
    split = dict(zip(order, ["test"] * tests + ["val"] * vals + ["train"] * len(order)))
    return {number: split[species] for number, species in files.species_of.items()}


_PAPER_IMAGES, _PAPER_HELD_OUT = 45_393, 10_000
_FOLDERS = ("VG_100K", "VG_100K_2")


@dataclass(frozen=True)
class VisualGenomeOptions:
    """Which questions about Visual Genome."""

    min_count: Annotated[int, Within(0)] = 100  # Classes and attributes appear more often than this
    images: Annotated[int, Within(3)] = _PAPER_IMAGES  # Images used at most


class _Thing(NamedTuple):
    name: str
    attributes: tuple[str, ...]
    box: Box


def read_visual_genome(path: Path, options: VisualGenomeOptions) -> Table:
    """The paper's questions about the images in ``path``, the folder of the official files."""
    pictures = {file.stem: file for name in reversed(_FOLDERS) for file in (path / name).glob("*.jpg")}
    if not pictures:
        raise DataError(f"{path}: no pictures in {' or '.join(_FOLDERS)}; unpack images.zip and images2.zip there")
    with layout_of(path, "in the layout of version 1.2"):
        entries = json_in(path / "attributes.json")
        objects: dict[int, list[_Thing]] = {int(entry["image_id"]): list(_things(entry)) for entry in entries}
    every = [thing for things in objects.values() for thing in things]
    classes = _frequent((thing.name for thing in every), "class", options, path)
    attributes = _frequent((word for thing in every for word in thing.attributes), "attribute", options, path)
    questions_of: dict[int, dict[str, tuple[tuple[str, ...], Box]]] = {}
    skipped: list[str] = []
    for image, things in objects.items():
        questions = _questions(things, classes, attributes)
        if not questions:
            skipped.append(f"no frequent class with a frequent attribute: image {image}")
        elif str(image) not in pictures:
            skipped += [f"no such picture: image {image}, {name}" for name in questions]
        else:
            questions_of[image] = questions
    order = sorted(questions_of, key=lambda image: (hashed_share(str(image)), image))
    skipped += [f"more than the images asked for: image {image}" for image in order[options.images :]]
    order = order[: options.images]
    held_out = round(len(order) * _PAPER_HELD_OUT / _PAPER_IMAGES)
    splits = ["test"] * held_out + ["val"] * held_out + ["train"] * len(order)
    rows = [
        (f"image {image}", Row(pictures[str(image)], labels, split, name, box))
        for image, split in zip(order, splits)
        for name, (labels, box) in questions_of[image].items()
    ]
    return Table.of(f"vg:{path}", rows, COLUMNS, skipped=skipped, several=True)


def _things(entry: dict[str, Any]) -> Iterator[_Thing]:
    for thing in entry["attributes"]:
        name, *_ = [*filter(None, map(_word, thing["names"])), ""]
        attributes = tuple(dict.fromkeys(filter(None, map(_word, thing.get("attributes") or ()))))
        x, y, width, height = (float(thing[side]) for side in "xywh")
        if name and attributes and width > 0 and height > 0:
            yield _Thing(name, attributes, (x, y, x + width, y + height))


def _word(text: str) -> str:
    return text.strip().lower()


def _frequent(words: Iterable[str], what: str, options: VisualGenomeOptions, path: Path) -> set[str]:
    frequent = {word for word, count in Counter(words).items() if count > options.min_count}
    if not frequent:
        most = options.min_count
        raise DataError(f"{path}: no {what} appears more than {most} times; set data.options.min_count lower")
    return frequent


def _questions(things: list[_Thing], classes: set[str], attributes: set[str]) -> dict[str, tuple[tuple[str, ...], Box]]:
    """Class → (its attributes in this image, the box around its objects), for frequent ones."""
    questions: dict[str, tuple[tuple[str, ...], Box]] = {}
    for thing in things:
        labels = tuple(attribute for attribute in thing.attributes if attribute in attributes)
        if thing.name in classes and labels:
            before, one = questions.get(thing.name, ((), thing.box))
            two = thing.box
            around = (min(one[0], two[0]), min(one[1], two[1]), max(one[2], two[2]), max(one[3], two[3]))
            questions[thing.name] = tuple(dict.fromkeys((*before, *labels))), around
    return questions


_STREAM = 107  # of scenes, beside those of training, validation and test
_PHOTOGRAPHS = "; photographs: those of the background, see NOTICE for the ones that ship with saccade"


@dataclass(frozen=True)
class CausalConfig:
    """Which scenes a causal set has."""

    name: Literal["causal"] = "causal"
    scenes: SceneName = "mref"
    # The digits; by default the shipped ones, so that everyone can draw the set offline.
    glyphs: GlyphPolicy = "pack"
    backgrounds: str | None = None  # Folder of photographs for mbg
    drawing: Drawing = "blend"
    seed: Seed = 0


def write_causal(
    config: CausalConfig,
    split: Split,
    count: int,
    out: Path,
    *,
    start: int = 0,
    on_progress: OnProgress = no_progress,
) -> Path:
    """Writes the first ``count`` usable scenes from number ``start`` with their twins; returns the folder."""
    check_new(out)
    spec = SceneDataConfig(config.scenes, config.glyphs, config.backgrounds, config.drawing).spec(split)
    glyphs = glyphs_for(split, config.glyphs)
    facts = CausalFacts(
        scenes=config.scenes,
        split=split,
        seed=config.seed,
        start=start,
        glyphs=glyphs.name,
        drawing=config.drawing,
        background=spec.background.name,
        other_background=other_background(spec.background, config.drawing).name,
        count=count,
        last=start,
        digest="",
        licence=LICENCE + (_PHOTOGRAPHS if config.scenes == "mbg" else ""),
        size=spec.size,
        answers=COLOURS,
    )
    stream = derive_seed(config.seed, _STREAM, SPLITS.index(split))
    write_set(causal_batches(spec, glyphs, stream, start, count), facts, out, on_progress)
    return out


@dataclass(frozen=True)
class CausalOptions:
    """How a causal set is read as a table."""

    twins: bool = False  # Also ask the first question about twins where it has an answer
    check: bool = False  # Read all pictures first, and check their digests


def read_causal(folder: Path, options: CausalOptions) -> Table:
    """Both questions about each scene, with the target's pixels as evidence."""
    causal = read_causal_set(folder)
    if options.check:
        causal.verify()
    skipped: list[str] = []
    rows = list(_scene_rows(causal, options) if isinstance(causal, CausalSet) else _shown(causal, options, skipped))
    return Table.of(f"causal:{folder}", rows, COLUMNS, skipped=skipped)


def _scene_rows(causal: CausalSet, options: CausalOptions) -> Iterator[Found]:
    for scene in causal:
        questions: list[tuple[CausalPicture, str, str | None, int]] = [
            (scene, scene.question, scene.answer, scene.target),
            (scene, scene.other_question, scene.other_answer, scene.other),
        ]
        if options.twins:
            questions += [(twin, scene.question, twin.answer, scene.target) for twin in scene.twins.values()]
        for picture, query, answer, target in questions:
            if answer is not None:
                split, mask = causal.facts.split, picture.mask_path
                row = Row(picture.image_path, (answer,), split, query, mask=mask, mask_grey=target + 1, group=scene.id)
                yield f"scene {scene.id}", row


def _shown(causal: PhotographSet, options: CausalOptions, skipped: list[str]) -> Iterator[Found]:
    """The labels of photographs, all of them in the split test; those without one are skipped."""
    for photograph in causal:
        where, grey = f"photograph {photograph.id}", photograph.target + 1
        if photograph.label is None:
            skipped.append(f"no label: {where}")
        pictures: list[PhotographPicture] = [photograph, *(photograph.twins.values() if options.twins else ())]
        for picture in pictures:
            if picture.label is not None:
                path, answers, mask = picture.image_path, (picture.label,), picture.mask_path
                yield where, Row(path, answers, "test", ONE_QUESTION, mask=mask, mask_grey=grey, group=photograph.id)


READERS: dict[str, Reader] = {
    **own_readers(COLUMNS),
    "causal": Reader(read_causal, CausalOptions),
    "cub": Reader(read_cub, CubOptions),
    "vg": Reader(read_visual_genome, VisualGenomeOptions),
}
