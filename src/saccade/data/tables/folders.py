"""Folders of pictures: one folder for each class, or a table ``metadata.csv`` beside the pictures.

``folder:PATH`` is how most people have their labelled pictures; every family that takes labels reads it:

* ``PATH/train/cat/1.jpg``: the splits are train, val (or valid, validation) and test. Where there is no val, 15 % of
  train become val, by a hash of the path.
* ``PATH/cat/1.jpg``: 70 / 15 / 15 % of the pictures are train / val / test, by a hash of the path.

Folders below a class belong to the class. Hidden files do not count. What cannot be used is left out and counted: a
class without pictures, a link that leads nowhere, a file that is no picture, and a picture that lies in two classes,
byte for byte.

``metadata:PATH`` is the convention of the datasets library:

* ``PATH/metadata.csv`` (or .jsonl): one table, with ``file_name`` from its folder and the other columns as any table.
* ``PATH/train/metadata.csv``, ``PATH/test/metadata.csv``: a table for each split.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from saccade.data.pictures.content_digest import torn_copies
from saccade.data.pictures.decoding import SUFFIXES
from saccade.data.tables.doubts import first_few
from saccade.data.tables.rows import Cells, csv_rows, jsonl_rows
from saccade.data.tables.splits import SPLITS, hashed_share, split_of
from saccade.data.tables.table import CellRows
from saccade.errors import DataError

SPLIT_FOLDERS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val",
                 "dev": "val", "test": "test", "testing": "test"}  # fmt: skip
"""What the folders of splits are called."""
_HELD_OUT = 0.15  # of train, where there is no val
_NAMED = 5
_METADATA = ("metadata.csv", "metadata.jsonl")


class _Picture(NamedTuple):
    where: str  # from the top folder
    file: Path
    label: str
    split: str


def class_folders(path: Path) -> CellRows:
    """The pictures below ``path``, each labelled by the folder of its class."""
    broken = sorted(entry.name for entry in path.iterdir() if entry.is_symlink() and not entry.exists())
    skipped = [f"link that leads nowhere: {name}" for name in broken]
    top = _folders(path)
    splits = {SPLIT_FOLDERS[name]: folder for folder in top if (name := folder.name.lower()) in SPLIT_FOLDERS}
    if splits and len(splits) < len(top):
        others = [folder.name for folder in top if folder.name.lower() not in SPLIT_FOLDERS]
        raise DataError(
            f"folder:{path}: {first_few(others, _NAMED)} beside {', '.join(folder.name for folder in splits.values())}"
            "; put classes either into folders train, val and test or right into the folder"
        )
    pictures: list[_Picture] = []
    for split in [split for split in SPLITS if split in splits] if splits else [""]:
        for folder in _folders(splits[split]) if split else top:
            if folder.is_symlink() and path.resolve().is_relative_to(folder.resolve()):
                skipped.append(f"link that leads back: {folder.relative_to(path).as_posix()}")
            else:
                pictures += _of_class(folder, path, split, skipped)
    if "train" in splits and "val" not in splits:
        pictures = [picture._replace(split=_val_or_train(picture)) for picture in pictures]
    if not pictures and not skipped:
        raise DataError(f"folder:{path}: no folder of a class in it; expected {path.name}/CLASS/PICTURE.jpg")
    twin_of = _in_two_classes(pictures)
    rows: list[tuple[str, Cells]] = []
    for where, file, label, split in pictures:
        if twin := twin_of.get(file):
            skipped.append(f"same picture in two classes: {where} = {twin.parent.name}/{twin.name}")
        else:
            rows.append((where, {"image": where, "label": label, "split": split}))
    return CellRows(rows, path, skipped)


def _folders(path: Path) -> list[Path]:
    """The folders in ``path``, in order; hidden ones do not count."""
    return sorted(entry for entry in path.iterdir() if not entry.name.startswith(".") and entry.is_dir())


def _of_class(folder: Path, top: Path, split: str, skipped: list[str]) -> list[_Picture]:
    """The pictures of one class; without a ``split`` a hash of the path says it."""
    pictures = []
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            file = Path(place) / name
            where = file.relative_to(top).as_posix()
            if file.suffix.lower() in SUFFIXES:
                pictures.append(_Picture(where, file, folder.name, split or split_of(where)))
            else:
                skipped.append(f"no picture by its name: {where}")
    if not pictures:
        skipped.append(f"class without pictures: {folder.relative_to(top).as_posix()}")
    return pictures


def _val_or_train(picture: _Picture) -> str:
    """The split of a picture where there is no val: some of train, by the hash of the path."""
    is_val = picture.split == "train" and hashed_share(picture.where) >= 1 - _HELD_OUT
    return "val" if is_val else picture.split


def _in_two_classes(pictures: list[_Picture]) -> dict[Path, Path]:
    """Pictures with the bytes of one in another class, and that one."""
    label_of = {picture.file: picture.label for picture in pictures}
    return {
        path: next(other for other in same if label_of[other] != label_of[path])
        for same in torn_copies(label_of)
        for path in same
    }


def metadata_in(folder: Path) -> list[tuple[Path, str]]:
    """The tables in ``folder``, each with its split; "" for one table of all."""
    for name in _METADATA:
        if (folder / name).is_file():
            return [(folder / name, "")]
    return [
        (folder / place / name, split)
        for place, split in SPLIT_FOLDERS.items()
        for name in _METADATA
        if (folder / place / name).is_file()
    ]


def metadata_rows(folder: Path) -> CellRows:
    """The rows of all tables in ``folder``; of several, rows say their split, and pictures lie below ``folder``."""
    tables = metadata_in(folder)
    if not tables:
        raise DataError(f"metadata:{folder}: neither metadata.csv nor metadata.jsonl in it, nor in train, val and test")
    rows: list[tuple[str, Cells]] = []
    skipped: list[str] = []
    for path, split in tables:
        for line, cells in csv_rows(path, ("image",)) if path.suffix == ".csv" else jsonl_rows(path, skipped):
            placed = {**cells, "split": split} if split else dict(cells)
            if split and isinstance(placed.get("image"), str):
                placed["image"] = f"{path.parent.name}/{placed['image'].strip()}"
            rows.append((f"line {line}", placed))
    return CellRows(rows, folder, skipped)
