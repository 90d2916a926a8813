"""Random draws by counter: story number i of a task and a seed depends on these three alone.

``random.Random.random`` gives the same numbers in every version of Python. Its other methods may change between
versions, so they are not used.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

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
