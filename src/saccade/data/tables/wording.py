"""Sentences about a table: counts, rows that were left out, and words that differ in spelling only.

A reader leaves nothing out silently: each row that cannot be used becomes an entry ``REASON: WHERE``, and a message
counts the entries by reason. Words that differ in spelling alone, such as ``cup`` and ``Cup``, are not changed but
named in a warning: whether they are one word is for the user to say (``Polish`` and ``polish`` are not).
"""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence, Sized

from saccade.errors import DataError

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
