"""The words of the world: verbs and their meaning, names, rooms, things, times. The reader and the teller share them.

``babi`` are the words of the official English files. ``wide`` adds those of the founding document's stories and a few
of their relatives: "Sam walks into the den.", "Sam picks up an apple."

Random draws by counter: story number i of a task and a seed depends on these three alone.

``random.Random.random`` gives the same numbers in every version of Python. Its other methods may change between
versions, so they are not used.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

Words = Literal["babi", "wide"]
"""Which words a story is told in."""

GO = ("went to", "went back to", "moved to", "journeyed to", "travelled to")
TAKE = ("got", "took", "grabbed", "picked up")
DROP = ("left", "dropped", "discarded", "put down")
GIVE = ("gave", "handed", "passed")

WIDE_GO = ("walks into", "walked into", "walks to", "goes to")
WIDE_GO_TOGETHER = ("walk into", "walked into", "walk to", "go to")
"""As WIDE_GO, of more than one."""
WIDE_TAKE = ("picks up", "takes", "gets", "grabs")
WIDE_DROP = ("drops", "puts down", "leaves")
WIDE_GIVE = ("gives", "hands", "passes")

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


@dataclass(frozen=True)
class Verbs:
    """The verbs of a story."""

    go: tuple[str, ...] = GO
    take: tuple[str, ...] = TAKE
    drop: tuple[str, ...] = DROP
    give: tuple[str, ...] = GIVE
    go_together: tuple[str, ...] = GO


VERBS: dict[Words, Verbs] = {
    "babi": Verbs(),
    "wide": Verbs(GO + WIDE_GO, TAKE + WIDE_TAKE, DROP + WIDE_DROP, GIVE + WIDE_GIVE, GO + WIDE_GO_TOGETHER),
}
WIDE_PEOPLE = ("sam", "brian", "julius")
WIDE_ROOMS = ("den",)


T = TypeVar("T")


class Draws:
    """The draws of one story."""

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
        while (found := self.pick(choices)) == unwanted:
            pass
        return found

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """``count`` different ones of ``choices``, in random order."""
        left = list(choices)
        return [left.pop(self.below(len(left))) for _ in range(count)]
