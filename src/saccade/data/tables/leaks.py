"""Finds pictures in more than one split. A score on pictures that the model was trained on means nothing.

A table that puts one picture, or one group of pictures, into two splits contradicts itself and is refused. Copies of a
picture under different names are not the table's claim, and some collections have many, so they only cause a warning.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from saccade.data.tables.wording import first_few, pluralise
from saccade.errors import DataError

_NAMED = 5  # that a message names


class SplitMember(NamedTuple):
    """Where a row puts its picture."""

    image: Path
    group: str
    split: str


def check_splits(table: str, folder: Path, rows: Iterable[SplitMember]) -> None:
    """Refuse pictures and groups in more than one split, and warn of copies.

    Args:
        table: READER:PATH.
        folder: that of the table, from which a message names pictures.
        rows: what every usable row says.

    Raises:
        DataError: a picture or a group is in more than one split.
    """
    placed = dict.fromkeys(rows)  # each once, in order
    check_groups_whole(table, "picture", ((os.path.relpath(row.image, folder), row.split) for row in placed))
    check_groups_whole(table, "group", ((row.group, row.split) for row in placed))
    warn_of_copies(table, {row.image: row.split for row in placed})


def check_groups_whole(table: str, kind: str, found: Iterable[tuple[str, str]]) -> None:
    """Refuse a table that has the same picture, or the same group, in more than one split.

    Args:
        table: READER:PATH.
        kind: what is found, in the singular: picture, group.
        found: the name of each, and its split.

    Raises:
        DataError: how many are torn apart, and the first of them.
    """
    splits: dict[str, dict[str, None]] = {}
    for name, split in found:
        splits.setdefault(name, {})[split] = None  # in order, each once
    torn = [f"{name} ({', '.join(where)})" for name, where in splits.items() if len(where) > 1]
    if torn:
        raise DataError(
            f"{table}: {_are(len(torn), kind)} in more than one split, so a score would be on training pictures: "
            f"{first_few(torn, _NAMED)}; give each {kind} one split, or leave out the column 'split': each {kind} "
            "then gets a split by a hash of its name"
        )


def warn_of_copies(table: str, split_of: Mapping[Path, str]) -> None:
    """Warn of pictures whose bytes are also those of a picture in another split.

    Only files of equal length are read, and only where these are not all in one split.

    Args:
        table: READER:PATH.
        split_of: every picture's split.
    """
    by_length: dict[int, list[Path]] = {}
    for path in split_of:
        by_length.setdefault(path.stat().st_size, []).append(path)
    copies = []
    for alike in by_length.values():
        if len({split_of[path] for path in alike}) > 1:
            copies += _copies(alike, split_of)
    if copies:
        warnings.warn(
            f"{table}: {_are(len(copies), 'picture')} the same, byte for byte, as one in another split, so a score "
            f"is partly on training pictures: {first_few(copies, _NAMED)}; keep one of each, or give the "
            "copies one split",
            stacklevel=3,
        )


def _copies(alike: Iterable[Path], split_of: Mapping[Path, str]) -> list[str]:
    """Among files of one length, those with the same bytes as an earlier one in another split."""
    first: dict[bytes, Path] = {}
    copies = []
    for path in alike:
        try:
            content = path.read_bytes()
        except OSError:
            continue  # it is left out, and named, when the split is opened
        original = first.setdefault(hashlib.sha256(content).digest(), path)
        if split_of[original] != split_of[path]:
            copies.append(f"{path.name} ({split_of[path]}) = {original.name} ({split_of[original]})")
    return copies


def _are(number: int, kind: str) -> str:
    return f"{pluralise(number, kind)} {'is' if number == 1 else 'are'}"
