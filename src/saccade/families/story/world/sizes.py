"""Task 18: what fits into what, and what is bigger."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.draws import Draws
from saccade.families.story.world.state import Known

_FITS = re.compile(r"the (.+) fits inside the (.+)")
_BIGGER = re.compile(r"the (.+) is bigger than the (.+)")


_SWEETS = ("chocolate", "box of chocolates")
"""The smallest two, in this order; the sizes of the others are drawn."""
_BOXES = ("box", "chest", "container", "suitcase")
_FACTS, _QUESTIONS = 5, 5
_MOST = 15
"""Sentences before the questions at most."""

_Told = list[tuple[int, str, str]]
"""Sentence, the smaller thing, the bigger thing."""


def is_smaller(sentences: Sequence[str], small: str, big: str) -> Known | None:
    """Whether SMALL is smaller than BIG.

    ``yes`` is supported from the big end to the small end, ``no`` the other way. As in the official files, two
    sentences with a third thing between come before one sentence that compares the two.
    """
    told = _told(sentences)
    if chain := _chain(told, small, big):
        return Known("yes", chain[::-1])
    if chain := _chain(told, big, small):
        return Known("no", chain)
    return None


def _told(sentences: Sequence[str]) -> _Told:
    found = []
    for at, sentence in enumerate(sentences):
        text = " ".join(words_of(sentence))
        if match := _FITS.fullmatch(text):
            found.append((at, match[1], match[2]))
        elif match := _BIGGER.fullmatch(text):
            found.append((at, match[2], match[1]))
    return found


def _chain(told: _Told, small: str, big: str) -> tuple[int, ...]:
    """Sentences from ``small`` to ``big``: two if that can be, else as few as there are; empty if there is no chain."""
    pairs = [
        (second, first)
        for second, middle, biggest in told
        if biggest == big
        for first, smallest, one in told
        if smallest == small and one == middle
    ]
    if pairs:
        second, first = min(pairs)
        return first, second
    ways: dict[str, tuple[int, ...]] = {small: ()}
    edge = [small]
    while edge and big not in ways:
        reached = []
        for thing in edge:
            for at, smaller, bigger in told:
                if smaller == thing and bigger not in ways:
                    ways[bigger] = (*ways[thing], at)
                    reached.append(bigger)
        edge = reached
    return ways.get(big, ())


def generate_sizes(draws: Draws) -> list[StoryExample]:
    """Task 18: sizes of some pairs, then five questions about pairs that only a third thing compares."""
    by_size = [*_SWEETS, *draws.some(_BOXES, len(_BOXES))]
    sentences: list[str] = []
    askable: list[tuple[str, str, Known]] = []
    while not askable:
        if len(sentences) == _MOST:
            sentences.clear()  # nearly all pairs are compared directly: begin again
        for _ in range(_FACTS):
            low, high = sorted(draws.some(range(len(by_size)), 2))
            small, big = by_size[low], by_size[high]
            bigger = f"The {big} is bigger than the {small}."
            sentences.append(bigger if draws.chance() < 0.5 else f"The {small} fits inside the {big}.")
        pairs = {(small, big) for _, small, big in _told(sentences)}
        for small in by_size:
            for big in by_size:
                known = None if (small, big) in pairs else is_smaller(sentences, small, big)
                if known and known.answer == "yes" and len(known.supporting) == 2:
                    askable.append((small, big, known))
    asked = []
    for _ in range(_QUESTIONS):
        small, big, known = draws.pick(askable)
        if draws.chance() < 0.5:
            question = f"Is the {big} bigger than the {small}?", f"Is the {small} bigger than the {big}?"
        else:
            question = f"Does the {small} fit in the {big}?", f"Does the {big} fit in the {small}?"
        if draws.chance() < 0.5:
            asked.append(StoryExample(tuple(sentences), question[0], "yes", known.supporting))
        else:
            asked.append(StoryExample(tuple(sentences), question[1], "no", known.supporting[::-1]))
    return asked
