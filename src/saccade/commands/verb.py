"""What the verbs share: their arguments, read from signature and docstring, and how results are printed.

========================  ==============================================================================================
in the signature          means
========================  ==============================================================================================
``steps: int = 32``       a whole number; ``Annotated[int, Within(1, 64)]`` one from 1 to 64
``Path | str``            of a union the first type that can be typed on a command line counts
``Sequence[str] = ()``    may be given several times
``Literal["a", "b"]``     one of these
``Callable``, ``Any``     for Python alone
========================  ==============================================================================================

The docstring has a text for each argument under ``Args:``. Its first sentence is the help of the option, and what
follows ``None:`` says what happens without it.

Tables and JSON go to stdout, remarks and progress to stderr. A label, a file name or a message may hold the characters
that move a terminal's cursor or write its clipboard: all that is printed goes through :func:`plain`.
"""

from __future__ import annotations

import collections.abc
import ctypes
import dataclasses
import inspect
import json
import os
import re
import time
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from numbers import Integral, Real
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

from saccade.config import Within
from saccade.errors import ConfigError, nearest, shown_value

if TYPE_CHECKING:
    from rich.text import Text

REQUIRED = inspect.Parameter.empty
_ENTRY = re.compile(r"^    \*{0,2}(\w+): ", re.MULTILINE)
_WITHOUT = re.compile(r"(?:^|(?<=[.;]) )None: (.*?)\.?$")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_BETWEEN_LINES = 10.0  # seconds
_WIDE = 200  # characters of a table in a file or a pipe
Remark = Callable[[str], None]  # Prints a line on stderr that is no error, unless the verb was asked to be quiet.


@dataclass(frozen=True)
class Argument:
    """One argument of a function."""

    name: str
    default: Any = REQUIRED
    text: str = ""  # What the docstring says.
    help: str = ""  # The first sentence of it.
    without: str = ""  # What happens where it is not given.
    kind: type | None = None  # What is typed on a command line; None: it is for Python alone.
    many: bool = False
    choices: tuple[Any, ...] = ()
    bounds: Within | None = None


@dataclass(frozen=True)
class Command:
    """A function as a verb of the command line: what its signature does not tell."""

    function: Callable[..., Any]
    # Prints the result; it gets what was typed too, and what prints remarks. It never sees --json.
    show: Callable[[Any, dict[str, Any], Remark], None]
    # Called in the function's place; arguments that it names itself come first, the others are the function's.
    run: Callable[..., Any] | None = None
    # Arguments that are given by their place, and how help calls them.
    place: Mapping[str, str] = field(default_factory=dict)
    # Names beside ``--NAME``, such as ``-o``; or other ones, such as ``--set``.
    names: Mapping[str, str] = field(default_factory=dict)
    # What stands for the value in help, in place of TEXT, N and PATH.
    words: Mapping[str, str] = field(default_factory=dict)
    commas: frozenset[str] = frozenset()  # Arguments of several values that are one text with commas between.
    leave_out: frozenset[str] = frozenset()  # Arguments that are for Python alone, besides those that cannot be typed.
    code: Callable[[Any], int] = lambda result: 0  # The exit code for a result.
    example: str = ""
    json: bool = True  # Whether there is a --json.

    def arguments(self) -> dict[str, Argument]:
        """Those that can be typed, by name."""
        every = {**arguments_of(self.function), **({} if self.run is None else arguments_of(self.run))}
        return {name: one for name, one in every.items() if one.kind is not None and name not in self.leave_out}


class Stream(Iterable[Any]):
    """A result that comes one by one; each is printed as a line of JSON where that is asked for."""


@cache
def arguments_of(function: Callable[..., Any]) -> Mapping[str, Argument]:
    """Its arguments, in order; those of ``**options`` have no names and are not among them."""
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", inspect.cleandoc(function.__doc__ or ""), re.MULTILINE)
    parts = _ENTRY.split(section.group(1))[1:] if section else []
    texts = {name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2])}
    arguments = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        text, annotation = texts.get(name, ""), parameter.annotation
        if isinstance(annotation, str):  # those of the arguments alone: others may stand under TYPE_CHECKING
            annotation = eval(annotation, inspect.unwrap(function).__globals__)  # noqa: S307  # our own source
        without = _WITHOUT.search(text)
        help_ = re.split(r"(?<=[.?!]) (?=[A-Z`'0-9])", _WITHOUT.sub("", text))[0].rstrip(".")
        if help_.partition(" ")[0].strip(",;:").isalpha():  # else it begins with a name
            help_ = help_[:1].upper() + help_[1:]
        without_it = without.group(1).split(". ")[0] if without else ""
        arguments[name] = Argument(name, parameter.default, text, help_, without_it, **_typed_as(annotation))
    return arguments


def _typed_as(annotation: Any) -> dict[str, Any]:
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


