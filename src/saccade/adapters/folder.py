"""Looks at every picture of folders, here or on a Ray cluster, and writes a row for each to Parquet.

The pictures are cut into parts of so many files. Each part goes through the model in its own batches and into its own
Parquet files, so its rows are the same wherever they are made. ``job.json`` says what was asked, and how many rows
there must be.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import torch
from PIL import Image

from saccade import geometry
from saccade.adapters.rows import TOTAL, decode_map, job_of, parquet_modules, table_of
from saccade.data.pictures.reading import find_pictures, read_picture
from saccade.errors import ConfigError, DataError, OutputError
from saccade.families.answering import Question
from saccade.files import make_folder, parse_json, read_regular, write_bytes, write_json
from saccade.models.likeness import InputFit
from saccade.predict import load
from saccade.progress import OnProgress, no_progress
from saccade.record import Record
from saccade.trace import AttentionTrace, Look

JOB = "job.json"
_ROWS_AT_ONCE = 64  # rows that are read together
_ERRORS_TOLD = 5


@dataclass(frozen=True)
class FolderLooks:
    """What became of the pictures of folders."""

    out: str
    rows: int
    errors: int
    parts: int
    resumed: int  # parts that were there already
    seconds: float
    unlike: int  # rows whose picture is unlike those that the model learned from
    remarks: tuple[str, ...] = ()  # what to know about all answers, a sentence each
    first_errors: tuple[str, ...] = field(default=(), compare=False)


def look_folder(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    model: str = "soft-mref",
    out: str | os.PathLike[str],
    ask: Question | None = None,
    engine: Literal["local", "ray"] = "local",
    address: str | None = None,
    actors: int | None = None,
    batch_size: int = 32,
    part: int = 1024,
    maps: Literal["total", "all", "none"] = "total",
    side: int = 64,
    resume: bool = False,
    device: str = "auto",
    on_progress: OnProgress = no_progress,
    **options: object,
) -> FolderLooks:
    """Ask a model about every picture of folders; a row for each goes to Parquet files in ``out``.

    Both engines make the same rows, equal to the last bit on the same kind of device with the same number of threads.
    With Ray all machines see sources, model and ``out`` under the same paths. ``on_progress`` is called with parts done
    and parts in all; the other arguments are those of :func:`saccade.look`.

    Returns:
        Counts of rows, errors and parts.
    """
    if engine == "local" and (address is not None or actors is not None):
        raise ConfigError("`address` and `actors` are for `engine=ray`; leave them out")
    parquet_modules()
    started = time.monotonic()
    predictor = load(model, device if engine == "local" else "cpu")
    job = job_of(predictor, model, ask, options, batch_size=batch_size, maps=maps, side=side, part=part)
    pictures = _named(find_pictures([sources] if isinstance(sources, (str, os.PathLike)) else sources))
    parts = {first // part: pictures[first : first + part] for first in range(0, len(pictures), part)}
    stats = [(source, os.stat(source)) for source, _ in pictures]  # sizes and times change when a file does
    listed = json.dumps([[source, stat.st_size, stat.st_mtime_ns] for source, stat in stats])
    digest = hashlib.sha256(listed.encode()).hexdigest()[:32]
    note = {**asdict(job), "pictures": len(pictures), "files": digest}
    folder = Path(os.path.abspath(out))
    if engine == "ray":
        from saccade.adapters.ray import actor_pool, write_parts

        with actor_pool(address, device, actors) as pool:
            todo = _begin(folder, note, parts, resume=resume)
            resumed = len(parts) - len(todo)
            write_parts(pool, job, todo, folder, on_progress)
    else:
        todo = _begin(folder, note, parts, resume=resume)
        resumed = len(parts) - len(todo)
        for done, (number, members) in enumerate(todo.items()):
            on_progress("parts", resumed + done, len(parts))
            table = table_of(predictor, job, [(source, name, source) for source, name in members], number)
            buffer = io.BytesIO()
            parquet_modules()[1].write_table(table, buffer, compression="zstd")
            write_bytes(folder / f"part-{number:06d}.parquet", buffer.getvalue())
    on_progress("parts", len(parts), len(parts))
    rows = list(read_rows(folder, ["error", "fit"]))
    errors = [str(row["error"]) for row in rows if row["error"]]
    unlike = sum(bool(InputFit(row["fit"]).unlike) for row in rows)
    remarks = tuple(filter(None, [predictor.of_unlike(unlike, len(rows) - len(errors)), *predictor.caveats]))
    counts = (len(rows), len(errors), len(parts), resumed, round(time.monotonic() - started, 2), unlike)
    return FolderLooks(os.fspath(out), *counts, remarks, tuple(errors[:_ERRORS_TOLD]))


def _named(files: Sequence[Path]) -> list[tuple[str, str]]:
    """Path and name of each file: the name is the path from the folder that all are in, without its suffix."""
    paths = [os.path.abspath(file) for file in files]
    root = os.path.commonpath([os.path.dirname(path) for path in paths])
    return [(path, os.path.splitext(os.path.relpath(path, root))[0]) for path in paths]


_Parts = dict[int, list[tuple[str, str]]]


def _begin(folder: Path, note: dict[str, Any], parts: _Parts, *, resume: bool) -> _Parts:
    """The parts that are still to be done; files of parts that are not whole go."""
    make_folder(folder)
    note = json.loads(json.dumps(note))
    if not any(folder.iterdir()):
        write_json(folder / JOB, note)
        return parts
    if not resume:
        raise OutputError(f"{folder} exists and is not empty; choose another `out`, or add `resume=True` to continue")
    before = _note(folder)
    if changed := [name for name, value in note.items() if before.get(name) != value]:
        raise OutputError(
            f"{folder} cannot be resumed: other {', '.join(changed)} than when it was begun; choose another `out`"
        )
    stored, rows = _stored(folder), Counter[int]()
    for number, _, count, _ in stored:
        rows[number] += count
    todo = {number: members for number, members in parts.items() if rows[number] != len(members)}
    for number, *_, file in stored:
        if number in todo or number not in parts:
            file.unlink()
    return todo


def _note(folder: Path) -> dict[str, Any]:
    try:
        return dict(parse_json(read_regular(folder / JOB).decode("utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise OutputError(f"{folder}: no {JOB} of `look_folder` in it ({error}); choose another folder") from error


def _stored(folder: Path) -> list[tuple[int, int, int, Path]]:
    """Part, first row, number of rows and path of each file, in order; one that cannot be read has part -1."""
    _, parquet = parquet_modules()
    stored = []
    for file in folder.glob("*.parquet"):
        try:
            places = parquet.ParquetFile(file).read(["part", "row"])
            stored.append((places["part"][0].as_py(), places["row"][0].as_py(), len(places), file))
        except (OSError, ValueError, IndexError, KeyError):  # a writer was stopped
            stored.append((-1, 0, 0, file))
    return sorted(stored)


def row_files(out: str | os.PathLike[str]) -> list[Path]:
    """The files of a finished folder, in the order of their rows; a DataError where rows are missing."""
    wanted, stored = _note(Path(out)).get("pictures"), _stored(Path(out))
    if (rows := sum(count for _, _, count, _ in stored)) != wanted:
        raise DataError(f"{out}: {rows} rows are there, and {wanted} must be; continue with 'saccade look … --resume'")
    return [file for *_, file in stored]


def rows_in(file: Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of one file."""
    _, parquet = parquet_modules()
    try:
        for batch in parquet.ParquetFile(file).iter_batches(_ROWS_AT_ONCE, columns=columns):
            yield from batch.to_pylist()
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: damaged ({' '.join(str(error).split())[:120]}); look again") from error


