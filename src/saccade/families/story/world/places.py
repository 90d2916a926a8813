"""Tasks 4 and 19: rooms that lie north, east, south or west of each other.

Task 4 asks for one side of a relation that was told, perhaps the other way round. Task 19 asks for a way of two steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.draws import Draws
from saccade.families.story.world.lexicon import HOME
from saccade.families.story.world.state import Known

_STEPS = {"north": (0, 1), "east": (1, 0), "south": (0, -1), "west": (-1, 0)}
_OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}
_SIDES = tuple(_STEPS)
_RELATION = re.compile(r"the (\S+) is (north|east|south|west) of the (\S+)")


class Side(NamedTuple):
    """``first`` lies on that ``side`` of ``second``; sentence ``at`` tells it."""

    at: int
    first: str
    side: str
    second: str


def sides_told(sentences: Iterable[str]) -> list[Side]:
    """Each relation that ``sentences`` tell, and its reverse."""
    found = []
    for at, sentence in enumerate(sentences):
        if match := _RELATION.fullmatch(" ".join(words_of(sentence))):
            first, side, second = match.groups()
            found += [Side(at, first, side, second), Side(at, second, _OPPOSITE[side], first)]
    return found


def what_is_beside(sentences: Sequence[str], side: str, room: str) -> Known | None:
    """What is SIDE of the ROOM?"""
    for told in reversed(sides_told(sentences)):
        if (told.side, told.second) == (side, room):
            return Known(told.first, (told.at,))
    return None


def what_it_is_beside(sentences: Sequence[str], room: str, side: str) -> Known | None:
    """What is the ROOM SIDE of?"""
    return what_is_beside(sentences, _OPPOSITE[side], room)


def way_between(sentences: Sequence[str], start: str, end: str) -> Known | None:
    """How do you go from the START to the END? The shortest way that was told, by first letters: ``n,e``."""
    told = sides_told(sentences)
    ways: dict[str, Known] = {start: Known("", ())}
    edge = [start]
    while edge and end not in ways:
        reached = []
        for room in edge:
            answer, supporting = ways[room]
            for side in told:  # side.first is reached from side.second
                if side.second == room and side.first not in ways:
                    ways[side.first] = Known(f"{answer},{side.side[0]}".lstrip(","), (*supporting, side.at))
                    reached.append(side.first)
        edge = reached
    return ways[end] if start != end and end in ways else None


def generate_beside(draws: Draws) -> list[StoryExample]:
    """Task 4: three rooms in a row, two sentences, one question."""
    rooms, side = draws.some(HOME.rooms, 3), draws.pick(_SIDES)
    pairs = draws.some(((rooms[0], rooms[1]), (rooms[1], rooms[2])), 2)
    sentences = tuple(_said(draws, first, side, second) for first, second in pairs)
    at = draws.below(2)
    first, second = pairs[at]
    if draws.chance() < 0.5:
        first, second, side = second, first, _OPPOSITE[side]
    if draws.chance() < 0.5:
        return [StoryExample(sentences, f"What is {side} of the {second}?", first, (at,))]
    return [StoryExample(sentences, f"What is the {first} {side} of?", second, (at,))]


def generate_way(draws: Draws) -> list[StoryExample]:
    """Task 19: six rooms on a grid, each beside one told before; a way of two steps is asked for.

    Rooms that are not told to be neighbours do not touch, so the way is the only one.
    """
    rooms = draws.some(HOME.rooms, 6)
    cells = {(0, 0): rooms[0]}
    links: list[tuple[str, str, str]] = []  # first, its side of second, second
    while len(cells) < len(rooms):
        (x, y), side = draws.pick(list(cells)), draws.pick(_SIDES)
        cell = x + _STEPS[side][0], y + _STEPS[side][1]
        touching = [1 for across, up in _STEPS.values() if (cell[0] + across, cell[1] + up) in cells]
        if cell not in cells and len(touching) == 1:
            room = rooms[len(cells)]
            links.append((room, side, cells[x, y]))
            cells[cell] = room
    links = draws.some(links, len(links))
    sentences = tuple(_said(draws, first, side, second) for first, side, second in links)
    ways = []
    for start in rooms:
        for end in rooms:
            known = way_between(sentences, start, end)
            if known and len(known.supporting) == 2:
                ways.append((start, end, known))
    start, end, known = draws.pick(ways)
    return [StoryExample(sentences, f"How do you go from the {start} to the {end}?", known.answer, known.supporting)]


def _said(draws: Draws, first: str, side: str, second: str) -> str:
    """The relation, or its reverse."""
    if draws.chance() < 0.5:
        first, side, second = second, _OPPOSITE[side], first
    return f"The {first} is {side} of the {second}."
