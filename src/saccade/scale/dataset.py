"""Rows of a Ray Dataset that a program has already: pictures in, rows of :mod:`saccade.scale.schema` out, lazily."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from saccade.errors import DataError
from saccade.families.responder import Question
from saccade.predict import load
from saccade.scale.entries import Entry
from saccade.scale.job import Job, KeptMaps
from saccade.scale.looking import job_of
from saccade.scale.ray_engine import ray_module, resources
from saccade.scale.reading_ahead import PictureReader
from saccade.scale.rows import RowMaker
from saccade.scale.schema import arrow_schema, pyarrow
from saccade.scale.worker import loaded

COLUMNS = ("bytes", "image", "picture", "jpg", "jpeg", "png", "webp")
SOURCES = ("path", "source", "file_name", "__key__", "id")
"""Columns that say where a picture is from, the first that is there."""


def look_dataset(
    dataset: Any,
    *,
    model: str = "soft-mref",
    ask: Question | None = None,
    column: str | None = None,
    actors: int | None = None,
    batch_size: int = 32,
    maps: KeptMaps = "total",
    side: int = 64,
    device: str = "auto",
    **options: Any,
) -> Any:
    """A Ray Dataset with a row for each picture of ``dataset``, made when it is read or written.

    Nothing is written here, so nothing is resumed here either: Ray's own checkpoint does that, for a Dataset that is
    read from files and written to files (``DataContext.checkpoint_config`` with a column that names each row).

    Args:
        dataset: a ``ray.data.Dataset`` with a column of encoded pictures, bytes or ``{bytes, path}``, such as
            ``ray.data.read_binary_files(…, include_paths=True)`` gives. Paths are not followed.
        model: see :func:`saccade.scale.look`, as are the others.
        ask: one question for all.
        column: the one with the pictures; None: the first of :data:`COLUMNS`.
        actors: how many; None: one for each GPU, or else for each CPU.
        batch_size: pictures that go through the model together.
        maps: which maps are kept.
        side: cells of the longer side of a kept map.
        device: auto, cpu or cuda.
        options: those of the model's family.
    """
    ray = ray_module()
    job = job_of(load(model, "cpu"), model, ask, maps, side, options)
    share, many, on = resources(ray, device, actors)
    return dataset.map_batches(
        RowLooker,
        fn_constructor_kwargs={"job": job, "column": column, "batch": batch_size, "device": on},
        batch_size=batch_size,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=many),
        **share,
    )


class RowLooker:
    """The actor: tables of pictures in, tables of rows out."""

    def __init__(self, job: Job, column: str | None, batch: int, device: str) -> None:
        self._column = column
        self._rows = RowMaker(loaded(job, device), job, PictureReader(1), batch)

    def __call__(self, table: object) -> Any:
        """A row for each picture; ``part`` is 0 and ``row`` its place in the batch."""
        arrow, _ = pyarrow()
        return arrow.Table.from_pylist(list(self._rows.rows_of(self._entries(table), 0)), schema=arrow_schema())

    def _entries(self, table: Any) -> Iterator[Entry]:
        names = table.column_names
        pictures = self._column or next((name for name in COLUMNS if name in names), None)
        if pictures not in names:
            raise DataError(f"no column of pictures '{pictures or 'bytes'}'; found {', '.join(names)[:200]}")
        told = next((name for name in SOURCES if name in names and name != pictures), None)
        sources = [None] * len(table) if told is None else table.column(told).to_pylist()
        for number, (value, source) in enumerate(zip(table.column(pictures).to_pylist(), sources)):
            data = value.get("bytes") if isinstance(value, dict) else value
            path = source or (value.get("path") if isinstance(value, dict) else None) or f"row {number}"
            yield Entry(str(path), str(path), _bytes(data, str(path)))


def _bytes(data: object, source: str) -> Any:
    def load_bytes() -> bytes:
        if not isinstance(data, bytes):
            found = type(data).__name__
            raise DataError(
                f"{source}: expected the bytes of a picture, found {found}; ray.data.read_binary_files has them"
            )
        return data

    return load_bytes
