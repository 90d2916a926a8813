"""The table of many looks, ``looks.csv`` and where asked for ``looks.parquet``: a row for each picture."""

from __future__ import annotations

import csv
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO

from saccade.atomic import growing
from saccade.errors import MissingExtraError
from saccade.sighting import Sighting

NAME, PARQUET = "looks.csv", "looks.parquet"
_FIRST = ("source", "asked", "answer", "confidence", "next_best", "next_confidence", "x", "y", "files", "notes")
COLUMNS = (*_FIRST, "raw_confidence", "fit", "fit_p")  # new ones come last: programs may count columns


_FLOATS = ("confidence", "next_confidence", "raw_confidence", "fit_p")
_WHOLE = ("x", "y")


def row_of(seen: Sighting, stem: str) -> tuple[object, ...]:
    """What the table says of one sighting; x and y are the pixel with the most weight, where there is a picture."""
    second = seen.alternatives[0] if seen.alternatives else ("", None)
    x, y = seen.peak if seen.has_places else ("", "")
    share = "" if second[1] is None else f"{second[1]:.6f}"
    said = (seen.answer, f"{seen.confidence:.6f}" if seen.is_answered else "", second[0], share)
    fit = (seen.fit.verdict, "" if seen.fit.p is None else f"{seen.fit.p:.6f}")
    told = ("; ".join(seen.notes), f"{seen.said.raw_confidence:.6f}" if seen.is_answered else "", *fit)
    return (seen.source.name, seen.question or "", *said, x, y, stem, *told)


class AddRow(Protocol):
    """Adds one row to the table."""

    def __call__(self, seen: Sighting, stem: str) -> None:
        """The row of a sighting, whose files are called ``stem``."""


@contextmanager
def looks_table(folder: Path, *, parquet: bool = False) -> Iterator[AddRow]:
    """A table into which rows are written as they come; none is kept in memory.

    With ``parquet`` the same rows are in ``looks.parquet`` too (:func:`check_parquet` says beforehand whether it can be
    written).

    It takes its place in ``folder``, and that of an earlier one, when this ends, whether well or not: what was answered
    before somebody stopped it is in it. With fewer than two rows there is no table.
    """
    rows = 0
    with growing(folder / NAME) as draft:
        file: TextIO = draft.open("w", newline="", encoding="utf-8", errors="replace")
        writer = csv.writer(file)
        writer.writerow(COLUMNS)

        def add(seen: Sighting, stem: str) -> None:
            nonlocal rows
            rows += 1
            writer.writerow(row_of(seen, stem))

        try:
            yield add
        finally:
            file.close()
            if rows < 2:
                draft.unlink()
            elif parquet:
                _write_parquet(draft, folder / PARQUET)


def check_parquet() -> None:
    """Refuse to begin without pyarrow."""
    _arrow()


def _arrow() -> tuple[Any, Any, Any]:
    try:
        names = ("pyarrow", "pyarrow.csv", "pyarrow.parquet")
        arrow, tables, parquet = (importlib.import_module(name) for name in names)
    except ImportError as error:
        raise MissingExtraError("a table of looks as Parquet", "tables") from error
    return arrow, tables, parquet


def _write_parquet(table: Path, target: Path) -> None:
    """The rows of a CSV as Parquet, some at a time; numbers are numbers there, and empty cells of numbers are null."""
    arrow, tables, parquet = _arrow()
    types = dict.fromkeys(COLUMNS, arrow.string())
    types |= dict.fromkeys(_FLOATS, arrow.float64()) | dict.fromkeys(_WHOLE, arrow.int64())
    read = tables.ConvertOptions(column_types=types, strings_can_be_null=False)
    parsed = tables.ParseOptions(newlines_in_values=True)
    with (
        growing(target) as draft,
        tables.open_csv(table, convert_options=read, parse_options=parsed) as rows,
        parquet.ParquetWriter(draft, rows.schema) as writer,
    ):
        for batch in rows:
            writer.write_batch(batch)
