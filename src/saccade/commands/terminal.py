"""How results are shown: tables and JSON on stdout, remarks and progress on stderr.

A label, a file name or a message may hold the characters that move a terminal's cursor or write its clipboard. All that
is printed goes through :func:`plain`.
"""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_BETWEEN_LINES = 10.0  # seconds


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


Remark = Callable[[str], None]
"""Prints a line on stderr that is no error, unless that was asked to be quiet."""


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

    console, table = Console(), Table(box=SIMPLE)
    console.print(Text(plain(title), style="bold"), soft_wrap=True)
    for place, column in enumerate(columns):
        is_number = bool(rows) and all(_is_number(row[place]) or isinstance(row[place], Text) for row in rows)
        table.add_column(Text(plain(column)), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(plain(_shown(cell))) for cell in row))
    console.print(table)
    if note:
        console.print(Text(plain(note), style="dim"), soft_wrap=True)
        console.print()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Progress:
    """Progress on stderr: a bar on a terminal; elsewhere a line says what begins, and at times one how far it is.

    Called as ``progress(done, total)``, or ``progress(what, done, total)`` where there are several things to do; a
    ``total`` of None is not known yet. Nothing is shown before the first call.
    """

    def __init__(self, what: str, *, shown: bool) -> None:
        self._what, self._shown, self._current, self._said = what, shown, "", 0.0
        self._bar: Any = None

    def __call__(self, *said: Any) -> None:
        """Show how far it is."""
        if not self._shown:
            return
        what = plain(str(said[0])) if len(said) == 3 else self._what
        done, total = said[-2:]
        if self._bar is None:
            self._begin()
        now = time.monotonic()
        is_due = total is not None and now - self._said >= _BETWEEN_LINES and done < total
        if self._bar.disable and (what != self._current or is_due):
            remark(f"{what} …" if what != self._current else f"{what}: {done:,} of {total:,}")
            self._said = now
        self._current = what
        self._bar.update(self._task, description=what, completed=done, total=total)

    def _begin(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        is_off = not console.is_terminal
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=is_off)
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def stop(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
