"""What ``look`` keeps of many inputs: files of each answer as it comes, and one table.

``looks.csv``, and where asked for ``looks.parquet``, has a row for each input. Of several models a picture and a page
show what they say side by side.
"""

from __future__ import annotations

import csv
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from saccade.errors import DataError
from saccade.files import growing, make_folder, write_bytes
from saccade.predict import Predictor
from saccade.sighting import Sighting

SAVED_AT_ONCE = 2  # Sightings that are drawn and written while the next ones are answered.
NAME, PARQUET = "looks.csv", "looks.parquet"
COLUMNS = (
    *("source", "asked", "answer", "confidence", "next_best", "next_confidence", "x", "y", "files", "notes"),
    *("raw_confidence", "fit", "fit_p"),
)


def kept_looks(
    sightings: Iterable[Sighting], folder: Path, *, parquet: bool = False, **drawn: Any
) -> Iterator[Sighting]:
    """The sightings, each handed on once it is saved and in the table; a folder made for them goes if it stays empty.

    The table takes its place when this ends, whether well or not, so answers before an interruption are in it. With
    fewer than two rows there is no table. ``drawn``: options of `Sighting.save`.
    """
    is_new, rows = not folder.exists(), 0
    make_folder(folder)
    try:
        with growing(folder / NAME) as draft:
            try:
                with draft.open("w", newline="", encoding="utf-8", errors="replace") as file:
                    writer = csv.writer(file)
                    writer.writerow(COLUMNS)
                    for seen, stem in _saved(sightings, folder, **drawn):
                        writer.writerow(_row(seen, stem))
                        rows += 1
                        yield seen
            finally:
                if rows < 2:
                    draft.unlink()
                elif parquet:
                    _write_parquet(draft, folder / PARQUET)
    finally:
        if is_new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


def _saved(sightings: Iterable[Sighting], folder: Path, **drawn: Any) -> Iterator[tuple[Sighting, str]]:
    """Each with the name of its files once these are written: a/1.png and b/1.png must not overwrite each other."""
    taken: Counter[str] = Counter()
    waiting: deque[tuple[Sighting, str, Future[Any]]] = deque()
    with ThreadPoolExecutor(SAVED_AT_ONCE, "saving") as saving:
        try:
            for seen in chain(sightings, [None] * SAVED_AT_ONCE):
                if seen is not None:
                    stem = _free_name(taken, seen.stem)
                    waiting.append((seen, stem, saving.submit(seen.save, folder, stem, **drawn)))
                if waiting and (seen is None or len(waiting) > SAVED_AT_ONCE):
                    first, stem, saved = waiting.popleft()
                    saved.result()
                    yield first, stem
        finally:
            saving.shutdown(cancel_futures=True)


def _free_name(taken: Counter[str], stem: str) -> str:
    """``stem``, with a number behind it if it is taken; it is taken from now on."""
    name = stem
    while taken[name]:  # 1-2 may be taken too, by a picture of that name
        taken[stem] += 1
        name = f"{stem}-{taken[stem]}"
    taken[name] += 1
    return name


def _row(seen: Sighting, stem: str) -> tuple[object, ...]:
    """What the table says of one sighting; x and y are the pixel with the most weight, where there is a picture."""
    second = seen.alternatives[0] if seen.alternatives else ("", None)
    x, y = seen.peak if seen.has_places else ("", "")
    share = "" if second[1] is None else f"{second[1]:.6f}"
    answer = (seen.answer, f"{seen.confidence:.6f}" if seen.is_answered else "", second[0], share)
    fit = (seen.fit.verdict, "" if seen.fit.p is None else f"{seen.fit.p:.6f}")
    more = ("; ".join(seen.notes), f"{seen.full_answer.raw_confidence:.6f}" if seen.is_answered else "", *fit)
    return (seen.source.name, seen.question or "", *answer, x, y, stem, *more)


def _write_parquet(table: Path, target: Path) -> None:
    """The rows of a CSV as Parquet; numbers are numbers there, and empty cells of numbers are null."""
    import pyarrow as arrow
    import pyarrow.csv as tables
    import pyarrow.parquet as parquet

    kinds = dict.fromkeys(("x", "y"), arrow.int64())
    kinds |= dict.fromkeys(("confidence", "next_confidence", "raw_confidence", "fit_p"), arrow.float64())
    types = {name: kinds.get(name, arrow.string()) for name in COLUMNS}
    convert = tables.ConvertOptions(column_types=types, strings_can_be_null=False)
    rows = tables.read_csv(table, convert_options=convert, parse_options=tables.ParseOptions(newlines_in_values=True))
    with growing(target) as draft:
        parquet.write_table(rows, draft)


def side_by_side(
    predictors: Sequence[Predictor],
    files: Sequence[Any],
    ask: str | int | None,
    out: Path | None,
    on_bad: Callable[[Any, DataError], None] | None,
    **options: Any,
) -> Iterator[list[Sighting]]:
    """What several models say of each source; with ``out`` written as overlays and a page of every look."""
    from saccade.show.filmstrip import contact_sheet
    from saccade.show.overlay import png_bytes
    from saccade.show.report_sources import report_from_records

    taken: Counter[str] = Counter()
    for file in files:
        try:
            sightings = [predictor.look(predictor.reads.item(file), ask, **options) for predictor in predictors]
        except DataError as error:
            if on_bad is None:
                raise
            on_bad(file, error)
            continue
        if out is not None:
            asked = "" if sightings[0].question is None else f", asked {sightings[0].question}"
            captions = [f"{seen.model}{asked}: {seen.answer} {seen.confidence:.0%}" for seen in sightings]
            drawn = [seen.overlay() if seen.is_spatial else seen.filmstrip() for seen in sightings]
            picture = contact_sheet(drawn, captions, columns=len(sightings), panel=400)
            name = f"{_free_name(taken, sightings[0].stem)}-compare"
            write_bytes(out / f"{name}.png", png_bytes(picture, optimize=True))
            report_from_records([seen.record() for seen in sightings]).save(out / f"{name}.html")
        yield sightings
