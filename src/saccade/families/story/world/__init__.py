"""Generates stories in the form of bAbI from a small world, and answers questions about such stories by rules.

The rules check the generator, and say what the answer of an edited story is. What the sentences do not tell has no
answer (None).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world import facts
from saccade.families.story.world.people import PLOTS, generate_people
from saccade.families.story.world.state import Derived, Draws, State, Words

# Titles of the tasks, by number.
TASKS = {
    1: "single supporting fact",
    2: "two supporting facts",
    3: "three supporting facts",
    4: "two-argument relations",
    5: "three-argument relations",
    6: "yes/no questions",
    7: "counting",
    8: "lists and sets",
    9: "simple negation",
    10: "indefinite knowledge",
    11: "basic coreference",
    12: "conjunction",
    13: "compound coreference",
    14: "time reasoning",
    15: "basic deduction",
    16: "basic induction",
    17: "positional reasoning",
    18: "size reasoning",
    19: "path finding",
    20: "agents' motivations",
}

_OF_FACTS: dict[int, Callable[[Draws], list[StoryExample]]] = {
    4: facts.generate_beside,
    15: facts.generate_fears,
    16: facts.generate_colours,
    17: facts.generate_shapes,
    18: facts.generate_sizes,
    19: facts.generate_path,
    20: facts.generate_motives,
}


def generate_story(task: int, seed: int, index: int, words: Words = "babi") -> list[StoryExample]:
    """One story of a ``task``, 1 to 20, with its questions: a function of the arguments.

    ``words`` are the official ones, or with ``wide`` also the founding document's, in tasks 1–3 and 5–14.
    """
    draws = Draws(seed, task, index)
    examples = generate_people(task, draws, words) if task in PLOTS else _OF_FACTS[task](draws)
    where = f"generated, seed {seed}, qa{task}, story {index}"
    return [replace(one, task=f"qa{task}", where=where) for one in examples]


def derive(sentences: Sequence[str], question: str) -> Derived | None:
    """The answer to ``question`` in lower case, and the indices of the sentences that imply it, in order.

    >>> derive(["Mary took the apple.", "Mary went to the den.", "John left."], "Where is the apple?")
    Derived(answer='den', supporting=(0, 1))
    """
    words = " ".join(words_of(question))
    for form, answer in (_BY_STATE | _BY_FACTS).items():
        if match := re.fullmatch(form, words):
            return answer(State(sentences) if form in _BY_STATE else sentences, *match.groups())
    return None


# By form of question: the rule that answers it from the state and the words in the gaps.
_BY_STATE: dict[str, Callable[..., Derived | None]] = {
    r"where is the (\S+)": State.place_of_thing,
    r"where is (\S+)": State.place_of_person,
    r"where was the (\S+) before the (\S+)": State.thing_before,
    r"where was (\S+) before the (\S+)": State.person_before,
    r"is (\S+) in the (\S+)": State.is_in,
    r"how many objects is (\S+) carrying": State.number_carried,
    r"what is (\S+) carrying": State.things_carried,
    r"what did (\S+) give to (\S+)": lambda state, giver, taker: state.gift("thing", giver=giver, taker=taker),
    r"who did (\S+) give the (\S+) to": lambda state, giver, thing: state.gift("taker", giver=giver, thing=thing),
    r"who gave the (\S+)": lambda state, thing: state.gift("giver", thing=thing),
    r"who gave the (\S+) to (\S+)": lambda state, thing, taker: state.gift("giver", thing=thing, taker=taker),
    r"who received the (\S+)": lambda state, thing: state.gift("taker", thing=thing),
}
# The same from the sentences.
_BY_FACTS: dict[str, Callable[..., Derived | None]] = {
    r"what is (\S+ of) the (\S+)": facts.what_is_beside,
    r"what is the (\S+) ((?:north|east|south|west) of)": lambda sentences, room, side: facts.what_is_beside(
        sentences, facts.OPPOSITE[side], room
    ),
    r"how do you go from the (\S+) to the (\S+)": facts.path_between,
    r"what is (\S+) afraid of": facts.fear_of,
    r"what colou?r is (\S+)": facts.colour_of,
    r"is the (.+) bigger than the (.+)": lambda sentences, big, small: facts.is_smaller(sentences, small, big),
    r"does the (.+) fit (?:in|inside) the (.+)": facts.is_smaller,
    rf"is the (.+) ({facts.SIDES}) the (.+)": facts.is_beside,
    r"where will (\S+) go": facts.room_for,
    r"why did (\S+) (?:go to|get) the \S+": facts.motive_of,
}

__all__ = ["TASKS", "derive", "generate_story"]
