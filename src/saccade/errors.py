"""Every error a user can cause, in one place.

A message says what was wrong, what was found, and what to do. The command line prints it as one line and exits
with code 2; the Python API raises it. Anything else that escapes is a bug in saccade.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

DISTRIBUTION = "saccade-attention"  # What pip calls this package; ``saccade`` on the package index is another project.

_LONGEST_WORD = 100  # Characters that are compared: the time grows with their square.
_NEAREST_NAMED = 3  # Names in a hint that does not list all choices.

LONGEST_SHOWN = 120  # Characters of a value in a message.


class SaccadeError(Exception):
    """Base of all errors that are the input's fault, not the program's."""


class ConfigError(SaccadeError):
    """A recipe, option or configuration that cannot be used."""


class DataError(SaccadeError):
    """A picture, file, data set or query that cannot be used."""


class CheckpointError(SaccadeError):
    """A model or run folder that is damaged, foreign or unsafe to load."""


class TrainingStopped(SaccadeError):  # noqa: N818 - an outcome more than a mistake
    """Training cannot go on: a loss or gradient is not finite, or a process is gone."""


class OutputError(SaccadeError):
    """A place that cannot be written to: full disk, read-only folder, a file where a folder should be."""


class MissingExtraError(SaccadeError):
    """An optional dependency is needed; the message names the extra that brings it."""

    def __init__(self, feature: str, extra: str, why: str = "it is not installed") -> None:
        self.extra = extra
        super().__init__(f"{feature} needs the extra '{extra}', but {why}: pip install '{DISTRIBUTION}[{extra}]'")


class ShapeError(SaccadeError):
    """A tensor whose shape does not fit; carries what was expected and what came."""

    def __init__(self, name: str, expected: str, actual: Iterable[int]) -> None:
        self.name, self.expected, self.actual = name, expected, tuple(actual)
        super().__init__(f"{name}: expected shape {expected}, got {self.actual}")


def check_alike(name: str, value: Tensor, like: Tensor) -> None:
    """Refuse a ``value`` of another shape than ``like``: shapes that broadcast give a score of the wrong thing."""
    if value.shape != like.shape:
        raise ShapeError(name, str(tuple(like.shape)), value.shape)


def listed(names: Iterable[str]) -> str:
    """Names with commas between them; all in quotes where one of them has several words.

    >>> listed(["red", "blue"]), listed(["is it red?", "why"])
    ('red, blue', "'is it red?', 'why'")
    """
    every = [str(name) for name in names]
    return ", ".join([f"'{name}'" for name in every] if any(" " in name for name in every) else every)


def nearest(word: str, choices: Iterable[str], *, listed_by: str = "") -> str:
    """A hint for the message about ``word``: the nearest of the ``choices``, and all of them.

    Where they are too many for a message, it names the nearest three and the command that prints them (``listed_by``).

    >>> nearest("sfot", ["soft", "hard"])
    "did you mean 'soft'? (choices: hard, soft)"
    >>> nearest("sfot", ["soft", "softer", "hard"], listed_by="saccade list")
    "did you mean 'soft' or 'softer'? 'saccade list' prints all names"
    """
    names = sorted(str(choice) for choice in choices)
    if not names:
        return "there is nothing to choose from"
    count = _NEAREST_NAMED if listed_by else 1
    close = [f"'{name}'" for name in difflib.get_close_matches(str(word)[:_LONGEST_WORD], names, n=count, cutoff=0.5)]
    if listed_by:
        named = " or ".join(filter(None, [", ".join(close[:-1]), *close[-1:]]))
        return (f"did you mean {named}? " if close else "") + f"'{listed_by}' prints all names"
    return f"did you mean {close[0]}? (choices: {listed(names)})" if close else f"choose from {listed(names)}"


def shown_value(value: object) -> str:
    """``value`` as Python writes it, in one line that is not too long."""
    try:
        text = " ".join(repr(value).split())  # a matrix has several lines
    except (ValueError, RecursionError):  # a number of thousands of digits, or a list in a list in a list …
        return "too long to be shown"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
