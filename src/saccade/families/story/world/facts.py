"""Tasks of a few facts: ways between rooms (4, 19), kinds and colours (15, 16), shapes (17), sizes (18), motives (20).

Each has a rule that answers from the sentences alone, and a function that generates one story with its questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import NamedTuple

from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world.state import BABI, ROOMS, Derived, Draws

Step = tuple[int, int]


def _matches(form: re.Pattern[str], sentences: Sequence[str]) -> list[tuple[int, re.Match[str]]]:
    matches = ((at, form.fullmatch(" ".join(words_of(sentence)))) for at, sentence in enumerate(sentences))
    return [(at, match) for at, match in matches if match]


class Link(NamedTuple):
    """A sentence tells a step from ``start`` to ``end``."""

    at: int
    start: str
    end: str
    side: str = ""


def _path(links: Sequence[Link], start: str, end: str) -> tuple[Link, ...]:
    """The shortest known path; empty where there is none."""
    paths: dict[str, tuple[Link, ...]] = {start: ()}
    reached = [start]
    for place in reached:  # grows
        for link in links:
            if link.start == place and link.end not in paths:
                paths[link.end] = (*paths[place], link)
                reached.append(link.end)
    return paths.get(end, ())


_COMPASS: dict[str, Step] = {"north of": (0, 1), "east of": (1, 0), "south of": (0, -1), "west of": (-1, 0)}
_SIDES: dict[str, Step] = {"above": (0, 1), "below": (0, -1), "to the left of": (-1, 0), "to the right of": (1, 0)}
_STEPS = _COMPASS | _SIDES
OPPOSITE = {
    side: other for steps in (_COMPASS, _SIDES) for side, (across, up) in steps.items()
    for other, step in steps.items() if step == (-across, -up)
}  # fmt: skip
SIDES = "|".join(_SIDES)  # A pattern that fits any side of a shape
_RELATION = re.compile(rf"the (.+) is ({'|'.join(_STEPS)}) the (.+)")


def _relation(first: str, side: str, second: str, *, reverse: bool) -> str:
    if reverse:
        first, side, second = second, OPPOSITE[side], first
    return f"The {first} is {side} the {second}."


def _relations(sentences: Sequence[str]) -> list[Link]:
    """Each relation that ``sentences`` tell, as a step from the second to the first, and back."""
    links = []
    for at, match in _matches(_RELATION, sentences):
        first, side, second = match.groups()
        links += [Link(at, second, first, side), Link(at, first, second, OPPOSITE[side])]
    return links


def what_is_beside(sentences: Sequence[str], side: str, room: str) -> Derived | None:
    """What is SIDE the ROOM?"""
    beside = [
        Derived(link.end, (link.at,)) for link in _relations(sentences) if (link.side, link.start) == (side, room)
    ]
    return beside[-1] if beside else None


def path_between(sentences: Sequence[str], start: str, end: str) -> Derived | None:
    """How do you go from the START to the END? The shortest known way, by first letters: ``n,e``."""
    path = _path(_relations(sentences), start, end)
    return Derived(",".join(link.side[0] for link in path), tuple(link.at for link in path)) if path else None


def is_beside(sentences: Sequence[str], first: str, side: str, second: str) -> Derived | None:
    """Is the FIRST SIDE the SECOND? Each known neighbour lies one step away."""
    path = _path(_relations(sentences), first, second)
    if not path:
        return None
    steps = [_STEPS[link.side] for link in path]  # they lead from FIRST to SECOND: the other way
    x, y = -sum(across for across, _ in steps), -sum(up for _, up in steps)
    across, up = _STEPS[side]
    return Derived("yes" if across * x + up * y > 0 else "no", tuple(link.at for link in path))


def generate_beside(draws: Draws) -> list[StoryExample]:
    """Task 4: three rooms in a row, two sentences, and a question about one of them."""
    rooms, side = draws.some(ROOMS, 3), draws.pick(tuple(_COMPASS))
    pairs = draws.some(((rooms[0], rooms[1]), (rooms[1], rooms[2])), 2)
    sentences = tuple(_relation(first, side, second, reverse=draws.chance() < 0.5) for first, second in pairs)
    at = draws.pick((0, 1))
    first, second = pairs[at]
    if draws.chance() < 0.5:
        first, second, side = second, first, OPPOSITE[side]
    asks_first = draws.chance() < 0.5
    question = f"What is {side} the {second}?" if asks_first else f"What is the {first} {side}?"
    return [StoryExample(sentences, question, first if asks_first else second, (at,))]


def generate_path(draws: Draws) -> list[StoryExample]:
    """Task 19: six rooms on a grid, each beside an earlier one, and the way over two steps.

    Other rooms do not touch, so the way is the only one.
    """
    rooms = draws.some(ROOMS, 6)
    cells = {(0, 0): rooms[0]}
    relations: list[tuple[str, str, str]] = []  # first, its side of second, second
    while len(cells) < len(rooms):
        (x, y), side = draws.pick(list(cells)), draws.pick(tuple(_COMPASS))
        cell = x + _STEPS[side][0], y + _STEPS[side][1]
        touching = [1 for across, up in _COMPASS.values() if (cell[0] + across, cell[1] + up) in cells]
        if cell not in cells and len(touching) == 1:
            room = rooms[len(cells)]
            relations.append((room, side, cells[x, y]))
            cells[cell] = room
    relations = draws.some(relations, len(relations))
    sentences = tuple(_relation(*relation, reverse=draws.chance() < 0.5) for relation in relations)
    paths = []
    for start, end in permutations(rooms, 2):
        derived = path_between(sentences, start, end)
        if derived and len(derived.supporting) == 2:
            paths.append((f"How do you go from the {start} to the {end}?", derived))
    question, derived = draws.pick(paths)
    return [StoryExample(sentences, question, *derived)]


_SHAPES = ("blue square", "pink rectangle", "red sphere", "red square", "triangle", "yellow square")


def generate_shapes(draws: Draws) -> list[StoryExample]:
    """Task 17: two shapes beside a third, and eight questions about the two, half answered yes."""
    middle, *ends = draws.some(_SHAPES, 3)
    sides = draws.some(tuple(_SIDES), 2)
    sentences = tuple(
        _relation(middle, side, end, reverse=draws.chance() >= 2 / 3) for end, side in zip(ends, sides, strict=True)
    )
    questions: dict[str, list[StoryExample]] = {"yes": [], "no": []}
    for first, second in (ends, ends[::-1]):
        for side in _SIDES:
            if derived := is_beside(sentences, first, side, second):
                question = f"Is the {first} {side} the {second}?"
                questions[derived.answer].append(StoryExample(sentences, question, *derived))
    return [draws.pick(questions["yes" if draws.chance() < 0.5 else "no"]) for _ in range(8)]


_PLURALS = {"cat": "cats", "mouse": "mice", "sheep": "sheep", "wolf": "wolves"}
_SINGULARS = {plural: kind for kind, plural in _PLURALS.items()}
_FEARFUL = ("emily", "gertrude", "jessica", "winona")
_COLOURED = ("bernhard", "brian", "greg", "julius", "lily")
_KINDS = ("frog", "lion", "rhino", "swan")
_COLOURS = ("gray", "green", "white", "yellow")
_KIND = re.compile(r"(\S+) is an? (\S+)")
_FEAR = re.compile(r"(\S+) are afraid of (\S+)")
_COLOUR = re.compile(r"(\S+) is (\S+)")


def fear_of(sentences: Sequence[str], name: str) -> Derived | None:
    """What is NAME afraid of? A kind, in the singular, by NAME's kind and its fear."""
    fears = {_SINGULARS.get(match[1], match[1]): (at, match[2]) for at, match in _matches(_FEAR, sentences)}
    for at, match in reversed(_matches(_KIND, sentences)):
        if match[1] == name and match[2] in fears:
            where, feared = fears[match[2]]
            return Derived(_SINGULARS.get(feared, feared), (at, where))
    return None


