"""Suspicious things in a usable table: reported in the data summary, never changed.

Each function returns one line with how many there are and the first of them, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from saccade.data.tables.wording import pluralise, spelt_alike


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
