"""Ways to spoil bytes, text and plain values."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Sequence
from typing import Any

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