def colour_of(sentences: Sequence[str], name: str) -> Derived | None:
    """What color is NAME? Its own if known, else that of the last known one of its kind."""
    colours = {match[1]: (at, match[2]) for at, match in _matches(_COLOUR, sentences)}
    if name in colours:
        at, colour = colours[name]
        return Derived(colour, (at,))
    kinds = [(at, match[1], match[2]) for at, match in reversed(_matches(_KIND, sentences))]
    kind_at, kind = next(((at, kind) for at, one, kind in kinds if one == name), (None, ""))
    for at, one, other in kinds:
        if kind_at is not None and other == kind and one in colours:
            where, colour = colours[one]
            return Derived(colour, (kind_at, at, where))
    return None


def generate_fears(draws: Draws) -> list[StoryExample]:
    """Task 15: four kinds, each afraid of another; four names, each of some kind; four questions."""
    kinds = tuple(_PLURALS)
    facts = [f"{_PLURALS[kind].capitalize()} are afraid of {_PLURALS[draws.pick_but(kinds, kind)]}." for kind in kinds]
    facts += [f"{name.capitalize()} is a {draws.pick(kinds)}." for name in _FEARFUL]
    sentences = tuple(draws.some(facts, len(facts)))
    answers = [(name, fear_of(sentences, name)) for name in (draws.pick(_FEARFUL) for _ in range(4))]
    return [StoryExample(sentences, f"What is {name} afraid of?", *derived) for name, derived in answers if derived]


