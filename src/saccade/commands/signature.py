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
from typing import Any

from saccade.errors import ConfigError, nearest, shown_value

_ENTRY = re.compile(r"^    \*{0,2}(\w+): ", re.MULTILINE)
_WITHOUT = re.compile(r"(?:^|(?<=[.;]) )None: (.*?)\.?$")
_SEVERAL = (list, collections.abc.Sequence, collections.abc.Iterable)


@dataclass(frozen=True)
class Number:
    """Bounds of a number, both included."""

    least: float
    most: float | None = None


@dataclass(frozen=True)
class Argument:
    """One argument of a function."""

    name: str
    kind: type | None = None
    """What is typed on a command line; None: it is for Python alone."""
    default: Any = inspect.Parameter.empty
    many: bool = False
    choices: tuple[Any, ...] = ()
    bounds: Number | None = None
    is_open: bool = False
    """Python may give it what the annotation does not name."""
    text: str = ""
    """What the docstring says."""
    help: str = ""
    """The first sentence of it."""
    without: str = ""
    """What happens where it is not given."""


@dataclass(frozen=True)
class Command:
    """A function as a verb of the command line: what its signature does not tell."""

    function: Callable[..., Any]
    show: Callable[[Any, dict[str, Any], bool], None]
    """Prints the result; it gets what was typed too, and whether to leave out remarks. It never sees --json."""
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

    def arguments(self) -> dict[str, Argument]:
        """Those that can be typed."""
        own = {} if self.run is None else arguments_of(self.run)
        both = {**arguments_of(self.function), **own}
        return {name: each for name, each in both.items() if each.kind is not None and name not in self.leave_out}


class Stream:
    """A result that comes one by one; each is printed as a line of JSON where that is asked for."""

    def __iter__(self) -> Iterator[Any]:
        """What comes."""
        return iter(())


@cache
def arguments_of(function: Callable[..., Any]) -> Mapping[str, Argument]:
    """Its arguments, in order; those of ``**options`` have no names and are not among them."""
    texts = _texts(function.__doc__ or "")
    found = {}
    for each in inspect.signature(function).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            continue
        annotation = each.annotation
        if isinstance(annotation, str):  # those of the arguments alone: others may stand under TYPE_CHECKING
            annotation = eval(annotation, function.__globals__)  # noqa: S307  # our own source
        text = texts.get(each.name, "")
        without = _WITHOUT.search(text)
        first = re.split(r"(?<=[.?!]) (?=[A-Z`'0-9])", text[: without.start()] if without else text)[0]
        read: dict[str, Any] = {
            "text": text,
            "help": _capital(first.rstrip(".")),
            "without": without.group(1).split(". ")[0] if without else "",
        }
        found[each.name] = Argument(each.name, default=each.default, **read, **_read(annotation))
    return found


def _read(annotation: Any) -> dict[str, Any]:
    """Kind, choices and bounds of an annotation."""
    bounds = None
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, bounds = typing.get_args(annotation)
    is_union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    parts = typing.get_args(annotation) if is_union else (annotation,)
    read: dict[str, Any] = {"bounds": bounds, "is_open": Any in parts}
    for part in parts:
        if part in (str, int, float, bool, Path):
            return read | {"kind": part}
        if typing.get_origin(part) is typing.Annotated:
            return read | _read(part)
        if typing.get_origin(part) is typing.Literal:
            return read | {"kind": str, "choices": typing.get_args(part)}
        if typing.get_origin(part) in _SEVERAL:
            inner = _read(typing.get_args(part)[0])
            return read | {"kind": inner["kind"], "choices": inner.get("choices", ()), "many": True}
    return read | {"kind": None}


def _texts(docstring: str) -> dict[str, str]:
    r"""Argument → what the docstring says of it.

    >>> _texts("Score it.\n\nArgs:\n    limit: at most so many.\n        None: all.\n\nReturns:\n    A number.")
    {'limit': 'at most so many. None: all.'}
    """
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", inspect.cleandoc(docstring), re.MULTILINE)
    parts = _ENTRY.split(section.group(1))[1:] if section else []
    return {name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2])}


def _capital(sentence: str) -> str:
    """The sentence with a capital letter, unless it begins with a name."""
    return sentence[:1].upper() + sentence[1:] if sentence.partition(" ")[0].strip(",;:").isalpha() else sentence


def check_call(function: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Refuse numbers out of bounds and words that are no choice, by the signature of ``function``.

    Args:
        function: a verb, or a class of settings.
        given: its arguments; others are passed over.

    Raises:
        ConfigError: it names the argument, what was found and what could have been given.
    """
    for name, argument in arguments_of(function).items():
        value = given.get(name)
        if value is None or (value is argument.default and not isinstance(value, int)):
            continue
        each = value if argument.many and isinstance(value, (list, tuple)) else (value,)
        if argument.choices:
            for word in each:
                if word not in argument.choices:
                    raise ConfigError(f"{name}: no '{word}'; {nearest(str(word), argument.choices)}")
        elif argument.kind in (int, float) and not argument.is_open and not argument.many:
            _check_number(argument, value)


def _check_number(argument: Argument, value: object) -> None:
    wanted = "a whole number" if argument.kind is int else "a number"
    kind = Integral if argument.kind is int else Real
    if isinstance(value, bool) or not isinstance(value, kind):  # arrays and tensors are none
        found = f"the text '{value}'" if isinstance(value, str) else shown_value(value)
        raise ConfigError(f"{argument.name}: expected {wanted}, found {found}; give one, as in {argument.name}=1")
    bounds = argument.bounds
    if bounds and not (bounds.least <= value and (bounds.most is None or value <= bounds.most)):  # type: ignore[operator]  # a number
        range_ = f"{bounds.least:g} or more" if bounds.most is None else f"{bounds.least:g} to {bounds.most:g}"
        raise ConfigError(f"{argument.name}: expected {range_}, found {value}")
