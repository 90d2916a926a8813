"""Captions as words and n-grams: what every score of captions starts from, and the checks they share.

A caption is text as people write it. Hypotheses and references are cut into words here and nowhere else, both by the
rules of the COCO caption evaluation (:mod:`.ptb_tokens`): lower case, no punctuation, "'s" a word of its own. So a
caption that repeats a reference word for word is right, and a full stop, which both have, is no word and lifts no
score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from saccade.errors import DataError
from saccade.metrics.ptb_tokens import ptb_tokens

Words = list[str]
NGram = tuple[str, ...]


class Judged(NamedTuple):
    """What was said of one picture, and what people said of it."""

    said: Words
    """May be empty."""
    references: list[Words]
    """At least one, each with at least one word."""


def judged_captions(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[Judged]:
    """Hypotheses beside their references, cut into words.

    A reference without a word is left out; a hypothesis without one is kept, and every score of it is 0.

    Raises:
        DataError: not one hypothesis and at least one reference with words for each picture; the message names it.
    """
    for name, captions in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(captions, str):
            raise DataError(f"{name}: found one string, expected one entry for each picture: wrap it in a list")
    if len(hypotheses) != len(references):
        raise DataError(
            f"captions: {len(hypotheses)} hypotheses and references of {len(references)} pictures; give one hypothesis "
            "for each picture"
        )
    return [_judged(index, said, known) for index, (said, known) in enumerate(zip(hypotheses, references))]


def ngrams(words: Words, length: int) -> Counter[NGram]:
    """How often each run of ``length`` words occurs.

    >>> ngrams("a dog and a dog".split(), 2)[("a", "dog")]
    2
    """
    return Counter(zip(*(words[start:] for start in range(length))))


def _judged(index: int, said: str, references: Sequence[str]) -> Judged:
    if isinstance(references, str):
        raise DataError(f"references of picture {index}: found one string, expected several: wrap it in a tuple")
    for caption in (said, *references):
        if not isinstance(caption, str):
            raise DataError(f"captions of picture {index}: expected strings, found {type(caption).__name__}")
    known = [words for words in map(ptb_tokens, references) if words]
    if not known:
        raise DataError(f"picture {index} has no reference with a word in it; leave the picture out")
    return Judged(ptb_tokens(said), known)
