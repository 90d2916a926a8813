"""The folder of a job: ``job.json`` says what was asked, each part is a Parquet file, ``looks.json`` ends it.

A part file is written whole or not at all, under a name that follows from what is asked and of which files. A part that
is done twice overwrites itself with the same rows, so that nothing is lost and nothing is there twice. ``looks.json``
comes last; without it the folder is unfinished, and readers refuse it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from saccade.errors import DataError, OutputError
from saccade.likeness import Fit
from saccade.lock import locked
from saccade.scale.job import Job, Part
from saccade.scale.schema import FORMAT, SCHEMA_VERSION, arrow_schema, parse_metadata, pyarrow
from saccade.scale.stores import Folder

JOB, DONE, _LOCK = "job.json", "looks.json", ".lock"
_TRYING = "trying-"
"""What the note of a part that was begun is called, before the name of its file."""
_GROUP = 256  # rows in a row group; these are in memory
_ERRORS_TOLD = 5


@dataclass(frozen=True)
class Receipt:
    """What became of a part."""

    part: int
    rows: int = 0
    errors: int = 0
    first_errors: tuple[str, ...] = ()
    failed: str = ""
    """Why there is no file; then the job ends."""
    unlike: int = 0
    """Rows whose picture is unlike those that the model learned from."""

    def to_json(self) -> str:
        """As text, from a worker elsewhere."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """From :meth:`to_json`."""
        told = json.loads(text)
        return cls(**{**told, "first_errors": tuple(told["first_errors"])})


@dataclass(frozen=True)
class LookJobResult:
    """What became of a job."""

    out: str
    rows: int
    errors: int
    parts: int
    resumed: int = 0
    """Parts that were there already."""
    seconds: float = 0.0
    unlike: int = 0
    """Rows whose picture is unlike those that the model learned from."""
    remarks: tuple[str, ...] = ()
    """What to know about all answers, a sentence each."""
    first_errors: tuple[str, ...] = field(default=(), compare=False)

    def to_json(self) -> dict[str, object]:
        """As plain values."""
        return asdict(self)


def write_part(folder: Folder, part: Part, job: Job, rows: Iterable[dict[str, object]]) -> Receipt:
    """Write the file of a part."""
    arrow, parquet = pyarrow()
    count, unlike, errors = 0, 0, []
    buffer, groups = io.BytesIO(), []
    schema = arrow_schema()
    for group in _groups(rows):
        groups.append(arrow.Table.from_pylist(group, schema=schema))
        count += len(group)
        unlike += sum(bool(Fit(row.get("fit")).unlike) for row in group)
        errors += [str(row["error"]) for row in group if row.get("error")]
    # The counts are known in the end, and the metadata must be known at the start: rows wait, as compact columns.
    final = arrow_schema({"rows": count, "errors": len(errors), "unlike": unlike})
    with parquet.ParquetWriter(buffer, final, compression="zstd") as writer:
        for table in groups:
            writer.write_table(table.cast(final))
    folder.write(part.file(job), buffer.getvalue())
    return Receipt(part.number, count, len(errors), tuple(errors[:_ERRORS_TOLD]), unlike=unlike)


def _groups(rows: Iterable[dict[str, object]]) -> Iterator[list[dict[str, Any]]]:
    held: list[dict[str, object]] = []
    for row in rows:
        held.append(row)
        if len(held) == _GROUP:
            yield held
            held = []
    if held:
        yield held


def begin_try(folder: Folder, name: str) -> int:
    """Note that the part whose file is ``name`` is begun; how often it was, this time included."""
    note = f"{_TRYING}{name}"
    before = folder.read(note) if folder.has(note) else b"0"
    tries = int(before) + 1 if before.isdigit() else 1
    folder.write(note, str(tries).encode())
    return tries


def end_tries(folder: Folder, name: str) -> None:
    """The part is done."""
    folder.remove(f"{_TRYING}{name}")


def part_counts(folder: Folder, name: str) -> tuple[int, int, int]:
    """Reads the footer of a part file: rows, errors, and rows of pictures unlike the training pictures."""
    arrow, parquet = pyarrow()
    where = f"{folder.where}/{name}"
    try:
        with folder.open(name) as file:
            told = parse_metadata(parquet.read_metadata(file).metadata, where)
        return int(told["rows"]), int(told["errors"]), int(told.get("unlike", 0))
    except (arrow.ArrowException, OSError, ValueError, KeyError) as error:
        raise DataError(
            f"{where}: damaged ({' '.join(str(error).split())[:120]}); delete it and continue with `resume=True`"
        ) from error


@contextmanager
def held(folder: Folder) -> Iterator[None]:
    """Keep other commands out of the folder; a remote store cannot be locked.

    A folder that was made here and in which nothing was kept goes again when the job fails.
    """
    if folder.is_remote:
        folder.make()
        yield
        return
    is_new = not folder.path.exists()
    folder.make()
    try:
        with locked(folder.path / _LOCK, f"looks into {folder.where}"):
            yield
    except BaseException:
        if is_new:
            with suppress(OSError):  # it is not empty: parts were done
                folder.path.rmdir()
        raise


def begin(folder: Folder, job: Job, parts: Sequence[Part], *, resume: bool) -> list[Part]:
    """The parts that are still to be done.

    Raises:
        OutputError: the folder holds something and ``resume`` is off; or what it holds is of another job.
    """
    for name in folder.names():
        if name.startswith(_TRYING):  # a new start, a new count
            folder.remove(name)
    names = [name for name in folder.names() if name != _LOCK]
    told = {"format": FORMAT, **job.to_json(), "parts": len(parts)}
    if not names:
        folder.write(JOB, f"{json.dumps(told, indent=2)}\n".encode())
        return list(parts)
    if not resume:
        is_job = JOB in names
        cure = "add `resume=True` to continue it, or choose another `out`" if is_job else "choose another `out`"
        raise OutputError(f"{folder.where} exists and is not empty; {cure}")
    if JOB not in names:
        raise OutputError(f"{folder.where}: nothing to resume in it (no {JOB}); choose an empty folder")
    _check_same(folder, told)
    wanted = {part.file(job) for part in parts}
    strange = [name for name in names if name.startswith("part-") and name not in wanted]
    if strange:
        raise OutputError(
            f"{folder.where}: the pictures have changed since it was begun ({len(strange)} parts are of other files, "
            f"the first: {strange[0]}); look at them again into another `out`"
        )
    return [part for part in parts if part.file(job) not in names]


def discard_if_unstarted(folder: Folder) -> None:
    """Remove the note of a job of which no part was done, so that the same command can be given again."""
    if not any(name.startswith("part-") for name in folder.names()):
        folder.remove(JOB)


def _check_same(folder: Folder, told: dict[str, object]) -> None:
    try:
        before = json.loads(folder.read(JOB))
        if before["format"] != FORMAT:
            raise ValueError("another format")
    except (DataError, ValueError, KeyError, TypeError) as error:
        raise OutputError(f"{folder.where}/{JOB}: damaged, or not of saccade; choose another `out`") from error
    for key, value in told.items():
        if before.get(key) != value:
            raise OutputError(
                f"{folder.where}: cannot be resumed: {key} was {before.get(key)!r} and is {value!r} now; ask the same, "
                "or choose another `out`"
            )


def finish(
    folder: Folder, job: Job, parts: Sequence[Part], receipts: Sequence[Receipt], seconds: float
) -> LookJobResult:
    """Check that every part is there, and say so in ``looks.json``."""
    there = set(folder.names())
    missing = [part for part in parts if part.file(job) not in there]
    if missing:
        raise OutputError(
            f"{folder.where}: {len(missing)} parts were done and are not here, the first: {missing[0].file(job)}; it "
            "must be a folder that all machines share, or the address of a store such as s3://"
        )
    done = {receipt.part: receipt for receipt in receipts}
    counts = [
        (done[part.number].rows, done[part.number].errors, done[part.number].unlike)
        if part.number in done
        else part_counts(folder, part.file(job))
        for part in parts
    ]
    rows, errors, unlike = (sum(column) for column in zip(*counts))
    told = tuple(text for receipt in receipts for text in receipt.first_errors)[:_ERRORS_TOLD]
    looked = LookJobResult(
        folder.where, rows, errors, len(parts), len(parts) - len(done), round(seconds, 2), unlike, first_errors=told
    )
    values = {"format": FORMAT, "schema_version": SCHEMA_VERSION, "rows": rows, "errors": errors, "parts": len(parts)}
    folder.write(DONE, f"{json.dumps(values, indent=2)}\n".encode())
    return looked
