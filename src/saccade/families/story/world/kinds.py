"""Tasks without people: what kinds are, and how large, and the places of shapes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.lexicon import Draws
from saccade.families.story.world.state import Known

_PLURALS = {"cat": "cats", "mouse": "mice", "sheep": "sheep", "wolf": "wolves"}
_SINGULARS = {plural: kind for kind, plural in _PLURALS.items()}
_FEARFUL = ("emily", "gertrude", "jessica", "winona")
_COLOURED = ("bernhard", "brian", "greg", "julius", "lily")
_KINDS = ("frog", "lion", "rhino", "swan")
_COLOURS = ("gray", "green", "white", "yellow")

_KIND = re.compile(r"(\S+) is an? (\S+)")
_FEAR = re.compile(r"(\S+) are afraid of (\S+)")
_COLOUR = re.compile(r"(\S+) is (\S+)")


def fear_of(sentences: Sequence[str], name: str) -> Known | None:
    """What is NAME afraid of? A kind, in the singular. It follows from what NAME is and what its kind is afraid of."""
    kinds, fears = _told(sentences, _KIND), _told(sentences, _FEAR)
    for at, one, kind in reversed(kinds):
        if one == name:
            for where, afraid, feared in reversed(fears):
                if _SINGULARS.get(afraid, afraid) == kind:
                    return Known(_SINGULARS.get(feared, feared), (at, where))
    return None


def colour_of(sentences: Sequence[str], name: str) -> Known | None:
    """What color is NAME? Its own if told, else that of the one of its kind that was told last."""
    kinds = _told(sentences, _KIND)
    colours = {one: (at, colour) for at, one, colour in _told(sentences, _COLOUR)}
    if name in colours:
        at, colour = colours[name]
        return Known(colour, (at,))
    own = next(((at, kind) for at, one, kind in reversed(kinds) if one == name), None)
    if own is None:
        return None
    for at, one, kind in reversed(kinds):
        if kind == own[1] and one in colours:
            where, colour = colours[one]
            return Known(colour, (own[0], at, where))
    return None


def _told(sentences: Sequence[str], form: re.Pattern[str]) -> list[tuple[int, str, str]]:
    found = ((at, form.fullmatch(" ".join(words_of(sentence)))) for at, sentence in enumerate(sentences))
    return [(at, match[1], match[2]) for at, match in found if match]


def generate_fears(draws: Draws) -> list[StoryExample]:
    """Task 15: four kinds, each afraid of another; four names, each of some kind; four questions."""
    kinds = tuple(_PLURALS)
    facts = [f"{_PLURALS[kind].capitalize()} are afraid of {_PLURALS[draws.pick_but(kinds, kind)]}." for kind in kinds]
    facts += [f"{name.capitalize()} is a {draws.pick(kinds)}." for name in _FEARFUL]
    sentences = tuple(draws.some(facts, len(facts)))
    asked = []
    for _ in range(4):
        name = draws.pick(_FEARFUL)
        if known := fear_of(sentences, name):
            asked.append(StoryExample(sentences, f"What is {name} afraid of?", known.answer, known.supporting))
    return asked


def generate_colours(draws: Draws) -> list[StoryExample]:
    """Task 16: five names with kinds, the colours of four of them, and a question about the fifth.

    As in the official files, one other animal is of the same kind in nine of ten stories. In the tenth there are
    several, and the one that was told last counts.
    """
    names = draws.some(_COLOURED, 5)
    kind = draws.pick(_KINDS)
    alike = 2 if draws.chance() < 0.9 else draws.pick((4, 5))
    kinds = {name: kind if place < alike else draws.pick_but(_KINDS, kind) for place, name in enumerate(names)}
    coloured, asked = names[1:], names[0]
    colours = {name: draws.pick(_COLOURS) for name in coloured}
    facts = {name: [f"{name.capitalize()} is a {kinds[name]}."] for name in names}
    for name in coloured:
        facts[name].append(f"{name.capitalize()} is {colours[name]}.")
    sentences: list[str] = []
    kind_at: dict[str, int] = {}  # by name, the sentence that tells the kind
    colour_at: dict[str, int] = {}
    while left := [name for name in names if facts[name]]:
        others = [name for name in left if name != asked]
        name = draws.pick(left if draws.chance() < 0.5 or not others else others)
        (colour_at if name in kind_at else kind_at)[name] = len(sentences)
        sentences.append(facts[name].pop(0))
    like = max((name for name in coloured if kinds[name] == kind), key=kind_at.__getitem__)
    supporting = kind_at[asked], kind_at[like], colour_at[like]
    return [StoryExample(tuple(sentences), f"What color is {asked.capitalize()}?", colours[like], supporting)]


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
    told = _sizes_told(sentences)
    if chain := _chain(told, small, big):
        return Known("yes", chain[::-1])
    if chain := _chain(told, big, small):
        return Known("no", chain)
    return None


def _sizes_told(sentences: Sequence[str]) -> _Told:
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
        pairs = {(small, big) for _, small, big in _sizes_told(sentences)}
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
