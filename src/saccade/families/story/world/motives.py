"""Task 20: people are tired, bored, thirsty or hungry, so they go to a room and get a thing there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.draws import Draws
from saccade.families.story.world.lexicon import GO, TAKE
from saccade.families.story.world.state import Known


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
