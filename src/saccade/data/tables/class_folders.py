"""Folders of pictures, one folder for each class: ``class/xxx.jpg``, with or without train, val and test above it.

This is how most people have their labelled pictures. Every family that takes labels reads it as ``folder:PATH``.

* ``PATH/train/cat/1.jpg``: the splits are train, val (or valid, validation) and test. Where there is no val, 15 % of
  train become val, by a hash of the path.
* ``PATH/cat/1.jpg``: 70 / 15 / 15 % of the pictures are train / val / test, by a hash of the path.

Folders below a class belong to the class. Hidden files do not count. What cannot be used is left out and counted: a
class without pictures, a file that is no picture, and a picture that lies in two classes, byte for byte.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from saccade.data.pictures.decoding import SUFFIXES
from saccade.data.tables.doubts import first_few
from saccade.data.tables.rows import Cells
from saccade.data.tables.splits import OTHER_SPLIT, SPLITS, hashed_share, split_of
from saccade.data.tables.table import CellRows
from saccade.errors import DataError

_CALLED = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test",
           "testing": "test"}  # fmt: skip
_HELD_OUT = 0.15  # of train, where there is no val
_MAX_CLASSES = 100_000
_NAMED = 5


def class_folders(path: Path) -> CellRows:
    """The pictures below ``path``, each labelled by the folder of its class.

    Raises:
        DataError: no such folder, no class in it, or splits and classes side by side.
    """
    skipped: list[str] = []
    top = _folders(path, skipped)
    splits = {_CALLED[each.name.lower()]: each for each in top if each.name.lower() in _CALLED}
    if splits and len(splits) < len(top):
        others = [each.name for each in top if each.name.lower() not in _CALLED]
        raise DataError(
            f"folder:{path}: {first_few(others, _NAMED)} beside {', '.join(each.name for each in splits.values())}; "
            "put classes either into folders train, val and test or right into the folder"
        )
    found: list[_Picture] = []
    for split in SPLITS if splits else ("",):
        if split and split not in splits:
            continue
        for label in _folders(splits[split], skipped) if splits else top:
            if label.is_symlink() and path.resolve().is_relative_to(label.resolve()):
                skipped.append(f"link that leads back: {label.relative_to(path).as_posix()}")
                continue
            found += _of_class(label, path, split, skipped)
    if "train" in splits and "val" not in splits:
        found = [each._replace(split=_val_or_train(each)) for each in found]
    if not found and not skipped:
        raise DataError(f"folder:{path}: no folder of a class in it; expected {path.name}/CLASS/PICTURE.jpg")
    rows = [(each.where, each.cells()) for each in _without_contradictions(found, skipped)]
    return CellRows(rows, path, skipped, if_empty=OTHER_SPLIT)


class _Picture(NamedTuple):
    where: str
    file: Path
    label: str
    split: str

    def cells(self) -> Cells:
        """As a row of a table."""
        return {"image": self.where, "label": self.label, "split": self.split}


def _folders(path: Path, skipped: list[str]) -> list[Path]:
    """The folders in ``path``, in order; hidden ones do not count, and links that lead nowhere are counted."""
    try:
        with os.scandir(path) as entries:
            shown = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda each: each.name)
            names = [entry.name for entry in shown if is_folder(entry)]
            skipped += [f"link that leads nowhere: {entry.name}" for entry in shown if _is_broken(entry)]
    except OSError as error:
        raise DataError(f"folder:{path}: cannot be read ({error.strerror or error}); check the path") from error
    if len(names) > _MAX_CLASSES:
        raise DataError(f"folder:{path}: {len(names):,} folders, and at most {_MAX_CLASSES:,} classes are learned")
    return [path / name for name in names]


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder; a link that leads to itself is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def _is_broken(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a link to itself or to nothing."""
    return entry.is_symlink() and not os.path.exists(entry.path)


def _of_class(folder: Path, top: Path, split: str, skipped: list[str]) -> list[_Picture]:
    """The pictures of one class with where each was found; without a ``split`` a hash of the path says it."""
    found = []
    empty = True
    for place, inside, names in os.walk(folder, onerror=lambda error: skipped.append(_unreadable(error, top))):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        for name in sorted(names):
            if name.startswith("."):
                continue
            file = Path(place) / name
            where = file.relative_to(top).as_posix()
            if file.suffix.lower() not in SUFFIXES:
                skipped.append(f"no picture by its name: {where}")
                continue
            empty = False
            try:
                where.encode()
            except UnicodeEncodeError:
                skipped.append(f"unreadable name: {where!a}")
                continue
            found.append(_Picture(where, file, folder.name, split or split_of(where)))
    if empty:
        skipped.append(f"class without pictures: {folder.relative_to(top).as_posix()}")
    return found


def _unreadable(error: OSError, top: Path) -> str:
    """An entry for a folder that cannot be listed."""
    where = os.path.relpath(error.filename, top) if error.filename else "a folder"
    return f"unreadable folder: {where}, {error.strerror or error}"


def _val_or_train(picture: _Picture) -> str:
    """The split of a picture where there is no val: some of train, by the hash of the path."""
    is_val = picture.split == "train" and hashed_share(picture.where) >= 1 - _HELD_OUT
    return "val" if is_val else picture.split


def _without_contradictions(found: Sequence[_Picture], skipped: list[str]) -> list[_Picture]:
    """The pictures but those that lie in two classes, byte for byte; these are added to ``skipped``."""
    torn = _in_two_classes({each.file: each.label for each in found})
    for each in found:
        if each.file in torn:
            other = torn[each.file]
            skipped.append(f"same picture in two classes: {each.where} = {other.parent.name}/{other.name}")
    return [each for each in found if each.file not in torn]


def _in_two_classes(label_of: Mapping[Path, str]) -> dict[Path, Path]:
    """Pictures with the bytes of one in another class, and that one. Only files of equal length are read."""
    by_length: dict[int, list[Path]] = {}
    for path in label_of:
        by_length.setdefault(_length(path), []).append(path)
    torn: dict[Path, Path] = {}
    for alike in by_length.values():
        if len({label_of[path] for path in alike}) > 1:
            for same in _same_bytes(alike):
                labels = {label_of[path] for path in same}
                for path in same if len(labels) > 1 else ():
                    torn[path] = next(other for other in same if label_of[other] != label_of[path])
    return torn


def _same_bytes(paths: Iterable[Path]) -> Iterable[list[Path]]:
    """Files grouped by their bytes; one that cannot be read is left out, and named, when the split is opened."""
    groups: dict[bytes, list[Path]] = {}
    for path in paths:
        try:
            with path.open("rb") as file:
                groups.setdefault(hashlib.file_digest(file, "sha256").digest(), []).append(path)
        except OSError:
            continue
    return groups.values()


def _length(path: Path) -> int:
    """Size of a file in bytes; -1 if it cannot be read."""
    try:
        return path.stat().st_size
    except OSError:
        return -1
