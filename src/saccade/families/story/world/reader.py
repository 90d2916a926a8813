"""Answers a question from the sentences alone, by rules: every question of bAbI's twenty tasks.

It checks the story generator, and says what the answer of an edited story is: one without a sentence, or with two names
exchanged. What the sentences do not tell has no answer (None).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.kinds import SIDES, colour_of, fear_of, is_beside, is_smaller
from saccade.families.story.world.places import motive_of, room_for, way_between, what_is_beside, what_it_is_beside
from saccade.families.story.world.state import Known, State, event_of

_Rule = Callable[[Sequence[str], "re.Match[str]"], Known | None]
"""Sentences, the question → what is known."""


def answer_of(asked: StoryExample) -> str | None:
    """The answer that the sentences of ``asked`` give, in lower case; None if they give none."""
    known = derive(asked.sentences, asked.question)
    return known.answer if known else None


def derive(sentences: Sequence[str], question: str) -> Known | None:
    """The answer to ``question`` in lower case, and the indices of the sentences that it follows from, in order.

    >>> derive(["Mary took the apple.", "Mary went to the den.", "John left."], "Where is the apple?")
    Known(answer='den', supporting=(0, 1))
    """
    asked = " ".join(words_of(question))
    for form, rule in _QUESTIONS:
        if match := form.fullmatch(asked):
            return rule(sentences, match)
    return None


def read(sentences: Sequence[str]) -> State:
    """What is so after ``sentences``; those that this world does not know change nothing."""
    state = State()
    for at, sentence in enumerate(sentences):
        if event := event_of(sentence):
            state.update(at, event)
    return state


def _gift(pick: str) -> _Rule:
    """The giver, thing or taker of the last gift that fits the question."""

    def rule(sentences: Sequence[str], match: re.Match[str]) -> Known | None:
        found = read(sentences).gift(**match.groupdict())
        if not found:
            return None
        at, event = found
        return Known({"giver": event.who[0], "thing": event.what, "taker": event.other}[pick], (at,))

    return rule


_QUESTIONS: tuple[tuple[re.Pattern[str], _Rule], ...] = tuple(
    (re.compile(form), rule)
    for form, rule in (
        (r"where is the (\S+)", lambda told, found: read(told).place_of_thing(found[1])),
        (r"where is (\S+)", lambda told, found: read(told).place_of_person(found[1])),
        (r"where was the (\S+) before the (\S+)", lambda told, found: read(told).thing_before(found[1], found[2])),
        (r"where was (\S+) before the (\S+)", lambda told, found: read(told).person_before(found[1], found[2])),
        (r"is (\S+) in the (\S+)", lambda told, found: read(told).is_in(found[1], found[2])),
        (r"how many objects is (\S+) carrying", lambda told, found: read(told).number_carried(found[1])),
        (r"what is (\S+) carrying", lambda told, found: read(told).things_carried(found[1])),
        (r"what did (?P<giver>\S+) give to (?P<taker>\S+)", _gift("thing")),
        (r"who did (?P<giver>\S+) give the (?P<thing>\S+) to", _gift("taker")),
        (r"who gave the (?P<thing>\S+)", _gift("giver")),
        (r"who gave the (?P<thing>\S+) to (?P<taker>\S+)", _gift("giver")),
        (r"who received the (?P<thing>\S+)", _gift("taker")),
        (r"what is (\S+) of the (\S+)", lambda told, found: what_is_beside(told, found[1], found[2])),
        (r"what is the (\S+) (\S+) of", lambda told, found: what_it_is_beside(told, found[1], found[2])),
        (r"how do you go from the (\S+) to the (\S+)", lambda told, found: way_between(told, found[1], found[2])),
        (r"what is (\S+) afraid of", lambda told, found: fear_of(told, found[1])),
        (r"what colou?r is (\S+)", lambda told, found: colour_of(told, found[1])),
        (r"is the (.+) bigger than the (.+)", lambda told, found: is_smaller(told, found[2], found[1])),
        (r"does the (.+) fit (?:in|inside) the (.+)", lambda told, found: is_smaller(told, found[1], found[2])),
        (rf"is the (.+) ({SIDES}) the (.+)", lambda told, found: is_beside(told, found[1], found[2], found[3])),
        (r"where will (\S+) go", lambda told, found: room_for(told, found[1])),
        (r"why did (\S+) (?:go to|get) the \S+", lambda told, found: motive_of(told, found[1])),
    )
)
