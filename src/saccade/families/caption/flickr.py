"""Flickr8k and Flickr30k: photographs of people and animals, five captions each, in their official layouts.

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
from pathlib import Path
from typing import Literal

from saccade.data.tables.rows import UnusableRowError
from saccade.data.tables.splits import SPLITS, hashed_share
from saccade.errors import DataError
from saccade.families.caption.karpathy import gather_karpathy
from saccade.families.caption.table import CaptionGathering, CaptionOptions, CaptionTable

HELD_OUT = 500
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


def read_flickr8k(path: Path, options: FlickrOptions) -> CaptionTable:
    """The captions in ``path``, the folder that Flickr8k was unpacked in."""
    return _read(_FLICKR8K, path, options)


def read_flickr30k(path: Path, options: FlickrOptions) -> CaptionTable:
    """The captions in ``path``, the folder that Flickr30k was unpacked in."""
    return _read(_FLICKR30K, path, options)


def _read(names: _Names, path: Path, options: FlickrOptions) -> CaptionTable:
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


def _reported_on_dev(table: CaptionTable) -> CaptionTable:
    """The table with its val pictures as test, and some training pictures as val."""
    train = [row.image.name for row in table.rows if row.split == "train"]
    held_out = set(sorted(train, key=lambda name: (hashed_share(name), name))[:HELD_OUT])
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
