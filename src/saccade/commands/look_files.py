"""What ``look`` keeps: each answer as it comes, and one table of all; of several models, what they say side by side.

``looks.csv``, and where asked for ``looks.parquet``, has a row for each input.
"""

from __future__ import annotations

import csv
import importlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saccade.atomic import growing, make_folder, write_bytes
from saccade.errors import MissingExtraError

if TYPE_CHECKING:
    from saccade.sighting import Sighting

SAVED_AT_ONCE = 2
"""Sightings that are drawn and written while the next ones are answered."""
NAME, PARQUET = "looks.csv", "looks.parquet"
COLUMNS = (
    *("source", "asked", "answer", "confidence", "next_best", "next_confidence", "x", "y", "files", "notes"),
    *("raw_confidence", "fit", "fit_p"),
)
_FLOATS = ("confidence", "next_confidence", "raw_confidence", "fit_p")
_WHOLE = ("x", "y")


def kept(
    sightings: Iterable[Sighting], folder: Path, *, filmstrip: bool | None, cells: bool, parquet: bool
) -> Iterator[Sighting]:
    """The sightings, each saved under a name of its own: a/1.png and b/1.png must not overwrite each other.

    A folder that is made for them goes again if nothing is kept in it.
    """
    is_new = not folder.exists()
    make_folder(folder)
    taken: Counter[str] = Counter()
    waiting: deque[tuple[Sighting, str, Future[Any]]] = deque()

    def every() -> Iterator[Sighting]:
        with _table(folder, parquet=parquet) as add_row, ThreadPoolExecutor(SAVED_AT_ONCE, "saving") as saving:
            try:
                for seen in sightings:
                    stem = seen.stem
                    while taken[stem]:  # 1-2 may be taken too, by a picture of that name
                        taken[seen.stem] += 1
                        stem = f"{seen.stem}-{taken[seen.stem]}"
                    taken[stem] += 1
                    saved = saving.submit(seen.save, folder, stem, filmstrip=filmstrip, cells=cells)
                    waiting.append((seen, stem, saved))
                    while len(waiting) > SAVED_AT_ONCE:
                        yield first(add_row)
                while waiting:
                    yield first(add_row)
            finally:
                saving.shutdown(cancel_futures=True)

    def first(add_row: Callable[[Sighting, str], None]) -> Sighting:
        """The first that waits, once its files are written, or the error that kept them from it."""
        seen, stem, saved = waiting.popleft()
        saved.result()
        add_row(seen, stem)
        return seen

    try:
        yield from every()
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def _row(seen: Sighting, stem: str) -> tuple[object, ...]:
    """What the table says of one sighting; x and y are the pixel with the most weight, where there is a picture."""
    second = seen.alternatives[0] if seen.alternatives else ("", None)
    x, y = seen.peak if seen.has_places else ("", "")
    share = "" if second[1] is None else f"{second[1]:.6f}"
    said = (seen.answer, f"{seen.confidence:.6f}" if seen.is_answered else "", second[0], share)
    fit = (seen.fit.verdict, "" if seen.fit.p is None else f"{seen.fit.p:.6f}")
    told = ("; ".join(seen.notes), f"{seen.said.raw_confidence:.6f}" if seen.is_answered else "", *fit)
    return (seen.source.name, seen.question or "", *said, x, y, stem, *told)


@contextmanager
def _table(folder: Path, *, parquet: bool) -> Iterator[Callable[[Sighting, str], None]]:
    """A table into which rows are written as they come; yields what adds the row of a sighting and its stem.

    It takes its place in ``folder``, and that of an earlier one, when this ends, whether well or not: what was answered
    before somebody stopped it is in it. With fewer than two rows there is no table.
    """
    rows = 0
    with growing(folder / NAME) as draft:
        file = draft.open("w", newline="", encoding="utf-8", errors="replace")
        writer = csv.writer(file)
        writer.writerow(COLUMNS)

        def add(seen: Sighting, stem: str) -> None:
            nonlocal rows
            rows += 1
            writer.writerow(_row(seen, stem))

        try:
            yield add
        finally:
            file.close()
            if rows < 2:
                draft.unlink()
            elif parquet:
                _write_parquet(draft, folder / PARQUET)


def parquet_modules() -> tuple[Any, Any, Any]:
    """The modules ``pyarrow``, ``pyarrow.csv`` and ``pyarrow.parquet``."""
    try:
        names = ("pyarrow", "pyarrow.csv", "pyarrow.parquet")
        arrow, tables, parquet = (importlib.import_module(name) for name in names)
    except ImportError as error:
        raise MissingExtraError("a table of looks as Parquet", "tables") from error
    return arrow, tables, parquet


def _write_parquet(table: Path, target: Path) -> None:
    """The rows of a CSV as Parquet, some at a time; numbers are numbers there, and empty cells of numbers are null."""
    arrow, tables, parquet = parquet_modules()
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


def write_comparison(sightings: Sequence[Sighting], folder: Path) -> None:
    """Write ``STEM-compare.png``, each model's overlay, name and answer, and a page of every look of theirs."""
    from saccade.show.filmstrip import contact_sheet
    from saccade.show.overlay import png_bytes
    from saccade.show.report_sources import report_from_records

    asked = ["" if seen.question is None else f", asked {seen.question}" for seen in sightings]
    captions = [f"{seen.model}{text}: {seen.answer} {seen.confidence:.0%}" for seen, text in zip(sightings, asked)]
    drawn = [seen.overlay() if seen.is_spatial else seen.filmstrip() for seen in sightings]
    picture = contact_sheet(drawn, captions, columns=len(sightings), panel=400)
    name = folder / f"{sightings[0].stem}-compare"
    write_bytes(name.with_suffix(".png"), png_bytes(picture, optimize=True))
    report_from_records([seen.record() for seen in sightings]).save(name.with_suffix(".html"))
