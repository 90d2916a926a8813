"""What a reader leaves out of a table, never silently: entries ``REASON: WHERE``, counted by reason in messages."""

from __future__ import annotations

from collections.abc import Sequence, Sized

from saccade.data.tables.wording import counted, first_few
from saccade.errors import DataError

_NAMED = 3  # rows that a summary names for each reason


def check_usable(name: str, usable: Sized, left_out: Sequence[str], *, strict: bool, thing: str = "row") -> None:
    """Refuse a table with nothing in it that can be used, and a strict one with anything that cannot.

    Args:
        name: READER:PATH.
        usable: what stays.
        left_out: what does not, each with its reason.
        strict: whether everything must stay.
        thing: what is read.
    """
    if not usable and not left_out:
        raise DataError(f"{name}: it is empty; add a row for each picture")
    if not usable:
        raise DataError(f"{name}: no {thing} can be used; left out {summarised(left_out)}")
    if strict and left_out:
        count = counted(len(left_out), thing)
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
