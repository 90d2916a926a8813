"""What a fuzz target is, what became of one input, and ways to spoil bytes, text and plain values.

A target makes inputs and hands each to the public function that reads them. Input number n of a seed is always the
same: the first ones are the corpus, in order, and the others are drawn from the seed, the target and n alone.
"""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
import traceback
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
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


ODD_TEXT = ("", " ", "\0", "a\0b", "\ud800", "\udcff", "x" * 3000, "../../etc/passwd", "/", "~", "NaN", "1e400",
            "é" * 50,
            "\u202e", "<script>", "%s%n", "{}", "0x" + "f" * 40, "\n", "\r\n", "-", "--out", "*", "timm:x",
            "1:2:3")  # fmt: skip
ODD_NUMBERS = (0, -1, 1, 2, 3, 255, 256, 65_536, 2**31, -(2**31), 2**32, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 2**64,
               10**30, 10**400, 0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, float("inf"), float("-inf"),
               float("nan"))  # fmt: skip
ODD_VALUES = (None, True, False, [], {}, [[]], [None], {"": None}, {"name": []}, [[1, 2], [3]], [1, "a", None])


def odd(rng: random.Random) -> Any:
    """A value that nobody expects."""
    return rng.choice(
        (
            rng.choice(ODD_TEXT),
            rng.choice(ODD_NUMBERS),
            copy.deepcopy(rng.choice(ODD_VALUES)),
            rng.gauss(0, 100),
            nested(rng.choice((3, 60, 70, 200)), rng.random() < 0.5),
            [rng.choice(ODD_NUMBERS) for _ in range(rng.randrange(6))],
        )
    )


def nested(depth: int, as_lists: bool = True) -> Any:
    """A list in a list in a list …"""
    value: Any = 1
    for _ in range(depth):
        value = [value] if as_lists else {"a": value}
    return value


def spoilt_values(rng: random.Random, values: Any, changes: int | None = None) -> Any:
    """A copy of plain ``values`` with a few places changed, removed, added or moved."""
    values = copy.deepcopy(values)
    for _ in range(changes or rng.choice((1, 1, 1, 2, 4))):
        places = list(_places(values))
        if not places:
            return odd(rng)
        holder, key = rng.choice(places)
        what = rng.randrange(6)
        if what == 0:
            del holder[key]
        elif what == 1 and isinstance(holder, dict):
            holder[str(odd(rng))[:200]] = odd(rng)
        elif what == 1:
            holder += holder[key : key + 1] * 50
        elif what == 2:
            other, where = rng.choice(places)
            holder[key] = copy.deepcopy(other[where])
        elif what == 3:
            holder[key] = rng.choice(([holder[key]], {"a": holder[key]}, str(holder[key])))
        else:
            holder[key] = odd(rng)
    return values


def _places(values: Any) -> Any:
    """(container, key) of everything inside."""
    inside = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in list(inside):
        yield values, key
        yield from _places(value)


def as_json(values: Any) -> bytes:
    """JSON as Python writes it, with NaN, infinities and escapes."""
    return json.dumps(values).encode()


def spoilt_bytes(rng: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """A copy of ``data`` with bytes flipped, cut, repeated, zeroed or taken from ``others``."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        if not made:
            return rng.randbytes(rng.randrange(40))
        at = rng.randrange(len(made))
        here = slice(at, at + rng.choice((1, 2, 4, 8, 64, 1024)))
        old, other = made[here], rng.choice(others or (data,))
        start = rng.randrange(len(other)) if other else 0
        made[here] = rng.choice(
            (
                bytes(byte ^ (1 << rng.randrange(8)) for byte in old),
                rng.randbytes(len(old)),
                b"",
                old * rng.choice((2, 30)),
                bytes(len(old)),
                b"\xff" * len(old),
                other[start : start + len(old)],
            )
        )
        if rng.randrange(8) == 0:
            del made[at:]
    return bytes(made[: 2 * len(data) + 4096])


def spoilt_text(rng: random.Random, text: str, words: Sequence[str]) -> str:
    """A copy of ``text`` with lines moved, repeated or lost, and with ``words`` put in anywhere."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at = rng.randrange(len(lines))
        line, word = lines[at], rng.choice(words)
        place = rng.randrange(len(line) + 1)
        changed = (
            [],
            [line, line],
            ["  " * rng.randrange(4) + line.lstrip()],
            [line[:place] + word + line[place:]],
            [f"{line.partition(':')[0]}: {word}"],
            [line[:place] + line[place + rng.randrange(1, 5) :]],
            [word, line],
        )
        lines[at : at + 1] = rng.choice(changed)
        lines = lines or [""]
    return "\n".join(lines)