def read_rows(out: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a finished folder, in order, as plain values; :mod:`saccade.adapters.rows` names the columns."""
    for file in row_files(out):
        yield from rows_in(file, columns)


def row_records(out: str | os.PathLike[str], count: int) -> tuple[list[Record], int, int]:
    """Records of the first ``count`` rows that have an answer, how many rows there are, and how many have an error."""
    records = [_record(row) for row in islice((row for row in read_rows(out) if not row["error"]), count)]
    if not records:
        raise DataError(f"{out}: no row has an answer; see the column 'error'")
    errors = [bool(row["error"]) for row in read_rows(out, ["error"])]
    return records, len(errors), sum(errors)


def _record(row: Mapping[str, Any]) -> Record:
    height, width = row["height"], row["width"]
    looks = [_look(stored, (height, width), len(row["maps"])) for stored in row["maps"]]
    trace = AttentionTrace(tuple(looks), canvas=geometry.identity(1), image_size=torch.tensor([[height, width]]))
    info = {name: row[name] for name in ("model", "question", "answer", "confidence", "notes")}
    info |= {"picture": row["source"], "size": [height, width]}
    info["alternatives"] = [[other["answer"], other["confidence"]] for other in row["alternatives"]]
    if row["peak_x"] is not None:
        info["peak"] = [int(row["peak_x"]), int(row["peak_y"])]
    try:
        picture = read_picture(row["source"]).image
    except DataError:  # it is gone
        picture = Image.new("RGB", (width, height), (128, 128, 128))
    return Record(trace, info, picture)


def _look(stored: Mapping[str, Any], picture: geometry.Size, many: int) -> Look:
    """A stored map as a look on the picture: its cells cover all of it."""
    frame = geometry.scale_shift((picture[1] / stored["width"], picture[0] / stored["height"]), (0.0, 0.0))
    step = f" {stored['step'] + 1}" if many > 2 else ""
    name = "all looks" if stored["look"] == TOTAL else f"{stored['look']}{step}"
    return Look(name, "soft", "derived", torch.from_numpy(decode_map(stored))[None], frame=frame)
