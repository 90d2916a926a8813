"""Words of a table that differ in spelling alone, such as ``cup`` and ``Cup``: nothing is changed, only told.

Which of them are one word is for the user to say: ``Polish`` and ``polish`` are not.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable

from saccade.data.tables.wording import first_few

_SHOWN = 3  # groups of words in a warning


def spelt_alike(words: Iterable[str]) -> list[list[str]]:
    """Groups of words that only capitals, spaces or underscores, or their encoding tell apart.

    >>> spelt_alike(["Cup", "cup", "coffee_pot", "plate", "Coffee pot"])
    [['Coffee pot', 'coffee_pot'], ['Cup', 'cup']]
    """
    groups: dict[str, list[str]] = {}
    for word in sorted(set(words)):
        plain = unicodedata.normalize("NFKC", word).casefold().replace("_", " ")
        groups.setdefault(" ".join(plain.split()), []).append(word)
    return [group for group in groups.values() if len(group) > 1]


def warn_of_spellings(table: str, words: Iterable[str], things: str) -> None:
    """Say which words of a table are taken for different ones though they are spelt alike.

    Args:
        table: READER:PATH.
        words: each is learnt as one of its own.
        things: what they are, in the plural.
    """
    alike = spelt_alike(words)
    if alike:
        named = first_few([", ".join(f"'{word}'" for word in group) for group in alike], _SHOWN)
        warnings.warn(
            f"{table}: {things} that differ in spelling alone are learnt as different ones: {named}; "
            "spell those that mean the same alike",
            stacklevel=3,
        )