def check_call(function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Refuse numbers out of bounds and words that are no choice in ``values``, by the signature of ``function``."""
    for name, argument in arguments_of(function).items():
        value = values.get(name)
        if value is None:
            continue
        if argument.choices:
            for word in value if argument.many and isinstance(value, (list, tuple)) else (value,):
                if word not in argument.choices:
                    raise ConfigError(f"{name}: no '{word}'; {nearest(str(word), argument.choices)}")
        elif argument.kind in (int, float) and not argument.many:
            if isinstance(value, bool) or not isinstance(value, Integral if argument.kind is int else Real):
                wanted = "a whole number" if argument.kind is int else "a number"
                raise ConfigError(f"{name}: expected {wanted}, found {shown_value(value)}")
            if argument.bounds:
                argument.bounds.check(value, name)


F = TypeVar("F", bound=Callable[..., Any])


def checked(function: F) -> F:
    """A verb that refuses wrong arguments before it begins; with ``offline`` it fetches nothing from the hub."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        arguments = signature.bind(*args, **options).arguments
        check_call(function, arguments)
        if not arguments.get("offline"):
            return function(*args, **options)
        from saccade.backbones.hub import offline  # here, as few calls need it

        with offline():
            return function(*args, **options)

    return cast(F, call)


def wake_cuda(name: str = "auto") -> Thread | None:
    """Make the context of the CUDA device ``name`` in the background, while the caller imports torch.

    The driver is called directly, which needs neither torch nor Python's lock. Torch then finds the context there.
    """
    kind, _, index = str(name).partition(":")
    if kind not in ("auto", "cuda") or not (index or "0").isdigit():
        return None
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None

    def make_context() -> None:
        device, context = ctypes.c_int(), ctypes.c_void_p()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(device), int(index or 0)) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)  # the one that torch uses

    # Not a daemon: a process that ended in the middle of this could crash on its way out.
    thread = Thread(target=make_context, name="saccade-cuda")
    thread.start()
    return thread


def plain(text: str) -> str:
    r"""``text`` without control characters, those that turn the direction of writing included.

    >>> plain("a\x1b[31m red\tone")
    'a�[31m red\tone'
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def _write(text: str, **style: Any) -> None:
    import typer  # here, as verbs are called from Python too

    typer.secho(text, **style)


def say(text: str) -> None:
    """A line on stdout."""
    _write(plain(text))


def remark(text: str) -> None:
    """A line on stderr that is no error."""
    _write(plain(text), dim=True, err=True)


def warn(text: str) -> None:
    """A line on stderr about something that went wrong without ending the run."""
    _write(plain(text), fg="yellow", err=True)


def fail(text: str) -> None:
    """One line on stderr about what ended the run."""
    _write(plain(f"error: {' '.join(text.split())}"), fg="red", err=True)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON value on stdout; not-a-number becomes null, because JSON has no word for it."""
    text = json.dumps(as_json(value), indent=indent, ensure_ascii=False, allow_nan=False)
    _write(_CONTROL.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text))


def as_json(value: Any) -> Any:
    """Results, dataclasses and paths as JSON has them."""
    if hasattr(value, "to_json"):
        return as_json(value.to_json())
    if dataclasses.is_dataclass(value):
        return {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return str(value) if isinstance(value, Path) else value


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, note: str = "") -> None:
    """A table on stdout, with a note under it; cells are shown as they are, without markup."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    def shown(value: object) -> Text:
        if isinstance(value, Text):
            return value
        text = "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
        return Text(plain(text))

    console = Console()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _WIDE  # a file or a pipe: no line is broken
    table = Table(box=SIMPLE, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    console.print(Text(plain(title), style="bold"), soft_wrap=True)
    texts = [[Text(plain(column)), *(shown(row[place]) for row in rows)] for place, column in enumerate(columns)]
    for place, width in enumerate(_widths(texts, console.width - 2 * (len(columns) - 1))):
        cells = [row[place] for row in rows]
        is_number = bool(cells) and all(isinstance(cell, (int, float, Text)) for cell in cells)
        is_number = is_number and not any(isinstance(cell, bool) for cell in cells)
        table.add_column(texts[place][0], justify="right" if is_number else "left", overflow="fold", width=width)
    for row in zip(*(column[1:] for column in texts)):
        table.add_row(*row)
    console.print(table)
    if note:
        console.print(Text(plain(note), style="dim"), soft_wrap=True)
    console.print()


def _widths(columns: Sequence[Sequence[Text]], room: int) -> list[int]:
    """The width of each column, ``room`` together: the widest give way first, and words stay whole where they can."""
    from rich.cells import cell_len

    widths = [max(text.cell_len for text in column) for column in columns]
    words = [max(cell_len(word) for text in column for word in text.plain.split() or [""]) for column in columns]
    while sum(widths) > max(room, len(widths)):
        widths[max(range(len(widths)), key=lambda place: (widths[place] > words[place], widths[place]))] -= 1
    return widths


class Progress:
    """Progress on stderr: a line says what begins, then a bar on a terminal, or a line now and then, how far it is.

    It is a :data:`saccade.progress.OnProgress`; with a ``total`` of 1, ``done`` is a share. Nothing is shown before the
    first call.
    """

    def __init__(self, *, shown: bool) -> None:
        self._shown, self._current, self._said = shown, "", 0.0
        self._bar: Any = None

    def __call__(self, what: str, done: float, total: float | None) -> None:
        """Show how far it is."""
        if not self._shown:
            return
        what = plain(what)
        if self._bar is None:
            from rich import progress as bars
            from rich.console import Console

            console = Console(stderr=True)
            counted = bars.TaskProgressColumn() if total == 1 else bars.MofNCompleteColumn()
            what_for = bars.TextColumn("{task.description}", markup=False)
            columns = (what_for, bars.BarColumn(), counted, bars.TimeRemainingColumn())
            self._bar = bars.Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        now = time.monotonic()
        is_due = total is not None and now - self._said >= _BETWEEN_LINES and done < total
        if what != self._current:
            self._bar.console.print(f"{what} …", style="dim", markup=False, highlight=False, soft_wrap=True)
            self._said = now
        elif self._bar.disable and is_due:
            remark(f"{what}: {done:.0%}" if total == 1 else f"{what}: {done:,} of {total:,}")
            self._said = now
        self._current = what
        self._bar.update(self._task, description=what, completed=done, total=total)

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
