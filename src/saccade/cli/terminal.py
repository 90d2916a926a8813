"""How results are shown: tables and JSON on stdout, remarks and progress on stderr."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from saccade.show.slot_table import SlotGrid

_LONGEST_NAME = 28
_BROKEN_PATH = 14
_BETWEEN_LINES = 10.0  # seconds


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """One JSON value on stdout; not-a-number becomes null, because JSON has no word for it."""
    typer.echo(json.dumps(_finite(value), indent=indent, ensure_ascii=False, allow_nan=False))


def places(points: Sequence[tuple[int, int]]) -> str:
    """Pixels as they stand in a cell of a table, the next after a dot: ``x, y · x, y``."""
    return " · ".join(f"{x}, {y}" for x, y in points)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, note: str = "") -> None:
    """A table on stdout, with a note under it; cells are shown as they are, without markup.

    Where the terminal is too narrow for the longest words of all columns, each row is printed as a few lines instead:
    its name, then ``column value`` pairs.
    """
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    texts = [[_shown(cell) for cell in row] for row in rows]
    held = [[column, *(row[place] for row in texts)] for place, column in enumerate(columns)]
    console.print(Text(title, style="bold"), soft_wrap=True)
    if _is_too_wide(held, console.width):
        for line in _stacked(columns, texts, console.width):
            console.print(Text(line), soft_wrap=True)
    else:
        table = Table(box=SIMPLE)
        for place, (column, width) in enumerate(zip(columns, _fitted(held, console.width))):
            is_number = bool(rows) and all(_is_number(row[place]) for row in rows)
            table.add_column(Text(column), justify="right" if is_number else "left", overflow="fold", width=width)
        for row in texts:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
    if note:
        console.print(Text(note, style="dim"), soft_wrap=True)
        console.print()


def print_slots(title: str, grid: SlotGrid) -> None:
    """Looks over slots on stdout: a line for each sentence, a column for each look, cells coloured by weight."""
    from rich.box import SIMPLE
    from rich.color import Color
    from rich.console import Console
    from rich.style import Style
    from rich.table import Table
    from rich.text import Text

    from saccade.show.slot_table import NEEDED

    table = Table(box=SIMPLE, padding=(0, 1, 0, 0))
    for heading in ("", "sentence"):
        table.add_column(heading, overflow="fold")
    for heading in grid.headings:
        table.add_column(Text(heading), justify="right", no_wrap=True)
    for row, text in enumerate(grid.texts):
        cells = [
            Text(
                f" {grid.weights[row, column]:.2f} ",
                Style(color=Color.from_rgb(*grid.ink(row, column)), bgcolor=Color.from_rgb(*grid.fill(row, column))),
            )
            for column in range(len(grid.headings))
        ]
        table.add_row("*" if row in grid.supporting else "", Text(text), *cells)
    console = Console()
    console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(table)
    console.print(Text(grid.legend + (f"; *: {NEEDED}" if grid.supporting else ""), style="dim"), soft_wrap=True)
    console.print()


def _least(columns: Sequence[Sequence[str]]) -> tuple[list[int], list[int]]:
    """Least widths of the columns without broken words, and the same where the path in the first may be broken."""
    from rich.cells import cell_len

    longest = [max(cell_len(word) for cell in cells for word in cell.split() or [""]) for cells in columns]
    words = [min(length, _LONGEST_NAME) for length in longest]
    is_path = bool(columns) and any("/" in cell or "\\" in cell for cell in columns[0]) and longest[0] > _LONGEST_NAME
    return words, [_BROKEN_PATH, *words[1:]] if is_path else words


def _over(widths: Sequence[int], room: int) -> bool:
    """Whether columns of these widths, with the space between them, take more than ``room``."""
    return sum(widths) + 3 * len(widths) + 1 > room


def _is_too_wide(columns: Sequence[Sequence[str]], room: int) -> bool:
    """Whether words would have to be broken to fit the columns into ``room``."""
    return _over(_least(columns)[1], room)


def _fitted(columns: Sequence[Sequence[str]], room: int) -> list[int]:
    """Widths of the columns, the widest narrowed first: headings are broken before cells, and paths before words.

    Rich would break words before lines, and where a column has a least width cut the last one off.
    """
    from rich.cells import cell_len

    widths = [max(map(cell_len, cells)) for cells in columns]
    words, broken = _least(columns)
    whole_cells = [max(cell_len(part) for part in (*cells, *heading.split(), "")) for heading, *cells in columns]
    for least in (whole_cells, words, broken):
        while _over(widths, room) and any(width > end for width, end in zip(widths, least)):
            widest = max((place for place, width in enumerate(widths) if width > least[place]), key=widths.__getitem__)
            widths[widest] -= 1
    return widths


def _stacked(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[str]:
    """Rows as lines: the first cell, then the others with the names of their columns, as many to a line as fit.

    >>> _stacked(("model", "follow", "turn"), [("SOFT", "98.1", "3.2")], 20)
    ['', 'SOFT', '  follow 98.1', '  turn 3.2', '']
    """
    from rich.cells import cell_len

    lines = [""]
    for name, *cells in rows:
        lines += [" ".join(name.split()), "  "]
        for column, cell in zip(columns[1:], cells):
            first, *more = textwrap.wrap(" ".join(f"{column} {cell}".split()), max(room - 4, 20)) or [column]
            is_first = not lines[-1].strip()
            if not is_first and (more or cell_len(lines[-1]) + cell_len(first) + 3 > room):
                lines.append("  ")
                is_first = True
            lines[-1] += first if is_first else f" · {first}"
            lines += [*(f"    {line}" for line in more), *(["  "] if more else [])]
    return [*(line for line in lines if line.strip() or not line), ""]


def remark(text: str) -> None:
    """A line on stderr that is no error."""
    typer.secho(text, dim=True, err=True)


def warn(text: str) -> None:
    """A line on stderr about something that went wrong without ending the run."""
    typer.secho(text, fg="yellow", err=True)


@contextmanager
def bar(
    what: str, total: int | None, *, shown: bool, unit: str = "count"
) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar on stderr, where that is a terminal; yields ``update(done, total)``."""
    if not shown:
        yield lambda done, total: None
        return
    with _progress(unit) as progress:
        task = progress.add_task(what, total=total)

        def update(done: int, whole: int | None) -> None:
            progress.update(task, completed=done, total=whole)

        yield update


@contextmanager
def stages(*, shown: bool) -> Iterator[Callable[[str, int, int | None], None]]:
    """Progress through one thing after the other, on stderr: a bar on a terminal, elsewhere plain lines.

    Elsewhere a line says what begins, and every :data:`_BETWEEN_LINES` seconds one says how far it is.

    Yields ``update(what, done, total)``; a ``total`` of None is not known yet.
    """
    if not shown:
        yield lambda what, done, total: None
        return
    with _progress("count") as progress:
        task = progress.add_task("", total=None)
        current, said = "", 0.0

        def update(what: str, done: int, total: int | None) -> None:
            nonlocal current, said
            now = time.monotonic()
            is_due = total is not None and now - said >= _BETWEEN_LINES and done < total
            if progress.disable and (what != current or is_due):
                remark(f"{what} …" if what != current else f"{what}: {done:,} of {total:,}")
                said = now
            current = what
            progress.update(task, description=what, completed=done, total=total)

        yield update


def _progress(unit: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    counter = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), counter, TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _shown(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))) else value
