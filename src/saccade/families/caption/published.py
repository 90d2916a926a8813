"""Readers of caption data: the layouts of COCO, Flickr and Karpathy's splits, and your own tables.

Karpathy's splits of Flickr8k, Flickr30k and COCO: one JSON file with every picture, its split and its captions.

Karpathy and Fei-Fei, "Deep Visual-Semantic Alignments for Generating Image Descriptions" (arXiv:1412.2306): an object
with ``images``, a list of ``{filename, filepath, split, sentences: [{raw, tokens}]}``.

COCO captions: Karpathy's splits, or the official annotations.

Chen et al., "Microsoft COCO Captions" (arXiv:1504.00325). In the folder, or in ``annotations`` below it:

* ``dataset_coco.json`` of Karpathy, the splits of the published numbers: 82,783 train, 5,000 val and 5,000 test, and
  30,504 ``restval``, which train only if the option asks, since the paper's 82,783 training pictures have none of them;
* else ``captions_train2014.json`` and ``captions_val2014.json`` (or 2017). Captions of the official test pictures are
  not public, so of the val pictures 5,000 are val and 5,000 test (or half of them each, where there are fewer than
  10,000), by a hash of their names; the rest are ``restval``. Not comparable with published numbers.

Pictures are in ``train2014`` and ``val2014``, in the folder or in ``images`` below it.

Flickr8k and Flickr30k: photographs of people and animals, five captions each, in their official layouts.

Hodosh, Young and Hockenmaier, "Framing Image Description as a Ranking Task" (JAIR 2013); Young, Lai, Hodosh and
Hockenmaier, "From Image Descriptions to Visual Denotations" (TACL 2014). Below one folder:

* captions: ``Flickr8k.token.txt``, ``results_20130124.token``: lines ``PICTURE#NUMBER ⇥ CAPTION``;
* splits: ``Flickr_8k.trainImages.txt``, dev and test alike; Flickr30k has none of its own: ``train.txt``, ``val.txt``
  and ``test.txt`` with a picture, or its number, in each line;
* or both in Karpathy's ``dataset_flickr8k.json`` (``dataset_flickr30k.json``), which counts where it is there;
* the pictures, in the folder that their archive unpacks to, or in ``Images``.

A picture that no list names is in no split and is skipped: the Flickr8k archive has 91 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from saccade.data.tables.references import OWN, Reader
from saccade.data.tables.rows import UnusableRowError, json_in
from saccade.data.tables.splits import SPLITS, hashed_share
from saccade.data.tables.table import Table
from saccade.errors import DataError
from saccade.families.caption.table import CaptionGathering, CaptionOptions, read_own


class KarpathyEntry(NamedTuple):
    """One picture of the file."""

    folder: str
    """``val2014`` for COCO, empty for the Flickr sets."""
    file: str
    split: str
    captions: tuple[object, ...]


def gather_karpathy(
    path: Path,
    gathering: CaptionGathering,
    find: Callable[[KarpathyEntry], Path | None],
    splits: Mapping[str, str],
) -> None:
    """Add the captions of the file ``path`` to ``gathering``.

    Args:
        path: the JSON file.
        gathering: what captions are added to, and what cannot be used.
        find: where the picture of an entry is, None if nowhere.
        splits: a split of the file → train, val or test; pictures of other splits are passed over.
    """
    try:
        entries = [
            KarpathyEntry(
                str(each.get("filepath", "")),
                each["filename"],
                each["split"],
                tuple(s["raw"] for s in each["sentences"]),
            )
            for each in json_in(path)["images"]
        ]
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: an entry of 'images' lacks filename, split or sentences ({type(error).__name__}: {error}); "
            "this reader takes Karpathy's dataset_*.json"
        ) from error
    seen: set[tuple[str, str]] = set()
    for entry in entries:
        if entry.split not in splits:
            continue
        try:
            if (entry.folder, entry.file) in seen:
                raise UnusableRowError("picture named twice")
            seen.add((entry.folder, entry.file))
            image = find(entry)
            if image is None:
                raise UnusableRowError("no such picture", entry.folder)
            if not entry.captions:
                raise UnusableRowError("no caption")
        except UnusableRowError as error:
            gathering.skip(entry.file, error)
            continue
        for caption in entry.captions:
            try:
                gathering.add(image, caption, splits[entry.split])
            except UnusableRowError as error:
                gathering.skip(entry.file, error)


COCO_HELD_OUT = 5_000
"""Pictures of val, and of test, cut from the official val pictures."""

_KARPATHY = "dataset_coco.json"
_YEARS = ("2014", "2017")


@dataclass(frozen=True)
class CocoOptions(CaptionOptions):
    """How the captions are read."""

    restval: bool = False
    """Train on the pictures that are held out and not needed for val and test, too."""


def read_coco(path: Path, options: CocoOptions) -> Table:
    """The captions in ``path``: the folder of COCO, or one of the JSON files in it."""
    folder, karpathy = _layout(path)
    gathering = CaptionGathering(f"coco:{path}", options)
    splits = {split: split for split in SPLITS} | ({"restval": "train"} if options.restval else {})
    if karpathy is not None:
        gather_karpathy(karpathy, gathering, lambda entry: _picture(folder, entry.folder, entry.file), splits)
    else:
        _gather_annotations(folder, gathering, splits)
    return gathering.table()


def _layout(path: Path) -> tuple[Path, Path | None]:
    """The folder that pictures are looked for in, and the file of Karpathy, if that is what is meant."""
    if path.is_file():
        folder = path.parent.parent if path.parent.name == "annotations" else path.parent
        return folder, None if path.name.startswith("captions_") else path
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder; name COCO's folder, or its {_KARPATHY}")
    places = (path / _KARPATHY, path / "annotations" / _KARPATHY)
    return path, next((place for place in places if place.is_file()), None)


def _picture(folder: Path, part: str, file: str) -> Path | None:
    places = (folder / part / file, folder / "images" / part / file)
    return next((place for place in places if place.is_file()), None)


def _gather_annotations(folder: Path, gathering: CaptionGathering, splits: dict[str, str]) -> None:
    year, train = next(
        ((year, file) for year in _YEARS if (file := _annotations(folder, f"train{year}")) is not None), ("", None)
    )
    if train is None:
        raise DataError(
            f"{folder}: neither {_KARPATHY} nor annotations/captions_train2014.json (or 2017) is here; "
            "name COCO's folder, with its annotations unpacked"
        )
    _gather_part(train, gathering, folder, f"train{year}", None, splits)
    held_out = _annotations(folder, f"val{year}")
    if held_out is not None:
        names = {name for _, name in _read_coco(held_out)[0]}
        order = sorted(names, key=lambda name: (hashed_share(name), name))
        each = min(COCO_HELD_OUT, len(order) // 2)
        split_of = {name: "val" if place < each else "test" for place, name in enumerate(order[: 2 * each])}
        _gather_part(held_out, gathering, folder, f"val{year}", split_of, splits)


def _gather_part(
    path: Path,
    gathering: CaptionGathering,
    folder: Path,
    part: str,
    split_of: dict[str, str] | None,
    splits: dict[str, str],
) -> None:
    """Add the captions of one annotation file; without ``split_of`` all of them are for training."""
    images, captions = _read_coco(path)
    names = dict(images)
    found: dict[int, Path | None] = {}
    seen: set[int] = set()
    for image, annotation, caption in captions:
        split = splits.get("train" if split_of is None else split_of.get(names.get(image, ""), "restval"))
        if split is None:
            continue
        try:
            if annotation in seen:
                raise UnusableRowError("caption numbered twice")
            seen.add(annotation)
            if image not in names:
                raise UnusableRowError("caption of no picture", f"image {image}")
            if image not in found:
                found[image] = _picture(folder, part, names[image])
            picture = found[image]
            if picture is None:
                raise UnusableRowError("no such picture", f"{part}/{names[image]}")
            gathering.add(picture, caption, split)
        except UnusableRowError as error:
            gathering.skip(f"{path.name} annotation {annotation}", error)


def _annotations(folder: Path, part: str) -> Path | None:
    name = f"captions_{part}.json"
    return next((place for place in (folder / "annotations" / name, folder / name) if place.is_file()), None)


def _read_coco(path: Path) -> tuple[list[tuple[int, str]], list[tuple[int, int, object]]]:
    """Numbers and names of the pictures in a file; and of its captions the picture, the number and the text."""
    held = json_in(path)
    try:
        images = [(int(each["id"]), str(each.get("file_name"))) for each in held["images"]]
        captions = [(int(each["image_id"]), int(each["id"]), each.get("caption")) for each in held["annotations"]]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        said = f"{type(error).__name__}: {error}"
        raise DataError(f"{path}: not COCO's caption annotations ({said}); download it again") from error
    return images, captions


FLICKR_HELD_OUT = 500
"""Training pictures that choose a model where the dev pictures are kept to report on."""

_Find = Callable[[str], Path | None]


@dataclass(frozen=True)
class FlickrOptions(CaptionOptions):
    """How the captions are read."""

    splits: Literal["official", "dev"] = "official"
    """``official``: the lists as they are. ``dev``, for those who have no test pictures or keep them: the dev pictures
    are test, and val is 500 training pictures by a hash of their names."""


@dataclass(frozen=True)
class _Names:
    """What the files of one of the two are called."""

    reader: str
    karpathy: str
    tokens: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]]
    pictures: tuple[str, ...]
    texts: tuple[str, ...]
    """Folders, from the one that is named, that the text files may be in."""


_FLICKR8K = _Names(
    "flickr8k",
    "dataset_flickr8k.json",
    ("Flickr8k.token.txt",),
    {
        "train": ("Flickr_8k.trainImages.txt",),
        "val": ("Flickr_8k.devImages.txt",),
        "test": ("Flickr_8k.testImages.txt",),
    },
    ("Images", "Flicker8k_Dataset", "Flickr8k_Dataset"),
    (".", "Flickr8k_text"),
)
_FLICKR30K = _Names(
    "flickr30k",
    "dataset_flickr30k.json",
    ("results_20130124.token", "results.token"),
    {split: (f"{split}.txt", f"flickr30k_{split}.txt") for split in SPLITS},
    ("Images", "flickr30k-images", "flickr30k_images"),
    (".", "flickr30k"),
)


def read_flickr8k(path: Path, options: FlickrOptions) -> Table:
    """The captions in ``path``, the folder that Flickr8k was unpacked in."""
    return _read_flickr(_FLICKR8K, path, options)


def read_flickr30k(path: Path, options: FlickrOptions) -> Table:
    """The captions in ``path``, the folder that Flickr30k was unpacked in."""
    return _read_flickr(_FLICKR30K, path, options)


def _read_flickr(names: _Names, path: Path, options: FlickrOptions) -> Table:
    if not path.is_dir():
        packed = " (it is a file: unpack it)" if path.is_file() else ""
        raise DataError(f"{path}: not a folder{packed}; name the one with the captions and pictures of {names.reader}")
    find = _finder(names, path)
    gathering = CaptionGathering(f"{names.reader}:{path}", options)
    karpathy = _text_file(names, path, names.karpathy)
    if karpathy is not None:
        gather_karpathy(karpathy, gathering, lambda entry: find(entry.file), {split: split for split in SPLITS})
    else:
        _gather_tokens(names, path, gathering, find)
    table = gathering.table()
    return _reported_on_dev(table) if options.splits == "dev" else table


def _reported_on_dev(table: Table) -> Table:
    """The table with its val pictures as test, and some training pictures as val."""
    train = [row.image.name for row in table.rows if row.split == "train"]
    held_out = set(sorted(train, key=lambda name: (hashed_share(name), name))[:FLICKR_HELD_OUT])
    kept = (row for row in table.rows if row.split != "test")
    moved = {"val": "test", "train": "train"}
    rows = (replace(row, split="val" if row.image.name in held_out else moved[row.split]) for row in kept)
    return replace(table, rows=tuple(rows))


def _gather_tokens(names: _Names, path: Path, gathering: CaptionGathering, find: _Find) -> None:
    tokens = _text_file(names, path, *names.tokens)
    if tokens is None:
        wanted = " nor ".join((names.karpathy, *names.tokens))
        raise DataError(f"{path}: neither {wanted} is here; name the folder that {names.reader} was unpacked in")
    split_of = _listed(names, path)
    seen: set[str] = set()
    pictures: dict[str, Path | None] = {}
    for line, text in _lines(tokens, gathering):
        try:
            key, tab, caption = text.partition("\t")
            name, number, _ = key.partition("#")
            if not tab or not number:
                raise UnusableRowError("not PICTURE#NUMBER, tab, caption", text[:40])
            split = split_of.get(Path(name).stem)
            if split is None:
                continue
            if key in seen:
                raise UnusableRowError("caption numbered twice", key)
            seen.add(key)
            if name not in pictures:
                pictures[name] = find(name)
            image = pictures[name]
            if image is None:
                raise UnusableRowError("no such picture", name)
            gathering.add(image, caption, split)
        except UnusableRowError as error:
            gathering.skip(f"{tokens.name} line {line}", error)
    captioned = {Path(key.partition("#")[0]).stem for key in seen}
    silent = [stem for stem in split_of if stem not in captioned]
    gathering.skipped += [f"no caption: {stem}, listed for {split_of[stem]}" for stem in silent]


def _listed(names: _Names, path: Path) -> dict[str, str]:
    """Picture, without its suffix, → split."""
    split_of: dict[str, str] = {}
    for split, candidates in names.lists.items():
        file = _text_file(names, path, *candidates)
        for stem in _stems(file) if file is not None else ():
            if split_of.setdefault(stem, split) != split:
                raise DataError(f"{file}: {stem} is listed for {split_of[stem]} too; a picture is in one split only")
    if not split_of:
        wanted = ", ".join(candidates[0] for candidates in names.lists.values())
        raise DataError(f"{path}: no list says which pictures are for training: {wanted}; put them there")
    return split_of


def _stems(file: Path) -> list[str]:
    try:
        return [Path(name).stem for line in file.read_text(encoding="utf-8-sig").splitlines() if (name := line.strip())]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{file}: cannot be read ({error}); download it again") from error


def _lines(path: Path, gathering: CaptionGathering) -> Iterator[tuple[int, str]]:
    """The lines of a file that are UTF-8, by number; those that are not are noted, and the rest goes on."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    text = line.decode("utf-8-sig").strip()
                except UnicodeDecodeError as error:
                    found = f"byte 0x{line[error.start]:02x}"
                    gathering.skip(f"{path.name} line {number}", UnusableRowError("not UTF-8", found))
                    continue
                if text:
                    yield number, text
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error


def _text_file(names: _Names, path: Path, *candidates: str) -> Path | None:
    places = (path / folder / name for folder in names.texts for name in candidates)
    return next((place for place in places if place.is_file()), None)


def _finder(names: _Names, path: Path) -> _Find:
    """Where pictures are found by name."""
    folders = [path / folder for folder in names.pictures if (path / folder).is_dir()]
    if not folders:
        raise DataError(f"{path}: no pictures in {', '.join(names.pictures)}; unpack their archive there")

    def find(name: str) -> Path | None:
        return next((place for folder in folders if (place := folder / name).is_file()), None)

    return find


CAPTION_READERS: dict[str, Reader] = {
    **{name: Reader(partial(read_own, name), CaptionOptions) for name in OWN if name not in ("coco", "folder")},
    "flickr8k": Reader(read_flickr8k, FlickrOptions),
    "flickr30k": Reader(read_flickr30k, FlickrOptions),
    "coco": Reader(read_coco, CocoOptions),
}
