"""Sentences about a table: counts, rows that were left out, and what looks wrong with it.

A reader leaves nothing out silently: each row that cannot be used becomes an entry ``REASON: WHERE``, and a message
counts the entries by reason. Suspicious things in a usable table are reported, never changed: whether ``cup`` and
``Cup`` are one word is for the user to say (``Polish`` and ``polish`` are not).

A table that puts one picture, or one group of pictures, into two splits contradicts itself and is refused: a score on
pictures that the model was trained on means nothing. Copies of a picture under different names are not the table's
claim, and some collections have many, so they only cause a warning.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import NamedTuple, Protocol

from saccade.errors import ConfigError, DataError


def contradictions(found: Iterable[tuple[Path, str, Sequence[str]]], thing: str) -> str:
    """Things that have different labels in different rows.

    Args:
        found: picture, what is asked about it (empty: nothing is asked), and labels, for each row.
        thing: what has labels, in the singular.
    """
    answers: dict[tuple[Path, str], dict[tuple[str, ...], None]] = {}
    for image, asked, labels in found:
        answers.setdefault((image, asked), {})[tuple(sorted(labels))] = None
    torn = [(where, list(given)) for where, given in answers.items() if len(given) > 1]
    if not torn:
        return ""
    (image, asked), given = torn[0]
    about = f"{image.name}, '{asked}'" if asked else image.name
    first = " and ".join(f"'{'; '.join(labels)}'" for labels in given[:2])
    have = "has" if len(torn) == 1 else "have"
    return f"{pluralise(len(torn), thing)} {have} contradictory labels in different rows (first {about}: {first})"


def spellings(words: Iterable[str], things: str) -> str:
    """Words that differ in spelling alone, such as ``cup`` and ``Cup``, or ``1`` and ``1.0``.

    Args:
        words: each a class of its own.
        things: what they are, in the plural.
    """
    alike = spelt_alike(words)
    if not alike:
        return ""
    number, first = sum(map(len, alike)), " and ".join(f"'{word}'" for word in alike[0])
    return f"{number:,} {things} differ in spelling alone and count as different ones (first {first})"


def repeated_keys(places: Sequence[str]) -> str:
    """Rows of JSON lines in which a key is there more than once.

    Args:
        places: line and key of each.
    """
    if not places:
        return ""
    repeat = "repeats a JSON key" if len(places) == 1 else "repeat a JSON key"
    return f"{pluralise(len(places), 'row')} {repeat}, and the last value counts (first {places[0]})"


def in_lines(summary: str, doubts: Iterable[str]) -> str:
    """The summary, and below it each doubt in a line of its own."""
    return "\n".join([summary, *(f"doubtful: {doubt}" for doubt in doubts if doubt)])


_NAMED = 3  # rows that a summary names for each reason
_SHOWN = 3  # groups of words in a warning
_DECIMAL = re.compile(r"[+-]?(0|[1-9][0-9]{0,300})(\.[0-9]*)?")


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


def check_usable(name: str, usable: Sized, left_out: Sequence[str], *, strict: bool, thing: str = "row") -> None:
    """Refuse a table without a usable row, and in strict mode a table with any unusable row.

    Args:
        name: READER:PATH.
        usable: the rows that stay.
        left_out: an entry for each row that does not.
        strict: whether every row must stay.
        thing: what a row is called.
    """
    if not usable and not left_out:
        raise DataError(f"{name}: it is empty; add a row for each picture")
    if not usable:
        raise DataError(f"{name}: no {thing} can be used; left out {summarised(left_out)}")
    if strict and left_out:
        count = pluralise(len(left_out), thing)
        raise DataError(f"{name}: strict, and {count} cannot be used: {summarised(left_out)}")


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


def spelt_alike(words: Iterable[str]) -> list[list[str]]:
    """Groups of words that differ only in capitals, spaces or underscores, encoding, or in how a number is written.

    >>> spelt_alike(["Cup", "cup", "coffee_pot", "plate", "Coffee pot", "1.0", "1", "2"])
    [['1', '1.0'], ['Coffee pot', 'coffee_pot'], ['Cup', 'cup']]
    """
    groups: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        plain = unicodedata.normalize("NFKC", word).casefold().replace("_", " ")
        plain = " ".join(plain.split())
        groups.setdefault(_number(plain) or plain, []).append(word)
    return [group for group in groups.values() if len(group) > 1]


def _number(word: str) -> str:
    """A number in one spelling, such as 1.0 of ``1`` and ``1.00``; nothing for other words, and for codes as ``01``."""
    return repr(float(word)) if _DECIMAL.fullmatch(word) else ""


def warn_of_spellings(table: str, words: Iterable[str], things: str) -> None:
    """Warn of words that are learned as different ones though they differ in spelling alone.

    Args:
        table: READER:PATH.
        words: the words of the table, each a class of its own.
        things: what they are, in the plural.
    """
    alike = spelt_alike(words)
    if alike:
        named = first_few([", ".join(f"'{word}'" for word in group) for group in alike], _SHOWN)
        warnings.warn(
            f"{table}: {things} that differ in spelling alone count as different ones: {named}; "
            "spell those that mean the same alike",
            stacklevel=3,
        )


_TORN_NAMED = 5  # pictures that a message names


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
            f"{first_few(torn, _TORN_NAMED)}; give each {kind} one split, or leave out the column 'split': each {kind} "
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
            f"is partly on training pictures: {first_few(copies, _TORN_NAMED)}; keep one of each, or give the "
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


class SplitTable(Protocol):
    """A table whose rows are in splits."""

    @property
    def name(self) -> str:
        """READER:PATH."""

    def count(self, split: str) -> int:
        """Rows in ``split``."""


def check_named(data: Mapping[str, object], readers: Collection[str], things: str) -> None:
    """Refuse settings of data that name none: a recipe for one's own pictures cannot know where they are.

    Args:
        data: the settings.
        readers: which READERs there are.
        things: what is trained on, in the plural.
    """
    if not data.get("name"):
        raise ConfigError(f"no {things} to train on: give `data=READER:PATH`; readers: {', '.join(readers)}")


def check_trainable(table: SplitTable, thing: str) -> None:
    """Refuse a table with nothing to learn from, or nothing to choose a model by.

    Args:
        table: the rows.
        thing: what one of them is.
    """
    for split in ("train", "val"):
        if not table.count(split):
            raise DataError(f"{table.name}: no {thing} in split '{split}'; training needs train and val rows")


def warn_of_one_answer(table: str, answers: Iterable[str], *, things: str, word: str) -> None:
    """Warn of data on which a model that looks at nothing is always right.

    Args:
        table: READER:PATH.
        answers: that of every training row.
        things: what the rows are, in the plural.
        word: what an answer is called.
    """
    known = {*answers}
    if len(known) == 1:
        (only,) = known
        warnings.warn(
            f"{table}: all training {things} have the {word} '{only}', so a model that always says it is never wrong "
            f"and its accuracy means nothing; add {things} with another {word}",
            stacklevel=3,
        )
