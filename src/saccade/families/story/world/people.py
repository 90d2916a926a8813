"""Stories of tasks 1–3 and 5–14: people go from room to room, take things, drop them and hand them on.

A story is told in blocks of two sentences. After each block one question is asked, if there is one whose key sentence
is among the last few; otherwise the story goes on. The official files follow this rule, which gives their stories their
lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from saccade.families.story.stories import StoryExample
from saccade.families.story.world.state import (
    BABI,
    LINKS,
    PRONOUNS,
    ROOMS,
    TIMES,
    WIDE,
    WOMEN,
    Derived,
    Draws,
    Event,
    State,
    Words,
)

QUESTIONS = 5  # Questions in a story
HOME = (("daniel", "john", "mary", "sandra"), ROOMS)  # People and rooms of most tasks
GIVERS = (("bill", "fred", "jeff", "mary"), ROOMS)
TOWN = (("bill", "fred", "julie", "mary"), ("bedroom", "cinema", "kitchen", "office", "park", "school"))
WIDE_PEOPLE, WIDE_ROOMS = ("sam", "brian", "julius"), ("den",)
THINGS = ("apple", "football", "milk")
# How often each is tried per try of going; most fail. So sentences are about as frequent as in the official files.
_TAKE, _DROP, _GIVE = 1.3, 1.1, 4.5
_THERE_AFTER_DROP = 0.2  # how often, as in the official files
_ARTICLES = {"apple": "an", "football": "a"}

Question = tuple[str, Derived | None]  # A question and its answer, if the story implies one


class Scene:
    """The people of one story, the true places, and the sentences."""

    def __init__(self, plot: Plot, draws: Draws, words: Words) -> None:
        people, rooms = plot.cast
        self.is_wide = words == "wide"
        if self.is_wide:
            people = tuple(draws.some((*people, *WIDE_PEOPLE), len(people)))
            rooms = tuple(draws.some((*rooms, *WIDE_ROOMS), len(rooms)))
        self.people, self.rooms, self.draws, self.plot = people, rooms, draws, plot
        self.verbs, self.there = (WIDE, min(plot.there, 0.5)) if self.is_wide else (BABI, plot.there)
        self.state = State()
        self.sentences: list[str] = []
        self.at = {person: draws.pick(rooms) for person in people}
        self.lies = {thing: draws.pick(rooms) for thing in THINGS}
        self.taken: dict[str, int] = {}  # By thing: the sentence in which it was last taken
        # By person: the last sentence in which they took, dropped or gave something.
        self.handled: dict[str, int] = {}
        self.clock = dict.fromkeys(people, 0)  # By person: the next time of day that nothing was told about

    def is_recent(self, at: int) -> bool:
        """Whether sentence ``at`` is one of the last few."""
        return at >= len(self.sentences) - self.plot.recent

    def recent_people(self) -> list[str]:
        """People whose place the last few sentences say."""
        return [one for one, stays in self.state.stays.items() if self.is_recent(stays[-1].supporting[-1])]

    def add(self, event: Event) -> None:
        """Add the sentence of ``event``."""
        at = len(self.sentences)
        if event.kind in ("take", "drop", "give"):
            self.handled[event.who[0]] = at
        if event.kind == "take":
            self.taken[event.what] = at
        self.state.update(at, event)
        self.sentences.append(self._sentence(event))

    def _sentence(self, event: Event) -> str:
        draws, who, what = self.draws, event.who, event.what
        name = " and ".join(one.capitalize() for one in who)
        match event.kind:
            case "go":
                is_one = len(who) == 1 and who[0] != "they"
                went = f"{draws.pick(self.verbs['go' if is_one else 'go together'])} the {what}"
                if who[0] in PRONOUNS:
                    return f"{draws.pick(LINKS).capitalize()} {who[0]} {went}."
                if event.time is None:
                    return f"{name} {went}."
                time = TIMES[event.time]
                return f"{time.capitalize()} {name} {went}." if draws.chance() < 0.5 else f"{name} {went} {time}."
            case "in":
                return f"{name} is in the {what}."
            case "not":
                return f"{name} is {'not' if draws.chance() < 0.5 else 'no longer'} in the {what}."
            case "either":
                return f"{name} is either in the {what} or the {event.other}."
            case "take":
                article = _ARTICLES.get(what, "the") if self.is_wide and draws.chance() < 0.5 else "the"
                there = " there" if draws.chance() < self.there else ""
                return f"{name} {draws.pick(self.verbs['take'])} {article} {what}{there}."
            case "drop":
                there = " there" if draws.chance() < _THERE_AFTER_DROP else ""
                return f"{name} {draws.pick(self.verbs['drop'])} the {what}{there}."
            case _:
                return f"{name} {draws.pick(self.verbs['give'])} the {what} to {event.other.capitalize()}."

    def go(self, *who: str) -> Event:
        """They go to a room that is new to each of them."""
        room = self.draws.pick(self.rooms)
        while any(self.at[person] == room for person in who):
            room = self.draws.pick(self.rooms)
        self.at |= dict.fromkeys(who, room)
        return Event("go", who, room)

    def act(self, give: float = 0.0) -> Event:
        """Someone goes, takes or drops something, or gives it away."""
        draws = self.draws
        while True:
            person = draws.pick(self.people)
            what, carried = draws.chance() * (1 + _TAKE + _DROP + give), self.state.carried.get(person)
            if what < 1:
                return self.go(person)
            if what < 1 + _TAKE:
                lying = [thing for thing, room in self.lies.items() if room == self.at[person]]
                if lying:
                    thing = draws.pick(lying)
                    self.lies[thing] = ""
                    return Event("take", (person,), thing)
            elif carried and what < 1 + _TAKE + _DROP:
                thing = draws.pick(carried)
                self.lies[thing] = self.at[person]
                return Event("drop", (person,), thing)
            elif carried:
                others = [one for one in self.people if one != person and self.at[one] == self.at[person]]
                if others:
                    return Event("give", (person,), draws.pick(carried), draws.pick(others))

    def walk_or(self, unsure: Callable[[Scene, str], Event]) -> Event:
        """Half the events are moves, a quarter say where someone is, and a quarter come from ``unsure``."""
        person, kind = self.draws.pick(self.people), self.draws.chance()
        if kind < 0.75:
            event = self.go(person)
            return event if kind < 0.5 else event._replace(kind="in")
        self.at[person] = ""  # nobody knows
        return unsure(self, person)

    def one_of(self, questions: list[Question]) -> Question | None:
        """One of these, drawn."""
        return self.draws.pick(questions) if questions else None


Block = Callable[[Scene], Iterable[Event]]


def _twice(step: Callable[[Scene], Event]) -> Block:
    return lambda scene: (step(scene) for _ in range(2))


def _deny(scene: Scene, person: str) -> Event:
    """Someone is not in a room: that of the last sentence about them, unless it was a denial too."""
    stays = scene.state.stays.get(person)
    last = stays[-1].event if stays else None
    if last and last.kind != "not":
        return Event("not", (person,), last.what)
    return Event("not", (person,), scene.draws.pick_but(scene.rooms, last.what if last else ""))


def _doubt(scene: Scene, person: str) -> Event:
    room, other = scene.draws.some(scene.rooms, 2)
    return Event("either", (person,), room, other)


def _pronouns(scene: Scene) -> Iterator[Event]:
    person = scene.draws.pick(scene.people)
    yield scene.go(person)
    yield scene.go(person)._replace(who=("she" if person in WOMEN else "he",))


def _couples(scene: Scene) -> Iterator[Event]:
    couple = scene.draws.some(scene.people, 2)
    yield scene.go(*couple)
    yield scene.go(*couple)._replace(who=("they",))


def _times(scene: Scene) -> list[Event]:
    """Task 14: everyone goes once at each time, in order; a block allows a question and is then shuffled."""
    block: list[Event] = []
    while not block or max(scene.clock.values()) < 2:
        for _ in range(2):
            person = scene.draws.pick([one for one in scene.people if scene.clock[one] < len(TIMES)])
            block.append(scene.go(person)._replace(time=scene.clock[person]))
            scene.clock[person] += 1
    return scene.draws.some(block, len(block))


def _where_person(scene: Scene) -> Question | None:
    people = scene.recent_people()
    return scene.one_of([(f"Where is {one.capitalize()}?", scene.state.place_of_person(one)) for one in people])


def _where_thing(scene: Scene) -> Question | None:
    state = scene.state
    recent = [one for one in state.rooms if scene.is_recent(state.moved[one])]
    things = [one for one in recent if not state.holder[one] or state.brought[one] > state.moved[one]]
    return scene.one_of([(f"Where is the {thing}?", state.place_of_thing(thing)) for thing in things])


def _thing_before(scene: Scene) -> Question | None:
    """Both rooms are places that the thing was carried to since it was taken."""
    state, questions = scene.state, list[Question]()
    for thing, rooms in state.rooms.items():
        if scene.is_recent(state.moved[thing]):
            carried = dict.fromkeys([room for room, at in rooms if at > scene.taken[thing]][1:])
            questions += [
                (f"Where was the {thing} before the {one}?", state.thing_before(thing, one)) for one in carried
            ]
    return scene.one_of(questions)


def _person_before(scene: Scene) -> Question | None:
    questions: list[Question] = []
    for person, stays in scene.state.stays.items():
        for room in dict.fromkeys(stay.event.what for stay in stays):
            derived = scene.state.person_before(person, room)
            if derived and scene.is_recent(max(derived.supporting)):
                questions.append((f"Where was {person.capitalize()} before the {room}?", derived))
    return scene.one_of(questions)


def _gift(scene: Scene) -> Question | None:
    gifts = scene.state.gifts
    if not gifts or not scene.is_recent(gifts[-1][0]):
        return None
    at, event = gifts[-1]
    giver, thing, taker = event.who[0].capitalize(), event.what, event.other.capitalize()
    answers = (
        (f"What did {giver} give to {taker}?", thing),
        (f"What did {giver} give to {taker}?", thing),  # twice as often
        (f"Who gave the {thing}?", giver),
        (f"Who gave the {thing} to {taker}?", giver),
        (f"Who received the {thing}?", taker),
        (f"Who did {giver} give the {thing} to?", taker),
    )
    return scene.one_of([(question, Derived(answer, (at,))) for question, answer in answers])


def _is_in(scene: Scene) -> Question | None:
    """The right room or another, equally often; for someone not in a room, that room."""
    state, draws, people = scene.state, scene.draws, scene.recent_people()
    if not people:
        return None
    person = draws.pick(people)
    last = state.stays[person][-1].event
    if last.kind == "not" or draws.chance() < 0.5:
        room = draws.pick((last.what, last.other)) if last.other else last.what
    else:
        room = draws.pick([one for one in scene.rooms if one not in (last.what, last.other)])
    return (f"Is {person.capitalize()} in the {room}?", state.is_in(person, room))


def _of_carrier(question: str, answer: Callable[[State, str], Derived | None]) -> Callable[[Scene], Question | None]:
    """Asks ``question`` about one who took, dropped or gave something."""

    def ask(scene: Scene) -> Question | None:
        people = [one for one, at in scene.handled.items() if scene.is_recent(at)]
        return scene.one_of([(question.format(one.capitalize()), answer(scene.state, one)) for one in people])

    return ask


@dataclass(frozen=True)
class Plot:
    """What makes a task."""

    block: Block
    ask: Callable[[Scene], Question | None]
    cast: tuple[tuple[str, ...], tuple[str, ...]] = HOME
    there: float = 1.0  # Probability of "there" after taking something
    recent: int = 5  # A question is about the last so many sentences


_ACTS, _GIFTS = _twice(Scene.act), _twice(lambda scene: scene.act(_GIVE))
# By the number of the task.
PLOTS = {
    1: Plot(_twice(lambda scene: scene.go(scene.draws.pick(scene.people))), _where_person),
    2: Plot(_ACTS, _where_thing),
    3: Plot(_ACTS, _thing_before, there=0.2),
    5: Plot(_GIFTS, _gift, GIVERS),
    6: Plot(_ACTS, _is_in),
    7: Plot(_GIFTS, _of_carrier("How many objects is {} carrying?", State.number_carried)),
    8: Plot(_ACTS, _of_carrier("What is {} carrying?", State.things_carried)),
    9: Plot(_twice(lambda scene: scene.walk_or(_deny)), _is_in),
    10: Plot(_twice(lambda scene: scene.walk_or(_doubt)), _is_in, TOWN),
    11: Plot(_pronouns, _where_person),
    12: Plot(_twice(lambda scene: scene.go(*scene.draws.some(scene.people, 2))), _where_person, recent=3),
    13: Plot(_couples, _where_person, recent=3),
    14: Plot(_times, _person_before, TOWN),
}


def generate_people(number: int, draws: Draws, words: Words) -> list[StoryExample]:
    """One story of task ``number`` with its questions."""
    plot = PLOTS[number]
    scene = Scene(plot, draws, words)
    questions: list[StoryExample] = []
    while len(questions) < QUESTIONS:
        for event in plot.block(scene):
            scene.add(event)
        question, derived = plot.ask(scene) or ("", None)
        if derived:
            questions.append(StoryExample(tuple(scene.sentences), question, *derived))
    return questions