def generate_colours(draws: Draws) -> list[StoryExample]:
    """Task 16: five names with kinds, the colours of four, and a question about the fifth.

    As in the official files, one story in ten has several of its kind; the last counts.
    """
    names = draws.some(_COLOURED, 5)
    kind = draws.pick(_KINDS)
    alike = 2 if draws.chance() < 0.9 else draws.pick((4, 5))
    kinds = [kind if place < alike else draws.pick_but(_KINDS, kind) for place in range(5)]
    facts = {name: [f"{name.capitalize()} is a {kind}."] for name, kind in zip(names, kinds, strict=True)}
    subject = names[0]
    for name in names[1:]:
        facts[name].append(f"{name.capitalize()} is {draws.pick(_COLOURS)}.")
    sentences: list[str] = []
    while left := [name for name in names if facts[name]]:
        others = [name for name in left if name != subject]
        name = draws.pick(left if draws.chance() < 0.5 or not others else others)
        sentences.append(facts[name].pop(0))
    derived = colour_of(sentences, subject)
    return [StoryExample(tuple(sentences), f"What color is {subject.capitalize()}?", *derived)] if derived else []


# The smallest two, in this order; the sizes of the others are drawn.
_SWEETS = ("chocolate", "box of chocolates")
_BOXES = ("box", "chest", "container", "suitcase")
_FACTS, _QUESTIONS = 5, 5
_MOST = 15  # Sentences before the questions at most
_FITS = re.compile(r"the (.+) fits inside the (.+)")
_BIGGER = re.compile(r"the (.+) is bigger than the (.+)")


def _sizes(sentences: Sequence[str]) -> list[Link]:
    fits = [Link(at, match[1], match[2]) for at, match in _matches(_FITS, sentences)]
    return sorted(fits + [Link(at, match[2], match[1]) for at, match in _matches(_BIGGER, sentences)])


def is_smaller(sentences: Sequence[str], small: str, big: str) -> Derived | None:
    """Whether SMALL is smaller than BIG.

    ``yes`` is supported from the big end to the small one, ``no`` the other way, as in the official files.
    """
    links = _sizes(sentences)
    if chain := _chain(links, small, big):
        return Derived("yes", chain[::-1])
    chain = _chain(links, big, small)
    return Derived("no", chain) if chain else None


def _chain(links: Sequence[Link], small: str, big: str) -> tuple[int, ...]:
    """Sentences from ``small`` to ``big``: two if possible, else the fewest; empty without a chain."""
    pairs = [
        (second.at, first.at)
        for second in links
        for first in links
        if (first.start, first.end, second.end) == (small, second.start, big)
    ]
    return min(pairs)[::-1] if pairs else tuple(link.at for link in _path(links, small, big))


