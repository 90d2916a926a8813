"""Task 17: shapes above, below, left or right of each other, and questions about two that were not compared."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.draws import Draws
from saccade.families.story.world.state import Known

_SIDES = {"above": (0, 1), "below": (0, -1), "to the left of": (-1, 0), "to the right of": (1, 0)}
SIDES = "|".join(_SIDES)
"""A pattern that fits any side."""
_RELATION = re.compile(rf"the (.+) is ({SIDES}) the (.+)")


_SHAPES = ("blue square", "pink rectangle", "red sphere", "red square", "triangle", "yellow square")


def is_beside(sentences: Sequence[str], first: str, side: str, second: str) -> Known | None:
    """Is the FIRST SIDE the SECOND? Each told neighbour lies one step away."""
    told = []
    for at, sentence in enumerate(sentences):
        if match := _RELATION.fullmatch(" ".join(words_of(sentence))):
            one, where, other = match.groups()
            across, up = _SIDES[where]
            told += [(at, one, (across, up), other), (at, other, (-across, -up), one)]
    ways: dict[str, tuple[int, int, tuple[int, ...]]] = {first: (0, 0, ())}  # where first is, seen from each shape
    edge = [first]
    while edge and second not in ways:
        reached = []
        for shape in edge:
            x, y, supporting = ways[shape]
            for at, one, (across, up), other in told:
                if one == shape and other not in ways:
                    ways[other] = x + across, y + up, (*supporting, at)
                    reached.append(other)
        edge = reached
    if first == second or second not in ways:
        return None
    x, y, supporting = ways[second]
    across, up = _SIDES[side]
    return Known("yes" if across * x + up * y > 0 else "no", supporting)


def generate_shapes(draws: Draws) -> list[StoryExample]:
    """Task 17: two shapes beside a third, and eight questions about the two; half of the answers are yes."""
    middle, *ends = draws.some(_SHAPES, 3)
    sentences = tuple(
        f"The {middle} is {side} the {end}."
        if draws.chance() < 2 / 3
        else f"The {end} is {_opposite(side)} the {middle}."
        for end, side in zip(ends, draws.some(tuple(_SIDES), 2), strict=True)
    )
    questions: dict[str, list[StoryExample]] = {"yes": [], "no": []}
    for first, second in (ends, ends[::-1]):
        for side in _SIDES:
            if known := is_beside(sentences, first, side, second):
                question = f"Is the {first} {side} the {second}?"
                questions[known.answer].append(StoryExample(sentences, question, known.answer, known.supporting))
    return [draws.pick(questions["yes" if draws.chance() < 0.5 else "no"]) for _ in range(8)]


def _opposite(side: str) -> str:
    across, up = _SIDES[side]
    return next(other for other, step in _SIDES.items() if step == (-across, -up))
