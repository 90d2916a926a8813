"""Asks a model about many pictures or stories, and saves each answer as it comes, with one table of all.

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
from typing import Any

from saccade.atomic import growing, make_folder
from saccade.data.files import plural
from saccade.errors import CheckpointError, ConfigError, DataError, MissingExtraError
from saccade.predict import Predictor
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
_NAMED = 3
"""Models that a message names."""


def stream_looks(
    predictor: Predictor,
    pictures: Iterable[Any],
    ask: int | str | None = None,
    *,
    out: Path | None = None,
    filmstrip: bool | None = None,
    cells: bool = False,
    parquet: bool = False,
    batch_size: int = 32,
    on_bad: Callable[[Any, DataError], None] | None = None,
    **options: Any,
) -> Iterator[Sighting]:
    """A sighting of each picture, in order; what was asked for wrongly is said before a picture is read.

    Args:
        predictor: the model.
        pictures: what :meth:`Predictor.look_many` takes.
        ask: one question for all of them; None for a model that needs none.
        out: a folder for the files of each sighting, written before it is handed on. None: nothing is kept.
        filmstrip: as in :meth:`Sighting.save`.
        cells: as in :meth:`Sighting.save`; a ConfigError where no filmstrip is saved.
        parquet: write the table as ``looks.parquet`` too.
        batch_size: as in :meth:`Predictor.look_many`.
        on_bad: as in :meth:`Predictor.look_many`.
        options: those of the model's family, as in :meth:`Predictor.look`.
    """
    if isinstance(pictures, Sequence):
        _check_kind(predictor, pictures)  # before the question, which is of the model's kind too
    predictor.question(ask)
    predictor.responder.options(options)
    if (cells or filmstrip is False) and predictor.facts.preprocessing is None:
        option = "cells" if cells else "overlay"
        raise ConfigError(f"{option}: '{predictor.name}' does not read pictures, so nothing can be drawn on them")
    strips = not predictor.facts.queries if filmstrip is None else filmstrip
    if cells and (out is None or not strips):
        raise ConfigError("cells: it paints the cells of filmstrips that are saved; give filmstrip and out too")
    if parquet:
        _arrow()
    sightings = predictor.look_many(pictures, ask, batch_size=batch_size, on_bad=on_bad, **options)
    if out is None:
        return sightings
    is_new = not out.exists()
    kept = _kept(sightings, make_folder(out), filmstrip=filmstrip, cells=cells, parquet=parquet)
    return _without_empty(kept, out) if is_new else kept


def expanded(predictor: Predictor, sources: Sequence[Any]) -> list[Any]:
    """``sources`` with the files of folders and globs in their place; anything else as it is."""
    found: list[Any] = []
    for source in sources:
        found += predictor.reads.find([str(source)]) if stands_for_several(source) else [source]
    return found


def stands_for_several(source: object) -> bool:
    """Whether it is a folder or a glob."""
    if not isinstance(source, (str, Path)) or "\n" in str(source):  # a story
        return False
    try:
        return Path(source).is_dir() or any(sign in str(source) for sign in "*?[")
    except (OSError, ValueError):  # a story may be longer than a name of a file can be
        return False


def _check_kind(predictor: Predictor, files: Sequence[object]) -> None:
    """Refuse files that are all of one kind which other models read, by their endings; a mixed list goes on."""
    endings = {Path(file).suffix.lower() if isinstance(file, (str, Path)) else "" for file in files}
    if not endings or not endings.isdisjoint(predictor.reads.suffixes):
        return
    from saccade.families import families
    from saccade.families.contract import load_target
    from saccade.models.io.facts import read_facts
    from saccade.zoo import shipped

    readers = {name: load_target(each.reads) for name, each in families().items()}
    able = {name: reads for name, reads in readers.items() if endings <= reads.suffixes}
    if not able:
        return
    named = [name for family in able for name in families()[family].featured if name in shipped()]
    for name, folder in shipped().items():
        with suppress(CheckpointError):  # a damaged one is no advice
            named += [name] if read_facts(folder).family in able else []
    kind = next(iter(able.values())).thing
    models = " or ".join(list(dict.fromkeys(named))[:_NAMED]) or f"a model of {plural(kind)}"
    raise DataError(
        f"{files[0]}: a {kind}, but the model '{predictor.name}' reads {plural(predictor.reads.thing)}; "
        f"{plural(kind)} are for the model {models}"
    )


def _without_empty(sightings: Iterator[Sighting], folder: Path) -> Iterator[Sighting]:
    """The sightings; ``folder``, which was made for them, goes again if nothing was kept in it."""
    try:
        yield from sightings
    finally:
        with suppress(OSError):  # it is not empty
            folder.rmdir()


def _kept(
    sightings: Iterable[Sighting], folder: Path, *, filmstrip: bool | None, cells: bool, parquet: bool
) -> Iterator[Sighting]:
    """The sightings, each saved under a name of its own: a/1.png and b/1.png must not overwrite each other."""
    taken: Counter[str] = Counter()
    waiting: deque[tuple[Sighting, str, Future[Any]]] = deque()
    with looks_table(folder, parquet=parquet) as add_row, ThreadPoolExecutor(SAVED_AT_ONCE, "saving") as saving:

        def saved_first() -> Sighting:
            """The first that waits, once its files are written, or the error that kept them from it."""
            seen, stem, saved = waiting.popleft()
            saved.result()
            add_row(seen, stem)
            return seen

        try:
            for seen in sightings:
                stem = seen.stem
                while taken[stem]:  # 1-2 may be taken too, by a picture of that name
                    taken[seen.stem] += 1
                    stem = f"{seen.stem}-{taken[seen.stem]}"
                taken[stem] += 1
                waiting.append((seen, stem, saving.submit(seen.save, folder, stem, filmstrip=filmstrip, cells=cells)))
                while len(waiting) > SAVED_AT_ONCE:
                    yield saved_first()
            while waiting:
                yield saved_first()
        finally:
            saving.shutdown(cancel_futures=True)


def row_of(seen: Sighting, stem: str) -> tuple[object, ...]:
    """What the table says of one sighting; x and y are the pixel with the most weight, where there is a picture."""
    second = seen.alternatives[0] if seen.alternatives else ("", None)
    x, y = seen.peak if seen.has_places else ("", "")
    share = "" if second[1] is None else f"{second[1]:.6f}"
    said = (seen.answer, f"{seen.confidence:.6f}" if seen.is_answered else "", second[0], share)
    fit = (seen.fit.verdict, "" if seen.fit.p is None else f"{seen.fit.p:.6f}")
    told = ("; ".join(seen.notes), f"{seen.said.raw_confidence:.6f}" if seen.is_answered else "", *fit)
    return (seen.source.name, seen.question or "", *said, x, y, stem, *told)


@contextmanager
def looks_table(folder: Path, *, parquet: bool = False) -> Iterator[Callable[[Sighting, str], None]]:
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
            writer.writerow(row_of(seen, stem))

        try:
            yield add
        finally:
            file.close()
            if rows < 2:
                draft.unlink()
            elif parquet:
                _write_parquet(draft, folder / PARQUET)


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
