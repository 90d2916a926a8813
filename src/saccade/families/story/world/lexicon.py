"""The words of the world, which its teller and its reader share, and the random draws of a story.

``babi`` are the words of the official English files. ``wide`` adds those of the founding document's stories and a few
of their relatives: "Sam walks into the den.", "Sam picks up an apple."
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

Words = Literal["babi", "wide"]
"""Which words a story is told in."""


@dataclass(frozen=True)
class Verbs:
    """The verbs of a story."""

    go: tuple[str, ...] = ("went to", "went back to", "moved to", "journeyed to", "travelled to")
    take: tuple[str, ...] = ("got", "took", "grabbed", "picked up")
    drop: tuple[str, ...] = ("left", "dropped", "discarded", "put down")
    give: tuple[str, ...] = ("gave", "handed", "passed")
    go_together: tuple[str, ...] = go
    """Of more than one."""


BABI = Verbs()
WIDE = Verbs(
    go=(*BABI.go, "walks into", "walked into", "walks to", "goes to"),
    take=(*BABI.take, "picks up", "takes", "gets", "grabs"),
    drop=(*BABI.drop, "drops", "puts down", "leaves"),
    give=(*BABI.give, "gives", "hands", "passes"),
    go_together=(*BABI.go, "walk into", "walked into", "walk to", "go to"),
)

LINKS = ("then", "afterwards", "after that", "following that")
"""What opens a sentence about the people of the sentence before."""
TIMES = ("yesterday", "this morning", "this afternoon", "this evening")
"""In the order of time."""

WOMEN = frozenset({"mary", "sandra", "julie", "emily", "anna", "lily", "gertrude", "winona", "jessica"})
MEN = frozenset({"john", "daniel", "fred", "bill", "jeff", "sam", "brian", "greg", "julius", "bernhard"})

NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
"""How many things someone carries, in words."""


@dataclass(frozen=True)
class Cast:
    """Who and what a story is about, in lower case."""

    people: tuple[str, ...]
    rooms: tuple[str, ...]
    things: tuple[str, ...] = ("apple", "football", "milk")


HOME = Cast(("daniel", "john", "mary", "sandra"), ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office"))
"""Most tasks."""
TOWN = Cast(("bill", "fred", "julie", "mary"), ("bedroom", "cinema", "kitchen", "office", "park", "school"))
"""Tasks 10 and 14."""
GIVERS = Cast(("bill", "fred", "jeff", "mary"), HOME.rooms)
"""Task 5."""
WIDE_PEOPLE = ("sam", "brian", "julius")
WIDE_ROOMS = ("den",)


T = TypeVar("T")


class Draws:
    """The draws of one story, a function of seed, task and number.

    ``random.Random.random`` gives the same numbers in every version of Python. Its other methods may change between
    versions, so they are not used.
    """

    __slots__ = ("chance",)

    def __init__(self, seed: int, task: int, index: int) -> None:
        digest = hashlib.blake2b(f"{seed} {task} {index}".encode(), digest_size=8).digest()
        self.chance = random.Random(int.from_bytes(digest, "big")).random
        """A number in [0, 1)."""

    def below(self, bound: int) -> int:
        """A whole number in [0, bound)."""
        return int(self.chance() * bound)

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
        return [left.pop(self.below(len(left))) for _ in range(count)]
