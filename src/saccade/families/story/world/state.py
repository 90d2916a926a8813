"""The words of the world, what its sentences say, and what is so after some of them.

The same state answers questions about generated stories and about stories that were read. Supporting sentences come in
the order of the official files: first what the question asks about, then what that leads to.

``babi`` are the words of the official English files. ``wide`` adds others: "Sam walks into the den.", "Sam picks up an
apple."
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, TypeVar

from saccade.families.story.stories import words_of

Words = Literal["babi", "wide"]  # The vocabulary of a story
_GO = ("went to", "went back to", "moved to", "journeyed to", "travelled to")
# Verbs by kind of event; several people who go have their own.
BABI = {
    "go": _GO,
    "take": ("got", "took", "grabbed", "picked up"),
    "drop": ("left", "dropped", "discarded", "put down"),
    "give": ("gave", "handed", "passed"),
    "go together": _GO,
}
WIDE = {
    "go": (*_GO, "walks into", "walked into", "walks to", "goes to"),
    "take": (*BABI["take"], "picks up", "takes", "gets", "grabs"),
    "drop": (*BABI["drop"], "drops", "puts down", "leaves"),
    "give": (*BABI["give"], "gives", "hands", "passes"),
    "go together": (*_GO, "walk into", "walked into", "walk to", "go to"),
}
# What opens a sentence about the people of the sentence before.
LINKS = ("then", "afterwards", "after that", "following that")
TIMES = ("yesterday", "this morning", "this afternoon", "this evening")  # In the order of time
WOMEN = frozenset({"mary", "sandra", "julie", "emily", "anna", "lily", "gertrude", "winona", "jessica"})
MEN = frozenset({"john", "daniel", "fred", "bill", "jeff", "sam", "brian", "greg", "julius", "bernhard"})
# How many things someone carries, in words.
NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ROOMS = ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office")

T = TypeVar("T")


class Draws:
    """The draws of one story, a function of seed, task and number.

    ``random.Random.random`` is the same in every version of Python; its other methods may not be.
    """

    def __init__(self, seed: int, task: int, index: int) -> None:
        digest = hashlib.blake2b(f"{seed} {task} {index}".encode(), digest_size=8).digest()
        self.chance = random.Random(int.from_bytes(digest, "big")).random  # A number in [0, 1)

    def pick(self, choices: Sequence[T]) -> T:
        """One of ``choices``."""
        return choices[int(self.chance() * len(choices))]

    def pick_but(self, choices: Sequence[T], unwanted: T) -> T:
        """One of ``choices`` that is not ``unwanted``."""
        while (choice := self.pick(choices)) == unwanted:
            pass
        return choice

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """``count`` different ones of ``choices``, in random order."""
        left = list(choices)
        return [left.pop(int(self.chance() * len(left))) for _ in range(count)]


Kind = Literal["go", "in", "not", "either", "take", "drop", "give"]


class Event(NamedTuple):
    """One sentence, understood. Words are in lower case."""

    kind: Kind
    who: tuple[str, ...]  # One or two names; or a pronoun: he, she, they
    what: str  # The room of go, in, not and either; the thing of take, drop and give
    other: str = ""  # The second room of either; who is given something
    time: int | None = None  # Index into TIMES


def _any(*phrases: str) -> str:
    return "|".join(sorted(phrases, key=len, reverse=True))


_WHO = r"(?P<who>\S+)(?: and (?P<also>\S+))?"
_WHAT = r"(?:the|an|a) (?P<what>\S+)"
_FORMS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("go", re.compile(rf"{_WHO} (?:{_any(*WIDE['go'], *WIDE['go together'])}) {_WHAT}")),
    ("in", re.compile(rf"{_WHO} (?:is|are) in {_WHAT}")),
    ("not", re.compile(rf"{_WHO} (?:is|are) (?:not|no longer) in {_WHAT}")),
    ("either", re.compile(rf"{_WHO} (?:is|are) either in {_WHAT} or (?:in )?(?:the|an|a) (?P<other>\S+)")),
    ("take", re.compile(rf"{_WHO} (?:{_any(*WIDE['take'])}) {_WHAT}(?: there)?")),
    ("drop", re.compile(rf"{_WHO} (?:{_any(*WIDE['drop'])}) {_WHAT}(?: there)?")),
    ("give", re.compile(rf"{_WHO} (?:{_any(*WIDE['give'])}) {_WHAT} to (?P<other>\S+)")),
)
_TIME = _any(*TIMES)
_SENTENCE = re.compile(rf"(?:(?P<early>{_TIME}) )?(?:(?:{_any(*LINKS)}) )?(?P<rest>.+?)(?: (?P<late>{_TIME}))?")


@lru_cache(maxsize=1 << 14)
def event_of(sentence: str) -> Event | None:
    """The event of ``sentence``, or None if this world does not know it.

    >>> event_of("Afterwards they moved to the hallway.")
    Event(kind='go', who=('they',), what='hallway', other='', time=None)
    >>> event_of("Julie went to the school this morning.").time
    1
    >>> event_of("Lily is green.") is None
    True
    """
    whole = _SENTENCE.fullmatch(" ".join(words_of(sentence)))
    if not whole:
        return None
    for kind, form in _FORMS:
        if match := form.fullmatch(whole["rest"]):
            parts = match.groupdict()
            who = tuple(name for name in (parts["who"], parts["also"]) if name)
            when = whole["early"] or whole["late"]
            return Event(kind, who, parts["what"], parts.get("other") or "", TIMES.index(when) if when else None)
    return None


_PLACES = frozenset({"go", "in", "not", "either"})
PRONOUNS = frozenset({"he", "she", "they"})


class Derived(NamedTuple):
    """An answer and the sentences that it follows from."""

    answer: str
    supporting: tuple[int, ...]


class Stay(NamedTuple):
    """Where someone is, by the last sentence about it."""

    event: Event
    supporting: tuple[int, ...]  # That sentence; one with a pronoun comes after the sentence with the name

    @property
    def is_there(self) -> bool:
        """Whether it says in which room."""
        return self.event.kind in ("go", "in")


class State:
    """The state after some sentences; unknown ones change nothing."""

    def __init__(self, sentences: Sequence[str] = ()) -> None:
        self.stays: dict[str, list[Stay]] = {}  # By person: all statements about their place
        self.holder: dict[str, str] = {}  # By thing: who has it, "" where it lies
        self.moved: dict[str, int] = {}  # By thing: the last sentence in which it was taken, dropped or given
        # By thing: its rooms, each with the sentence that brought it (or its finder) there.
        self.rooms: dict[str, list[tuple[str, int]]] = {}
        self.brought: dict[str, int] = {}  # By thing: the sentence about its holder's place
        # By person and thing, in order: sentences in which it came or went.
        self.hands: dict[str, dict[str, list[int]]] = {}
        self.carried: dict[str, list[str]] = {}  # By person: their things, in order
        self.gifts: list[tuple[int, Event]] = []
        self._named: dict[str, tuple[tuple[str, ...], int]] = {}
        for at, sentence in enumerate(sentences):
            if event := event_of(sentence):
                self.update(at, event)

    def update(self, at: int, event: Event) -> None:
        """Take in ``event`` of sentence ``at``."""
        who, named = self._people(at, event.who)
        if event.kind in _PLACES:
            stay = Stay(event, (at,) if named == at else (named, at))
            for person in who:
                self.stays.setdefault(person, []).append(stay)
                for thing in self.carried.get(person, ()) if stay.is_there else ():
                    self._bring(thing, event.what, at)
        elif event.kind == "take":
            self._hand(who[0], event.what, at, "")
        elif event.kind == "drop":
            self._hand("", event.what, at, who[0])
        else:
            self.gifts.append((at, event._replace(who=who)))
            self._hand(event.other, event.what, at, who[0])

    def _people(self, at: int, who: tuple[str, ...]) -> tuple[tuple[str, ...], int]:
        """Names, and the sentence that names them; a pronoun means the last fitting names."""
        first = who[0]
        if first in PRONOUNS:
            return self._named.get(first) or self._named.get("") or (who, at)
        named = self._named[""] = who, at
        if len(who) > 1:
            self._named["they"] = named
        else:
            if first not in MEN:
                self._named["she"] = named
            if first not in WOMEN:
                self._named["he"] = named
        return named

    def _hand(self, taker: str, thing: str, at: int, giver: str) -> None:
        """``thing`` changes hands; nobody's are the floor's."""
        loser = giver or self.holder.get(thing, "")
        if thing in self.carried.get(loser, ()):
            self.carried[loser].remove(thing)
        for person in dict.fromkeys((giver, taker)):
            if person:
                self.hands.setdefault(person, {}).setdefault(thing, []).append(at)
        self.moved[thing] = at
        self.holder[thing] = taker
        if taker:
            self.carried.setdefault(taker, []).append(thing)
        stays = [stay for person in (taker, giver) if (stay := self._stay(person)) and stay.is_there]
        if stays:  # both are in one room; of one the story may not have said it
            self._bring(thing, stays[0].event.what, stays[0].supporting[-1])

    def _bring(self, thing: str, room: str, at: int) -> None:
        self.brought[thing] = at
        rooms = self.rooms.setdefault(thing, [])
        if not rooms or rooms[-1][0] != room:
            rooms.append((room, at))

    def _stay(self, person: str) -> Stay | None:
        stays = self.stays.get(person)
        return stays[-1] if stays else None

    def place_of_person(self, person: str) -> Derived | None:
        """Where is PERSON?"""
        stay = self._stay(person)
        return Derived(stay.event.what, stay.supporting) if stay and stay.is_there else None

    def is_in(self, person: str, room: str) -> Derived | None:
        """Is PERSON in the ROOM? yes, no or maybe; None where the story does not say it."""
        stay = self._stay(person)
        if not stay:
            return None
        kind, what, other = stay.event.kind, stay.event.what, stay.event.other
        if kind == "either":
            return Derived("maybe" if room in (what, other) else "no", stay.supporting)
        if kind == "not":
            return Derived("no", stay.supporting) if room == what else None
        return Derived("yes" if room == what else "no", stay.supporting)

    def place_of_thing(self, thing: str) -> Derived | None:
        """Where is the THING?"""
        rooms, stay = self.rooms.get(thing), self._stay(self.holder.get(thing, ""))
        if not rooms or (stay and not stay.is_there):
            return None
        return Derived(rooms[-1][0], (self.moved[thing], self.brought[thing]))

    def thing_before(self, thing: str, room: str) -> Derived | None:
        """Where was the THING before the ROOM?"""
        for earlier, later in reversed(list(pairwise(self.rooms.get(thing, [])))):
            if later[0] == room:
                return Derived(earlier[0], (self.moved[thing], later[1], earlier[1]))
        return None

    def person_before(self, person: str, room: str) -> Derived | None:
        """Where was PERSON before the ROOM? By stated times, else by the order of sentences."""
        stays = [stay for stay in self.stays.get(person, ()) if stay.is_there]
        stays.sort(key=lambda stay: -1 if stay.event.time is None else stay.event.time)
        for earlier, later in reversed(list(pairwise(stays))):
            if later.event.what == room:
                return Derived(earlier.event.what, (*later.supporting, *earlier.supporting))
        return None

    def number_carried(self, person: str) -> Derived | None:
        """How many objects is PERSON carrying? All comings and goings support it."""
        if person not in self.hands:
            return None
        number = len(self.carried.get(person, ()))
        word = NUMBERS[number] if number < len(NUMBERS) else str(number)
        return Derived(word, tuple(sorted(at for places in self.hands[person].values() for at in places)))

    def things_carried(self, person: str) -> Derived | None:
        """What is PERSON carrying? Things and their sentences, in order of first having them."""
        if person not in self.hands:
            return None
        carried = [thing for thing in self.hands[person] if thing in self.carried.get(person, ())]
        supporting = tuple(at for places in self.hands[person].values() for at in places)
        return Derived(",".join(carried) or "nothing", supporting)

    def gift(
        self, part: Literal["giver", "thing", "taker"], *, giver: str = "", thing: str = "", taker: str = ""
    ) -> Derived | None:
        """The giver, thing or taker of the last gift that fits all that is named."""
        for at, event in reversed(self.gifts):
            parts = {"giver": event.who[0], "thing": event.what, "taker": event.other}
            if giver in ("", parts["giver"]) and thing in ("", parts["thing"]) and taker in ("", parts["taker"]):
                return Derived(parts[part], (at,))
        return None
