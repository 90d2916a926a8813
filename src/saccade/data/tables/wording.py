"""How messages put numbers of things, and lists too long to be read."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: int, thing: str, things: str = "") -> str:
    """So many things, in words.

    >>> counted(1, "picture"), counted(2000, "picture"), counted(0, "query", "queries")
    ('1 picture', '2,000 pictures', '0 queries')
    """
    return f"1 {thing}" if number == 1 else f"{number:,} {things or thing + 's'}"


def first_few(names: Sequence[str], most: int) -> str:
    """``names`` in one line, no more than ``most`` of them.

    >>> first_few(["a", "b"], 2), first_few(["a", "b", "c"], 2)
    ('a; b', 'a; b; …')
    """
    return "; ".join(names[:most]) + ("; …" if len(names) > most else "")
