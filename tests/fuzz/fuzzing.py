"""What a fuzz target is, and what became of one input.

A target makes inputs and hands each to the public function that reads them. Input number n of a seed is always the
same: the first ones are the corpus, in order, and the others are drawn from the seed, the target and n alone.
"""

from __future__ import annotations

import os
import random
import shutil
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from saccade.errors import SaccadeError

Result = Literal["refused", "accepted", "traceback"]
LONGEST_MESSAGE = 20_000


class RefusedError(Exception):
    """The input was refused in a way of its own, such as the status of a reply."""


class Target(ABC):
    """One kind of input.

    Args:
        folder: empty, for files of this target alone.
    """

    name: str
    deadline = 10.0
    """Seconds of one input: of computing, and four times as many on the clock."""
    memory = 1024
    """Megabytes that one input may add."""
    slow: frozenset[str] = frozenset()
    """Inputs of the corpus that take seconds; ``make test`` leaves them out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder / "input"
        """Where files of the present input lie."""

    @abstractmethod
    def corpus(self) -> Mapping[str, Any]:
        """Inputs by name; large ones as functions that make them."""

    def odd_files(self, base: Mapping[str, Content], *names: str) -> dict[str, Any]:
        """``base`` with something in place of each of these files that is no ordinary file."""
        odd = {kind: Odd(kind) for kind in ("pipe", "zero", "folder", "link")}
        odd |= {"empty": b"", "sparse": Odd("sparse", 2**40)}
        return {f"{name} {what}": {**base, name: content} for name in names for what, content in odd.items()}

    @abstractmethod
    def drawn(self, rng: random.Random) -> Any:
        """An input that nobody thought of."""

    @abstractmethod
    def run(self, case: Any) -> None:
        """Hand the input over; a SaccadeError or a RefusedError is what a bad one should end in."""

    def lay(self, files: Mapping[str, Content]) -> Path:
        """Write ``files`` into an empty folder."""
        if self.place.is_symlink() or self.place.is_file():
            self.place.unlink()
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        for name, content in files.items():
            path = self.place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                content.make(path)
        return self.place


@dataclass(frozen=True)
class Odd:
    """Something that is not an ordinary file."""

    kind: Literal["pipe", "zero", "folder", "link", "sparse"]
    size: int = 0
    head: bytes = b""

    def make(self, path: Path) -> None:
        """Put it at ``path``."""
        if self.kind == "pipe":
            os.mkfifo(path)
        elif self.kind == "zero":
            path.symlink_to("/dev/zero")
        elif self.kind == "folder":
            path.mkdir()
        elif self.kind == "link":
            path.symlink_to(path)  # to itself
        else:
            path.write_bytes(self.head)
            os.truncate(path, self.size)


Content = bytes | Odd


@dataclass(frozen=True)
class Outcome:
    """What became of one input."""

    number: int
    name: str
    result: Result
    told: str
    """The message, or the traceback."""


class Inputs:
    """The inputs of one target and one seed, by number."""

    def __init__(self, target: Target, seed: int, *, slow: bool = True) -> None:
        self.target, self.seed = target, seed
        corpus = target.corpus()
        unknown = target.slow - corpus.keys()
        if unknown:
            raise KeyError(f"{target.name}: no such input: {', '.join(sorted(unknown))}")
        self.corpus = [(name, make) for name, make in corpus.items() if slow or name not in target.slow]

    def case(self, number: int) -> tuple[str, Any]:
        """Name and content of input ``number``."""
        if number < len(self.corpus):
            name, make = self.corpus[number]
            return name, make() if callable(make) else make
        return f"drawn {number}", self.target.drawn(random.Random(f"{self.seed} {self.target.name} {number}"))

    def outcome(self, number: int) -> Outcome:
        """Hand input ``number`` over."""
        name, case = self.case(number)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.target.run(case)
        except (SaccadeError, RefusedError) as error:
            text = str(error)
            if not text.strip() or len(text) > LONGEST_MESSAGE:
                return Outcome(number, name, "traceback", f"a message of {len(text)} characters: {text[:200]}")
            return Outcome(number, name, "refused", text)
        except Exception:
            return Outcome(number, name, "traceback", traceback.format_exc())
        return Outcome(number, name, "accepted", "")
