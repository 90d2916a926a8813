"""The table of many looks, ``looks.csv``: a row for each picture, beside what is kept of it."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TextIO

from saccade.atomic import growing
from saccade.sighting import Sighting

NAME = "looks.csv"
_FIRST = ("source", "asked", "answer", "confidence", "next_best", "next_confidence", "x", "y", "files", "notes")
COLUMNS = (*_FIRST, "raw_confidence", "fit", "fit_p")  # new ones come last: programs may count columns


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
def looks_table(folder: Path) -> Iterator[AddRow]:
    """A table into which rows are written as they come; none is kept in memory.

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
