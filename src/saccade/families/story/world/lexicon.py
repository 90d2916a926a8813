"""The words of the world: verbs and their meaning, names, rooms, things, times. The reader and the teller share them.

``babi`` are the words of the official English files. ``wide`` adds those of the founding document's stories and a few
of their relatives: "Sam walks into the den.", "Sam picks up an apple."
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Words = Literal["babi", "wide"]
"""Which words a story is told in."""

GO = ("went to", "went back to", "moved to", "journeyed to", "travelled to")
TAKE = ("got", "took", "grabbed", "picked up")
DROP = ("left", "dropped", "discarded", "put down")
GIVE = ("gave", "handed", "passed")

WIDE_GO = ("walks into", "walked into", "walks to", "goes to")
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
    """Who and what a story is about."""

    people: tuple[str, ...]
    rooms: tuple[str, ...]
    things: tuple[str, ...] = ("apple", "football", "milk")


HOME = Cast(("Mary", "John", "Daniel", "Sandra"), ("bathroom", "bedroom", "garden", "hallway", "kitchen", "office"))
"""Most tasks."""
TOWN = Cast(("Bill", "Fred", "Julie", "Mary"), ("bedroom", "cinema", "kitchen", "office", "park", "school"))
"""Tasks 10 and 14."""
GIVERS = Cast(("Bill", "Fred", "Jeff", "Mary"), HOME.rooms)
"""Task 5."""
