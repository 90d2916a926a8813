"""Tasks 15 and 16: animals with names. One is afraid of what its kind is afraid of, and has the colour of its kind."""

from __future__ import annotations

import re
from collections.abc import Sequence

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.draws import Draws
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
