"""Tasks of ways between rooms, and of why people go there.

Tasks 4 and 19: rooms that lie north, east, south or west of each other.

Task 4 asks for one side of a relation that was told, perhaps the other way round. Task 19 asks for a way of two steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.lexicon import GO, HOME, TAKE, Draws
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


class Motive(NamedTuple):
    """What one does about it."""

    room: str
    thing: str


_MOTIVES = {
    "bored": Motive("garden", "football"),
    "hungry": Motive("kitchen", "apple"),
    "thirsty": Motive("kitchen", "milk"),
    "tired": Motive("bedroom", "pajamas"),
}
_PEOPLE = ("antoine", "jason", "sumit", "yann")
_FEELS = re.compile(rf"(\S+) is ({'|'.join(_MOTIVES)})")


def motive_of(sentences: Sequence[str], person: str) -> Known | None:
    """Why did PERSON go to the ROOM, or get the THING? What they felt last."""
    for at in range(len(sentences) - 1, -1, -1):
        match = _FEELS.fullmatch(" ".join(words_of(sentences[at])))
        if match and match[1] == person:
            return Known(match[2], (at,))
    return None


def room_for(sentences: Sequence[str], person: str) -> Known | None:
    """Where will PERSON go?"""
    motive = motive_of(sentences, person)
    return motive and Known(_MOTIVES[motive.answer].room, motive.supporting)


def generate_motives(draws: Draws) -> list[StoryExample]:
    """Everyone feels something, goes to a room and gets a thing there, if it is left; each sentence has a question."""
    sentences: list[str] = []
    asked: list[StoryExample] = []
    taken: set[str] = set()
    acts = {person: _acts(draws, person, taken) for person in _PEOPLE}
    while acts:
        person = draws.pick(tuple(acts))
        step = next(acts[person], None)
        if step is None:
            del acts[person]
            continue
        sentence, question, answer = step
        sentences.append(sentence)
        since = next(at for at, told in enumerate(sentences) if told.startswith(f"{person.capitalize()} is "))
        asked.append(StoryExample(tuple(sentences), question, answer, (since,)))
    return asked


def _acts(draws: Draws, person: str, taken: set[str]) -> Iterator[tuple[str, str, str]]:
    """Sentence, question and answer of each of the person's steps."""
    feeling, name = draws.pick(tuple(_MOTIVES)), person.capitalize()
    room, thing = _MOTIVES[feeling]
    yield f"{name} is {feeling}.", f"Where will {person} go?", room
    yield f"{name} {draws.pick(GO)} the {room}.", f"Why did {person} go to the {room}?", feeling
    if thing not in taken:
        taken.add(thing)
        yield f"{name} {draws.pick(TAKE)} the {thing} there.", f"Why did {person} get the {thing}?", feeling
