"""Sentences about a table: counts, rows that were left out, and what looks wrong with it.

Each row that cannot be used becomes an entry ``REASON: WHERE``, and a message counts the entries by reason. Suspicious
things are reported, never changed. A table that puts one picture, or one group of pictures, into two splits is refused;
copies under other names only cause a warning.
"""

from __future__ import annotations

import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING

from saccade.data.pictures.files import torn_copies
from saccade.errors import DataError

if TYPE_CHECKING:
    from saccade.data.tables.table import Row

_NAMED = 3  # rows that a summary names for each reason
_TORN_NAMED = 5  # pictures that a message names
_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]{0,300})(\.[0-9]*)?")


def contradictions(rows: Iterable[tuple[Path, str, Sequence[str]]], thing: str) -> str:
    """Things (``thing``, in the singular) that have different labels in different rows.

    ``rows`` are picture, what is asked about it (empty: nothing), and labels.
    """
    answers: dict[tuple[Path, str], dict[tuple[str, ...], None]] = {}
    for image, query, labels in rows:
        answers.setdefault((image, query), {})[tuple(sorted(labels))] = None
    torn = [(where, list(several)) for where, several in answers.items() if len(several) > 1]
    if not torn:
        return ""
    (image, query), several = torn[0]
    about = f"{image.name}, '{query}'" if query else image.name
    first = " and ".join(f"'{'; '.join(labels)}'" for labels in several[:2])
    have = "has" if len(torn) == 1 else "have"
    return f"{pluralise(len(torn), thing)} {have} contradictory labels in different rows (first {about}: {first})"


def spellings(words: Iterable[str], things: str) -> str:
    """Words (``things``) that differ only in capitals, spaces or underscores, encoding, or how a number is written.

    >>> spellings(["Cup", "cup", "coffee_pot", "plate", "Coffee pot", "1.0", "1", "2", "01"], "labels")
    "6 labels differ in spelling alone and count as different ones (first '1' and '1.0')"
    """
    groups: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        plain = " ".join(unicodedata.normalize("NFKC", word).casefold().replace("_", " ").split())
        is_number = _DECIMAL.fullmatch(plain)  # codes such as 01 are none
        groups.setdefault(repr(float(plain)) if is_number else plain, []).append(word)
    alike = [group for group in groups.values() if len(group) > 1]
    if not alike:
        return ""
    number, first = sum(map(len, alike)), " and ".join(f"'{word}'" for word in alike[0])
    return f"{number:,} {things} differ in spelling alone and count as different ones (first {first})"


def pluralise(number: int, thing: str, things: str = "") -> str:
    """A number of things, in words.

    >>> pluralise(1, "picture"), pluralise(2000, "picture"), pluralise(0, "query", "queries")
    ('1 picture', '2,000 pictures', '0 queries')
    """
    return f"1 {thing}" if number == 1 else f"{number:,} {things or thing + 's'}"


def first_few(names: Sequence[str], most: int) -> str:
    """``names`` in one line, no more than ``most`` of them.

    >>> first_few(["a", "b"], 2), first_few(["a", "b", "c"], 2)
    ('a; b', 'a; b; …')
    """
    return "; ".join(names[:most]) + ("; …" if len(names) > most else "")


def summarised(left_out: Sequence[str]) -> str:
    """``left_out`` in one line: how often each reason, the most frequent first, and the first few rows of each.

    >>> summarised(["empty label: line 3", "no such picture: line 4, a.png", "empty label: line 9"])
    '2 × empty label (line 3; line 9), 1 × no such picture (line 4, a.png)'
    """
    places: dict[str, list[str]] = {}
    for entry in left_out:
        reason, _, where = entry.partition(": ")
        places.setdefault(reason, []).append(where)
    by_number = sorted(places.items(), key=lambda item: -len(item[1]))
    return ", ".join(f"{len(where):,} × {reason} ({first_few(where, _NAMED)})" for reason, where in by_number)


def check_usable(name: str, usable: Sized, left_out: Sequence[str], *, strict: bool, thing: str = "row") -> None:
    """Refuse the table ``name`` without a usable row, and in strict mode one with any unusable row."""
    if not usable:
        why = f"left out {summarised(left_out)}" if left_out else "it is empty"
        raise DataError(f"{name}: no {thing} can be used; {why}")
    if strict and left_out:
        count = pluralise(len(left_out), thing)
        raise DataError(f"{name}: strict, and {count} cannot be used: {summarised(left_out)}")


def check_splits(table: str, folder: Path, rows: Sequence[Row]) -> None:
    """Refuse a ``table`` (READER:PATH) with a picture or a group in more than one split, and warn of copies.

    Messages name pictures from ``folder``.
    """
    placed = {
        "picture": [(os.path.relpath(row.image, folder), row.split) for row in rows],
        "group": [(row.group, row.split) for row in rows if row.group],
    }
    for kind, pairs in placed.items():
        splits: dict[str, dict[str, None]] = {}
        for name, split in pairs:
            splits.setdefault(name, {})[split] = None  # in order, each once
        torn = [f"{name} ({', '.join(where)})" for name, where in splits.items() if len(where) > 1]
        if torn:
            raise DataError(
                f"{table}: {_are(len(torn), kind)} in more than one split, so a score would be on training pictures: "
                f"{first_few(torn, _TORN_NAMED)}; give each {kind} one split, or leave out the column 'split': each "
                f"{kind} then gets a split by a hash of its name"
            )
    split_of = {row.image: row.split for row in rows}
    copies = [
        f"{path.name} ({split_of[path]}) = {same[0].name} ({split_of[same[0]]})"
        for same in torn_copies(split_of)
        for path in same
        if split_of[path] != split_of[same[0]]
    ]
    if copies:
        warnings.warn(
            f"{table}: {_are(len(copies), 'picture')} the same, byte for byte, as one in another split, so a score "
            f"is partly on training pictures: {first_few(copies, _TORN_NAMED)}; keep one of each, or give the "
            "copies one split",
            stacklevel=3,
        )


def _are(number: int, kind: str) -> str:
    return f"{pluralise(number, kind)} {'is' if number == 1 else 'are'}"
