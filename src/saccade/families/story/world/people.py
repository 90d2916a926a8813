"""Stories of tasks 1–3 and 5–14: people go from room to room, take things, drop them and hand them on.

A story is told in blocks of two sentences. After each block one question is asked, if there is one whose key sentence
is among the last few; otherwise the story goes on. The official files follow this rule, which gives their stories their
lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from saccade.families.story.stories import StoryExample
from saccade.families.story.world.lexicon import (
    GIVERS,
    HOME,
    LINKS,
    TIMES,
    TOWN,
    VERBS,
    WIDE_PEOPLE,
    WIDE_ROOMS,
    WOMEN,
    Cast,
    Draws,
    Words,
)
from saccade.families.story.world.state import Event, Known, State

_PRONOUNS = frozenset({"he", "she", "they"})
_THERE_AFTER_DROP = 0.2  # how often, as in the official files
_ARTICLES = {"apple": "an", "football": "a"}


class Phrases:
    """Sentences of one story; verbs and forms are drawn.

    Args:
        draws: those of the story.
        words: which words it may use.
        there: how often "there" ends a sentence in which something is taken.
    """

    __slots__ = ("_chance", "_draws", "_there", "_verbs", "_wide")

    def __init__(self, draws: Draws, words: Words, there: float) -> None:
        self._draws, self._chance, self._verbs = draws, draws.chance, VERBS[words]
        self._wide = words == "wide"
        self._there = min(there, 0.5) if self._wide else there

    def say(self, event: Event) -> str:
        """The sentence that tells ``event``."""
        kind, who, what = event.kind, event.who, event.what
        if kind == "go":
            return self._going(event)
        name = who[0].capitalize()
        if kind == "in":
            return f"{name} is in the {what}."
        if kind == "not":
            return f"{name} is {'not' if self._chance() < 0.5 else 'no longer'} in the {what}."
        if kind == "either":
            return f"{name} is either in the {what} or the {event.other}."
        pick = self._draws.pick
        if kind == "take":
            article = _ARTICLES.get(what, "the") if self._wide and self._chance() < 0.5 else "the"
            there = " there" if self._chance() < self._there else ""
            return f"{name} {pick(self._verbs.take)} {article} {what}{there}."
        if kind == "drop":
            there = " there" if self._chance() < _THERE_AFTER_DROP else ""
            return f"{name} {pick(self._verbs.drop)} the {what}{there}."
        return f"{name} {pick(self._verbs.give)} the {what} to {event.other.capitalize()}."

    def _going(self, event: Event) -> str:
        who = event.who
        is_one = len(who) == 1 and who[0] != "they"
        went = f"{self._draws.pick(self._verbs.go if is_one else self._verbs.go_together)} the {event.what}"
        if who[0] in _PRONOUNS:
            return f"{self._draws.pick(LINKS).capitalize()} {who[0]} {went}."
        name = who[0].capitalize() if len(who) == 1 else f"{who[0].capitalize()} and {who[1].capitalize()}"
        if event.time is None:
            return f"{name} {went}."
        time = TIMES[event.time]
        return f"{time.capitalize()} {name} {went}." if self._chance() < 0.5 else f"{name} {went} {time}."


QUESTIONS = 5
"""Questions in a story."""

_TAKE, _DROP, _GIVE = 1.3, 1.1, 4.5
"""How often each is tried, for one try of going. Most tries fail, for want of a thing or of company: with these,
sentences of each kind come about as often as in the official files."""

_HANDLING = frozenset({"take", "drop", "give"})

Question = tuple[str, Known]
"""The text of a question, and its answer."""


class Scene:
    """The people of one story, where they and the things really are, and what has been told of it."""

    def __init__(self, cast: Cast, recent: int, draws: Draws, words: Words) -> None:
        people, rooms = cast.people, cast.rooms
        if words == "wide":
            people = tuple(draws.some((*people, *WIDE_PEOPLE), len(people)))
            rooms = tuple(draws.some((*rooms, *WIDE_ROOMS), len(rooms)))
        self.people, self.rooms, self.things = people, rooms, cast.things
        self.draws, self._recent = draws, recent
        self.state = State()
        self.told = 0
        self.at = {person: draws.pick(rooms) for person in people}
        self.lies = {thing: draws.pick(rooms) for thing in cast.things}
        self.held: dict[str, list[str]] = {person: [] for person in people}
        self.taken: dict[str, int] = {}
        """By thing: the sentence in which it was last taken."""
        self.handled: dict[str, int] = {}
        """By person: the last sentence in which they took, dropped or gave something."""
        self.clock = dict.fromkeys(people, 0)
        """By person: the next time of day that nothing was told about."""

    def is_recent(self, at: int) -> bool:
        """Whether sentence ``at`` is one of the last few."""
        return at >= self.told - self._recent

    def go(self, *who: str) -> Event:
        """They go to a room that is new to each of them."""
        room = self.draws.pick(self.rooms)
        while any(self.at[person] == room for person in who):
            room = self.draws.pick(self.rooms)
        for person in who:
            self.at[person] = room
        return Event("go", who, room)

    def act(self, give: float = 0.0) -> Event:
        """Someone goes, takes or drops something, or gives it away."""
        draws = self.draws
        while True:
            person = draws.pick(self.people)
            what, held = draws.chance() * (1 + _TAKE + _DROP + give), self.held[person]
            if what < 1:
                return self.go(person)
            if what < 1 + _TAKE:
                lying = [thing for thing, room in self.lies.items() if room == self.at[person]]
                if lying:
                    thing = draws.pick(lying)
                    self.lies[thing] = ""
                    held.append(thing)
                    return Event("take", (person,), thing)
            elif held and what < 1 + _TAKE + _DROP:
                thing = held.pop(draws.below(len(held)))
                self.lies[thing] = self.at[person]
                return Event("drop", (person,), thing)
            elif held:
                others = [one for one in self.people if one != person and self.at[one] == self.at[person]]
                if others:
                    thing, other = held.pop(draws.below(len(held))), draws.pick(others)
                    self.held[other].append(thing)
                    return Event("give", (person,), thing, other)


def _walks(scene: Scene) -> Iterator[Event]:
    for _ in range(2):
        yield scene.go(scene.draws.pick(scene.people))


def _acts(scene: Scene) -> Iterator[Event]:
    for _ in range(2):
        yield scene.act()


def _acts_and_gifts(scene: Scene) -> Iterator[Event]:
    for _ in range(2):
        yield scene.act(_GIVE)


def _denials(scene: Scene) -> Iterator[Event]:
    """Task 9: half of the sentences are about going; the others say where someone is, or is not."""
    for _ in range(2):
        person, kind = scene.draws.pick(scene.people), scene.draws.chance()
        if kind < 0.75:
            event = scene.go(person)
            yield event if kind < 0.5 else event._replace(kind="in")
        else:
            stays = scene.state.stays.get(person)
            last = stays[-1].event if stays else None
            if last is None or last.kind == "not":
                room = scene.draws.pick_but(scene.rooms, last.what if last else "")
            else:
                room = last.what
            scene.at[person] = ""  # nobody knows
            yield Event("not", (person,), room)


def _doubts(scene: Scene) -> Iterator[Event]:
    """Task 10: as task 9, but one of two rooms instead of not in one."""
    for _ in range(2):
        person, kind = scene.draws.pick(scene.people), scene.draws.chance()
        if kind < 0.75:
            event = scene.go(person)
            yield event if kind < 0.5 else event._replace(kind="in")
        else:
            scene.at[person] = ""
            room, other = scene.draws.some(scene.rooms, 2)
            yield Event("either", (person,), room, other)


def _pronouns(scene: Scene) -> Iterator[Event]:
    person = scene.draws.pick(scene.people)
    yield scene.go(person)
    yield scene.go(person)._replace(who=("she" if person in WOMEN else "he",))


def _pairs(scene: Scene) -> Iterator[Event]:
    for _ in range(2):
        yield scene.go(*scene.draws.some(scene.people, 2))


def _couples(scene: Scene) -> Iterator[Event]:
    couple = scene.draws.some(scene.people, 2)
    yield scene.go(*couple)
    yield scene.go(*couple)._replace(who=("they",))


def _times(scene: Scene) -> Iterator[Event]:
    """Task 14: everyone goes once at each time, in order. A block is long enough for a question, and then shuffled."""
    block: list[Event] = []
    while not block or max(scene.clock.values()) < 2:
        for _ in range(2):
            person = scene.draws.pick([one for one in scene.people if scene.clock[one] < len(TIMES)])
            block.append(scene.go(person)._replace(time=scene.clock[person]))
            scene.clock[person] += 1
    yield from scene.draws.some(block, len(block))


def _where_person(scene: Scene) -> Question | None:
    people = [one for one, stays in scene.state.stays.items() if scene.is_recent(stays[-1].supporting[-1])]
    person = scene.draws.pick(people)
    return _asked(f"Where is {person.capitalize()}?", scene.state.place_of_person(person))


def _where_thing(scene: Scene) -> Question | None:
    """A question about a thing that lies somewhere, or that was carried since it was taken."""
    state = scene.state
    recent = [one for one in state.rooms if scene.is_recent(state.moved[one])]
    things = [one for one in recent if not state.holder[one] or state.brought[one] > state.moved[one]]
    if not things:
        return None
    thing = scene.draws.pick(things)
    return _asked(f"Where is the {thing}?", scene.state.place_of_thing(thing))


def _thing_before(scene: Scene) -> Question | None:
    """Both rooms are ones that the thing was carried to since it was last taken."""
    found = []
    for thing, rooms in scene.state.rooms.items():
        if scene.is_recent(scene.state.moved[thing]):
            carried = [room for room, at in rooms if at > scene.taken[thing]]
            found += [(thing, room) for room in dict.fromkeys(carried[1:])]
    if not found:
        return None
    thing, room = scene.draws.pick(found)
    return _asked(f"Where was the {thing} before the {room}?", scene.state.thing_before(thing, room))


def _gift(scene: Scene) -> Question | None:
    gifts = scene.state.gifts
    if not gifts or not scene.is_recent(gifts[-1][0]):
        return None
    at, event = gifts[-1]
    giver, thing, taker = event.who[0].capitalize(), event.what, event.other.capitalize()
    question, answer = scene.draws.pick(
        (
            (f"What did {giver} give to {taker}?", thing),
            (f"What did {giver} give to {taker}?", thing),
            (f"Who gave the {thing}?", giver),
            (f"Who gave the {thing} to {taker}?", giver),
            (f"Who received the {thing}?", taker),
            (f"Who did {giver} give the {thing} to?", taker),
        )
    )
    return question, Known(answer, (at,))


def _is_in(scene: Scene) -> Question | None:
    """The right room or another one, as often; of one who is not in a room, that room."""
    state, draws = scene.state, scene.draws
    people = [one for one, stays in state.stays.items() if scene.is_recent(stays[-1].supporting[-1])]
    if not people:
        return None
    person = draws.pick(people)
    last = state.stays[person][-1].event
    if last.kind == "not" or draws.chance() < 0.5:
        room = draws.pick((last.what, last.other)) if last.other else last.what
    else:
        room = draws.pick([one for one in scene.rooms if one not in (last.what, last.other)])
    return _asked(f"Is {person.capitalize()} in the {room}?", state.is_in(person, room))


def _carrier(scene: Scene) -> str | None:
    people = [one for one, at in scene.handled.items() if scene.is_recent(at)]
    return scene.draws.pick(people) if people else None


def _how_many(scene: Scene) -> Question | None:
    person = _carrier(scene)
    if person is None:
        return None
    return _asked(f"How many objects is {person.capitalize()} carrying?", scene.state.number_carried(person))


def _what_carried(scene: Scene) -> Question | None:
    person = _carrier(scene)
    if person is None:
        return None
    return _asked(f"What is {person.capitalize()} carrying?", scene.state.things_carried(person))


def _person_before(scene: Scene) -> Question | None:
    found = []
    for person, stays in scene.state.stays.items():
        for room in dict.fromkeys(stay.event.what for stay in stays):
            known = scene.state.person_before(person, room)
            if known and scene.is_recent(max(known.supporting)):
                found.append((f"Where was {person.capitalize()} before the {room}?", known))
    return scene.draws.pick(found) if found else None


def _asked(question: str, known: Known | None) -> Question | None:
    return (question, known) if known else None


@dataclass(frozen=True)
class Plot:
    """What makes a task."""

    block: Callable[[Scene], Iterator[Event]]
    ask: Callable[[Scene], Question | None]
    cast: Cast = HOME
    there: float = 1.0
    """How often "there" ends a sentence in which something is taken."""
    recent: int = 5
    """A question is about what was told in the last so many sentences."""


PLOTS = {
    1: Plot(_walks, _where_person),
    2: Plot(_acts, _where_thing),
    3: Plot(_acts, _thing_before, there=0.2),
    5: Plot(_acts_and_gifts, _gift, GIVERS),
    6: Plot(_acts, _is_in),
    7: Plot(_acts_and_gifts, _how_many),
    8: Plot(_acts, _what_carried),
    9: Plot(_denials, _is_in),
    10: Plot(_doubts, _is_in, TOWN),
    11: Plot(_pronouns, _where_person),
    12: Plot(_pairs, _where_person, recent=3),
    13: Plot(_couples, _where_person, recent=3),
    14: Plot(_times, _person_before, TOWN),
}
"""By the number of the task."""


def generate_people(number: int, draws: Draws, words: Words) -> list[StoryExample]:
    """One story of task ``number`` with its questions."""
    plot = PLOTS[number]
    scene, phrases = Scene(plot.cast, plot.recent, draws, words), Phrases(draws, words, plot.there)
    sentences: list[str] = []
    asked: list[StoryExample] = []
    while len(asked) < QUESTIONS:
        for event in plot.block(scene):
            if event.kind in _HANDLING:
                scene.handled[event.who[0]] = scene.told
                if event.kind == "take":
                    scene.taken[event.what] = scene.told
            scene.state.update(scene.told, event)
            sentences.append(phrases.say(event))
            scene.told += 1
        if found := plot.ask(scene):
            question, known = found
            asked.append(StoryExample(tuple(sentences), question, known.answer, known.supporting))
    return asked
