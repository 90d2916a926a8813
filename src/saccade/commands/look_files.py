"""Many inputs through one model, and what ``look`` keeps of them: files of each answer as it comes, and one table.

``looks.csv``, and where asked for ``looks.parquet``, has a row for each input. Of several models a picture and a page
show what they say side by side.
"""

from __future__ import annotations

import csv
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from glob import has_magic
from itertools import chain
from pathlib import Path
from typing import Any

from saccade.adapters.rows import parquet_modules
from saccade.data.files import plural
from saccade.errors import ConfigError, DataError
from saccade.families import families
from saccade.files import growing, make_folder, write_bytes
from saccade.predict import Predictor
from saccade.sighting import Sighting
from saccade.zoo import shipped

SAVED_AT_ONCE = 2
"""Sightings that are drawn and written while the next ones are answered."""
NAME, PARQUET = "looks.csv", "looks.parquet"
COLUMNS = (
    *("source", "asked", "answer", "confidence", "next_best", "next_confidence", "x", "y", "files", "notes"),
    *("raw_confidence", "fit", "fit_p"),
)


def stream_looks(
    predictor: Predictor,
    sources: Sequence[Any],
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
    """A sighting of each source, in order; what was asked for wrongly is said before one is read.

    With ``out`` the files of each sighting are written before it is handed on. Arguments as in :func:`saccade.look`.
    """
    _check_kind(predictor, sources)  # before the question, which is of the model's kind too
    predictor.question(ask)
    predictor.responder.options(options)
    is_strip = not predictor.facts.queries if filmstrip is None else filmstrip
    if cells and (out is None or not is_strip):
        raise ConfigError("cells: it paints the cells of filmstrips that are saved; give `filmstrip` and `out` too")
    if parquet:
        parquet_modules()
    sightings = predictor.look_many(sources, ask, batch_size=batch_size, on_bad=on_bad, **options)
    return sightings if out is None else _kept(sightings, out, parquet, filmstrip=filmstrip, cells=cells)


def expanded(predictor: Predictor, sources: Sequence[Any]) -> list[Any]:
    """``sources`` with the files of folders and globs in their place; anything else as it is."""
    files: list[Any] = []
    for source in sources:
        is_path = isinstance(source, (str, Path)) and "\n" not in str(source)  # a story has lines
        stands_for_several = is_path and (os.path.isdir(source) or has_magic(str(source)))
        files += predictor.reads.find([str(source)]) if stands_for_several else [source]
    return files


def _check_kind(predictor: Predictor, files: Sequence[object]) -> None:
    """Refuse files that are all of one kind which other models read, by their endings; a mixed list goes on."""
    endings = {Path(file).suffix.lower() if isinstance(file, (str, Path)) else "" for file in files}
    if not endings or not endings.isdisjoint(predictor.reads.suffixes):
        return
    for family in families().values():
        thing = family.reads().thing
        if endings <= family.reads().suffixes:
            models = " or ".join(name for name in family.featured if name in shipped()) or f"{thing} models"
            raise DataError(
                f"{files[0]}: a {thing}, but the model '{predictor.name}' reads {plural(predictor.reads.thing)}; "
                f"{plural(thing)} are for {models}"
            )


def _kept(sightings: Iterable[Sighting], folder: Path, parquet: bool, **drawn: Any) -> Iterator[Sighting]:
    """The sightings, each saved and in the table; a folder that is made for them goes again if it stays empty.

    The table takes its place, and that of an earlier one, when this ends, whether well or not: what was answered before
    somebody stopped it is in it. With fewer than two rows there is no table.
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
                    stem = seen.stem
                    while taken[stem]:  # 1-2 may be taken too, by a picture of that name
                        taken[seen.stem] += 1
                        stem = f"{seen.stem}-{taken[seen.stem]}"
                    taken[stem] += 1
                    waiting.append((seen, stem, saving.submit(seen.save, folder, stem, **drawn)))
                if waiting and (seen is None or len(waiting) > SAVED_AT_ONCE):
                    first, stem, saved = waiting.popleft()
                    saved.result()
                    yield first, stem
        finally:
            saving.shutdown(cancel_futures=True)


def _row(seen: Sighting, stem: str) -> tuple[object, ...]:
    """What the table says of one sighting; x and y are the pixel with the most weight, where there is a picture."""
    second = seen.alternatives[0] if seen.alternatives else ("", None)
    x, y = seen.peak if seen.has_places else ("", "")
    share = "" if second[1] is None else f"{second[1]:.6f}"
    answer = (seen.answer, f"{seen.confidence:.6f}" if seen.is_answered else "", second[0], share)
    fit = (seen.fit.verdict, "" if seen.fit.p is None else f"{seen.fit.p:.6f}")
    more = ("; ".join(seen.notes), f"{seen.said.raw_confidence:.6f}" if seen.is_answered else "", *fit)
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
    predictors: Sequence[Predictor], files: Sequence[Any], ask: str | int | None, out: Path | None, **options: Any
) -> Iterator[list[Sighting]]:
    """What several models say of each source.

    With ``out`` they are written: ``STEM-compare.png``, the overlays with names and answers, and a page of every look.
    """
    from saccade.show.filmstrip import contact_sheet
    from saccade.show.overlay import png_bytes
    from saccade.show.report_sources import report_from_records

    for file in files:
        sightings = [predictor.look(predictor.reads.item(file), ask, **options) for predictor in predictors]
        if out is not None:
            asked = "" if sightings[0].question is None else f", asked {sightings[0].question}"
            captions = [f"{seen.model}{asked}: {seen.answer} {seen.confidence:.0%}" for seen in sightings]
            drawn = [seen.overlay() if seen.is_spatial else seen.filmstrip() for seen in sightings]
            picture = contact_sheet(drawn, captions, columns=len(sightings), panel=400)
            name = out / f"{sightings[0].stem}-compare"
            write_bytes(name.with_suffix(".png"), png_bytes(picture, optimize=True))
            report_from_records([seen.record() for seen in sightings]).save(name.with_suffix(".html"))
        yield sightings
