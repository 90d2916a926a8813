"""One question about one story, and how a text is cut into words. Every reader and the generator return this type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_AROUND_WORDS = ".?!\"'“”‘’„«»`"


@dataclass(frozen=True, slots=True)
class StoryExample:
    """One question, with the sentences that were told before it."""

    sentences: tuple[str, ...]
    """In the order of telling, as written, without line numbers."""
    question: str
    answer: str
    """One word, or several joined by commas: ``apple,milk``."""
    supporting: tuple[int, ...] = ()
    """Indices into ``sentences``, in the order in which the answer needs them."""
    task: str = ""
    """For example ``qa1``."""
    where: str = ""
    """``FILE, line N``, for messages."""


@lru_cache(maxsize=1 << 16)  # stories repeat their sentences: a bAbI file has a few hundred different ones
def words_of(text: str) -> tuple[str, ...]:
    """The words of ``text`` in lower case, without the full stops, question marks, "!" and quotes around them.

    A comma ends a word. Apostrophes and points inside a word stay.

    >>> words_of("Where is Mary's milk? ")
    ('where', 'is', "mary's", 'milk')
    >>> words_of("apple,milk")
    ('apple', 'milk')
    """
    cut = (word.strip(_AROUND_WORDS) for word in text.lower().replace(",", " ").split())
    return tuple(word for word in cut if word)
