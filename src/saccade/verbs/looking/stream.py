"""Asks a model about many pictures or stories and saves each answer as it comes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from saccade.atomic import make_folder
from saccade.errors import ConfigError, DataError
from saccade.families.responder import Question
from saccade.predict import Predictor
from saccade.sighting import Sighting
from saccade.verbs.looking.input_kind import check_kind
from saccade.verbs.looking.table import check_parquet, looks_table

SAVED_AT_ONCE = 2
"""Sightings that are drawn and written while the next ones are answered."""


def stream_looks(
    predictor: Predictor,
    pictures: Iterable[Any],
    ask: Question | None = None,
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
        out: a folder for the files of each sighting, written before it is handed on; of several, ``looks.csv`` there
            has a row for each (:mod:`saccade.verbs.looking.table`). None: nothing is kept.
        filmstrip: as in :meth:`Sighting.save`.
        cells: as in :meth:`Sighting.save`; a ConfigError where no filmstrip is saved.
        parquet: write the table as ``looks.parquet`` too.
        batch_size: as in :meth:`Predictor.look_many`.
        on_bad: as in :meth:`Predictor.look_many`.
        options: those of the model's family, as in :meth:`Predictor.look`.
    """
    if isinstance(pictures, Sequence):
        check_kind(predictor, pictures)  # before the question, which is of the model's kind too
    predictor.question(ask)
    predictor.responder.options(options)
    if cells and predictor.facts.preprocessing is None:
        raise ConfigError(
            f"cells: '{predictor.name}' does not read pictures, so it has no cells to paint; leave it out"
        )
    if filmstrip is False and predictor.facts.preprocessing is None:
        raise ConfigError(
            f"`filmstrip=False`: '{predictor.name}' does not read pictures, so nothing can be drawn on; leave it out"
        )
    if cells and (out is None or not _saves_strips(filmstrip, predictor)):
        raise ConfigError(
            "cells: it paints the cells of filmstrips, but no filmstrip is saved; add `filmstrip=True` and `out=DIR`"
        )
    if parquet and out is None:
        raise ConfigError("parquet: it writes a table beside the pictures that are kept; add `out=DIR`")
    if parquet:
        check_parquet()
    sightings = predictor.look_many(pictures, ask, batch_size=batch_size, on_bad=on_bad, **options)
    if out is None:
        return sightings
    is_new = not Path(out).exists()
    kept = _kept(sightings, make_folder(Path(out)), filmstrip=filmstrip, cells=cells, parquet=parquet)
    return _without_empty(kept, Path(out)) if is_new else kept


def _without_empty(sightings: Iterator[Sighting], folder: Path) -> Iterator[Sighting]:
    """The sightings; ``folder``, which was made for them, goes again if nothing was kept in it."""
    try:
        yield from sightings
    finally:
        with suppress(OSError):  # it is not empty
            folder.rmdir()


def expanded(predictor: Predictor, sources: Sequence[Any], *, may_be_several: bool) -> list[Any]:
    """``sources`` with the files of folders and globs in their place; anything else as it is.

    Raises:
        DataError: one source was to be looked at, and it stands for several.
    """
    found: list[Any] = []
    for source in sources:
        is_path = isinstance(source, (str, Path)) and "\n" not in str(source)
        if not is_path or not (_is_folder(source) or any(sign in str(source) for sign in "*?[")):
            found.append(source)
            continue
        if not may_be_several:
            raise DataError(f"{source}: stands for several; put it into a list, as in look(['{source}'])")
        found += predictor.reads.find([str(source)])
    return found


def _is_folder(source: str | Path) -> bool:
    try:
        return Path(source).is_dir()
    except (OSError, ValueError):  # a story may be longer than a name of a file can be
        return False


def _saves_strips(filmstrip: bool | None, predictor: Predictor) -> bool:
    """Whether pictures are saved as filmstrips: by default those of models that need no question."""
    return not predictor.facts.queries if filmstrip is None else filmstrip


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
