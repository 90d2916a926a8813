"""What a verb's signature and docstring say of its arguments: read by the command line, and checked from Python too.

========================  ==============================================================================================
in the signature          means
========================  ==============================================================================================
``steps: int = 32``       a whole number; ``Annotated[int, Number(1, 64)]`` one from 1 to 64
``Path | str``            of a union the first type that can be typed on a command line counts
``Sequence[str] = ()``    may be given several times
``Literal["a", "b"]``     one of these
``Callable``, ``Any``     for Python alone
========================  ==============================================================================================

The docstring has a text for each argument under ``Args:``. Its first sentence is the help of the option, and what
follows ``None:`` says what happens without it.
"""

from __future__ import annotations

import collections.abc
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any

from saccade.errors import ConfigError, nearest, shown_value

REQUIRED = inspect.Parameter.empty
_ENTRY = re.compile(r"^    \*{0,2}(\w+): ", re.MULTILINE)
_WITHOUT = re.compile(r"(?:^|(?<=[.;]) )None: (.*?)\.?$")


@dataclass(frozen=True)
class Number:
    """Bounds of a number, both included."""

    least: float
    most: float | None = None

    def hold(self, value: Any) -> bool:
        """Whether it is within them."""
        return bool(self.least <= value and (self.most is None or value <= self.most))

    def __str__(self) -> str:
        return f"{self.least:g} or more" if self.most is None else f"{self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class Argument:
    """One argument of a function."""

    name: str
    default: Any = REQUIRED
    text: str = ""
    """What the docstring says."""
    kind: type | None = None
    """What is typed on a command line; None: it is for Python alone."""
    many: bool = False
    choices: tuple[Any, ...] = ()
    bounds: Number | None = None

    @property
    def without(self) -> str:
        """What happens where it is not given."""
        without = _WITHOUT.search(self.text)
        return without.group(1).split(". ")[0] if without else ""

    @property
    def help(self) -> str:
        """The first sentence of its text, with a capital letter unless it begins with a name."""
        first = re.split(r"(?<=[.?!]) (?=[A-Z`'0-9])", _WITHOUT.sub("", self.text))[0].rstrip(".")
        return first[:1].upper() + first[1:] if first.partition(" ")[0].strip(",;:").isalpha() else first

    def check(self, value: object) -> None:
        """Refuse a word that is no choice, and a number out of bounds."""
        if self.choices:
            for word in value if self.many and isinstance(value, (list, tuple)) else (value,):
                if word not in self.choices:
                    raise ConfigError(f"{self.name}: no '{word}'; {nearest(str(word), self.choices)}")
        elif self.kind in (int, float) and not self.many:
            is_number = isinstance(value, Integral if self.kind is int else Real) and not isinstance(value, bool)
            if not is_number or (self.bounds is not None and not self.bounds.hold(value)):
                wanted = "a whole number" if self.kind is int else "a number"
                wanted += f", {self.bounds}" if self.bounds else ""
                raise ConfigError(f"{self.name}: expected {wanted}, found {shown_value(value)}")


@dataclass(frozen=True)
class Command:
    """A function as a verb of the command line: what its signature does not tell."""

    function: Callable[..., Any]
    show: Callable[[Any, dict[str, Any], Callable[[str], None]], None]
    """Prints the result; it gets what was typed too, and what prints remarks. It never sees --json."""
    run: Callable[..., Any] | None = None
    """Called in the function's place; arguments that it names itself come first, the others are the function's."""
    place: Mapping[str, str] = field(default_factory=dict)
    """Arguments that are given by their place, and how help calls them."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names beside ``--NAME``, such as ``-o``; or other ones, such as ``--set``."""
    words: Mapping[str, str] = field(default_factory=dict)
    """What stands for the value in help, in place of TEXT, N and PATH."""
    commas: frozenset[str] = frozenset()
    """Arguments of several values that are one text with commas between."""
    leave_out: frozenset[str] = frozenset()
    """Arguments that are for Python alone, besides those that cannot be typed."""
    code: Callable[[Any], int] = lambda result: 0
    """The exit code for a result."""
    example: str = ""
    json: bool = True
    """Whether there is a --json."""

    def every_argument(self) -> dict[str, Argument]:
        """Those of Python too."""
        return {**arguments_of(self.function), **({} if self.run is None else arguments_of(self.run))}

    def arguments(self) -> dict[str, Argument]:
        """Those that can be typed."""
        every = self.every_argument()
        return {name: each for name, each in every.items() if each.kind is not None and name not in self.leave_out}


class Stream:
    """A result that comes one by one; each is printed as a line of JSON where that is asked for."""

    def __iter__(self) -> Iterator[Any]:
        """What comes."""
        return iter(())


@cache
def arguments_of(function: Callable[..., Any]) -> Mapping[str, Argument]:
    """Its arguments, in order; those of ``**options`` have no names and are not among them."""
    texts, arguments = _texts(function.__doc__ or ""), {}
    for each in inspect.signature(function).parameters.values():
        if each.kind is not each.VAR_KEYWORD:
            annotation = each.annotation
            if isinstance(annotation, str):  # those of the arguments alone: others may stand under TYPE_CHECKING
                annotation = eval(annotation, function.__globals__)  # noqa: S307  # our own source
            arguments[each.name] = Argument(each.name, each.default, texts.get(each.name, ""), **_typed_as(annotation))
    return arguments


def _typed_as(annotation: Any) -> dict[str, Any]:
    """Kind, choices and bounds of an annotation."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _typed_as(inner[0]) | {"bounds": inner[1]}
    if origin in (typing.Union, types.UnionType):
        return next((typed for typed in map(_typed_as, inner) if typed), {})
    if origin is typing.Literal:
        return {"kind": str, "choices": inner}
    if origin in (list, collections.abc.Sequence, collections.abc.Iterable):
        return _typed_as(inner[0]) | {"many": True}
    return {"kind": annotation} if annotation in (str, int, float, bool, Path) else {}


def _texts(docstring: str) -> dict[str, str]:
    r"""Argument → what the docstring says of it.

    >>> _texts("Score it.\n\nArgs:\n    limit: at most so many.\n        None: all.\n\nReturns:\n    A number.")
    {'limit': 'at most so many. None: all.'}
    """
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", inspect.cleandoc(docstring), re.MULTILINE)
    parts = _ENTRY.split(section.group(1))[1:] if section else []
    return {name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2])}


def check_call(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse numbers out of bounds and words that are no choice in ``given``, by the signature of ``function``."""
    for name, argument in arguments_of(function).items():
        if given.get(name) is not None:
            argument.check(given[name])
