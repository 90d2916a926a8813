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
from collections.abc import Iterator
from pathlib import Path

from saccade.data.pictures.content_digest import torn_copies
from saccade.data.pictures.decoding import SUFFIXES
from saccade.data.tables.doubts import first_few
from saccade.data.tables.rows import Cells, csv_rows, jsonl_rows
from saccade.data.tables.splits import SPLITS, hashed_share, split_of
from saccade.data.tables.table import CellRows
from saccade.errors import DataError

# What the folders of splits are called.
SPLIT_FOLDERS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val",
                 "dev": "val", "test": "test", "testing": "test"}  # fmt: skip
_HELD_OUT = 0.15  # of train, where there is no val
_NAMED = 5
_METADATA = ("metadata.csv", "metadata.jsonl")


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
    cells_of: dict[Path, dict[str, str]] = {}
    for split in [split for split in SPLITS if split in splits] if splits else [""]:
        for folder in _folders(splits[split]) if split else top:
            if folder.is_symlink() and path.resolve().is_relative_to(folder.resolve()):
                skipped.append(f"link that leads back: {folder.relative_to(path).as_posix()}")
                continue
            before = len(cells_of)
            for file in _files(folder):
                where = file.relative_to(path).as_posix()
                if file.suffix.lower() in SUFFIXES:
                    cells_of[file] = {"image": where, "label": folder.name, "split": split or split_of(where)}
                else:
                    skipped.append(f"no picture by its name: {where}")
            if len(cells_of) == before:
                skipped.append(f"class without pictures: {folder.relative_to(path).as_posix()}")
    if "train" in splits and "val" not in splits:
        for cells in cells_of.values():
            if cells["split"] == "train" and hashed_share(cells["image"]) >= 1 - _HELD_OUT:
                cells["split"] = "val"
    if not cells_of and not skipped:
        raise DataError(f"folder:{path}: no folder of a class in it; expected {path.name}/CLASS/PICTURE.jpg")
    label_of = {file: cells["label"] for file, cells in cells_of.items()}
    for same in torn_copies(label_of):
        for file in same:
            twin = next(other for other in same if label_of[other] != label_of[file])
            skipped.append(f"same picture in two classes: {cells_of[file]['image']} = {twin.parent.name}/{twin.name}")
        for file in same:
            del cells_of[file]
    return CellRows([(cells["image"], cells) for cells in cells_of.values()], path, skipped)


def _folders(path: Path) -> list[Path]:
    """The folders in ``path``, in order; hidden ones do not count."""
    return sorted(entry for entry in path.iterdir() if not entry.name.startswith(".") and entry.is_dir())


def _files(folder: Path) -> Iterator[Path]:
    """The files of a class, those of its own first; hidden ones do not count."""
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(names) if not name.startswith("."))


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