def generate_sizes(draws: Draws) -> list[StoryExample]:
    """Task 18: sizes of some pairs, then five questions about pairs that only a third thing compares."""
    by_size = [*_SWEETS, *draws.some(_BOXES, len(_BOXES))]
    sentences: list[str] = []
    askable: list[tuple[str, str, tuple[int, ...]]] = []
    while not askable:
        if len(sentences) == _MOST:
            sentences.clear()  # nearly all pairs are compared directly: begin again
        for _ in range(_FACTS):
            low, high = sorted(draws.some(range(len(by_size)), 2))
            small, big = by_size[low], by_size[high]
            bigger = f"The {big} is bigger than the {small}."
            sentences.append(bigger if draws.chance() < 0.5 else f"The {small} fits inside the {big}.")
        pairs = {(link.start, link.end) for link in _sizes(sentences)}
        for small, big in permutations(by_size, 2):
            derived = None if (small, big) in pairs else is_smaller(sentences, small, big)
            if derived and derived.answer == "yes" and len(derived.supporting) == 2:
                askable.append((small, big, derived.supporting))
    examples = []
    for _ in range(_QUESTIONS):
        small, big, supporting = draws.pick(askable)
        form = "Is the {1} bigger than the {0}?" if draws.chance() < 0.5 else "Does the {0} fit in the {1}?"
        if draws.chance() < 0.5:
            examples.append(StoryExample(tuple(sentences), form.format(small, big), "yes", supporting))
        else:
            examples.append(StoryExample(tuple(sentences), form.format(big, small), "no", supporting[::-1]))
    return examples


# The room and thing that each feeling makes one want.
_MOTIVES = {
    "bored": ("garden", "football"),
    "hungry": ("kitchen", "apple"),
    "thirsty": ("kitchen", "milk"),
    "tired": ("bedroom", "pajamas"),
}
_PEOPLE = ("antoine", "jason", "sumit", "yann")
_FEELS = re.compile(rf"(\S+) is ({'|'.join(_MOTIVES)})")


def motive_of(sentences: Sequence[str], person: str) -> Derived | None:
    """Why did PERSON go to the ROOM, or get the THING? What they felt last."""
    felt = [Derived(match[2], (at,)) for at, match in _matches(_FEELS, sentences) if match[1] == person]
    return felt[-1] if felt else None


def room_for(sentences: Sequence[str], person: str) -> Derived | None:
    """Where will PERSON go?"""
    motive = motive_of(sentences, person)
    return motive and motive._replace(answer=_MOTIVES[motive.answer][0])


def generate_motives(draws: Draws) -> list[StoryExample]:
    """Task 20: everyone feels something, goes to a room and gets a thing if it is left; a question per sentence."""
    sentences: list[str] = []
    examples: list[StoryExample] = []
    taken: set[str] = set()
    steps = {person: _steps(draws, person, taken) for person in _PEOPLE}
    felt: dict[str, int] = {}  # by person: the sentence that says so
    while steps:
        person = draws.pick(tuple(steps))
        if (step := next(steps[person], None)) is None:
            del steps[person]
            continue
        sentence, question, answer = step
        at = felt.setdefault(person, len(sentences))
        sentences.append(sentence)
        examples.append(StoryExample(tuple(sentences), question, answer, (at,)))
    return examples


def _steps(draws: Draws, person: str, taken: set[str]) -> Iterator[tuple[str, str, str]]:
    """Sentence, question and answer of each of the person's steps."""
    feeling, name = draws.pick(tuple(_MOTIVES)), person.capitalize()
    room, thing = _MOTIVES[feeling]
    yield f"{name} is {feeling}.", f"Where will {person} go?", room
    yield f"{name} {draws.pick(BABI['go'])} the {room}.", f"Why did {person} go to the {room}?", feeling
    if thing not in taken:
        taken.add(thing)
        yield f"{name} {draws.pick(BABI['take'])} the {thing} there.", f"Why did {person} get the {thing}?", feeling
