"""Reads back what a job wrote: its rows, its maps for ``score``, and records of some rows for ``report``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from saccade import geometry
from saccade.data.maps.members import SEPARATOR, by_short_name
from saccade.data.pictures.reading import read_picture
from saccade.errors import DataError, SaccadeError
from saccade.record import Record
from saccade.scale.entries import entries_of
from saccade.scale.job import Member, Part
from saccade.scale.output import DONE, JOB
from saccade.scale.schema import FORMAT, TOTAL, decode_map, parse_metadata, pyarrow
from saccade.scale.sources import kind_of
from saccade.scale.stores import Folder
from saccade.scoring.maps import Chunk
from saccade.trace import AttentionTrace, Look

_ROWS = 64  # read at once


def is_look_folder(where: str | Path) -> bool:
    """Whether ``where`` is the folder of a job, finished or not."""
    folder = Path(where)
    return folder.is_dir() and (folder / JOB).is_file()


def read(out: str | Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The rows of a finished job, in order, as plain values; :mod:`saccade.scale.schema` names the columns.

    Args:
        out: the folder of the job.
        columns: those that are wanted; None: all.
    """
    return LookFolder(out).rows(columns)


class LookFolder:
    """The folder of a finished job; a DataError where it is not, or lacks parts."""

    def __init__(self, out: str | Path) -> None:
        self._folder = Folder(str(out))
        names = self._folder.names()
        self.files = sorted(name for name in names if name.startswith("part-") and name.endswith(".parquet"))
        if DONE not in names:
            raise DataError(
                f"{out}: unfinished ({len(self.files)} parts so far); continue with 'saccade look … --resume'"
            )
        try:
            self.done = json.loads(self._folder.read(DONE))
            parts = int(self.done["parts"]) if self.done["format"] == FORMAT else -1
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{out}/{DONE}: damaged; look again") from error
        if parts != len(self.files):
            raise DataError(f"{out}: {parts} parts were written and {len(self.files)} are there; look again")
        self.where = str(out)

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """All rows, in order."""
        for file in self.files:
            yield from self.part(file, columns)

    def part(self, file: str, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows of one part."""
        arrow, parquet = pyarrow()
        where = f"{self.where}/{file}"
        try:
            with self._folder.open(file) as opened:
                table = parquet.ParquetFile(opened)
                parse_metadata(table.schema_arrow.metadata, where)
                for batch in table.iter_batches(batch_size=_ROWS, columns=None if columns is None else list(columns)):
                    yield from batch.to_pylist()
        except (arrow.ArrowException, OSError, ValueError) as error:
            raise DataError(f"{where}: damaged ({' '.join(str(error).split())[:120]}); look again") from error


class LookMaps:
    """The total maps of a job as :class:`saccade.scoring.maps.Maps`; a row with an error is a map that cannot be read.

    Rows are called by the column ``name``, with the question behind it: ``cats/1__colour``.
    """

    is_stacked, is_fixed, ignored = False, False, 0

    def __init__(self, out: str | Path, files: Sequence[str] | None = None) -> None:
        self._looked = LookFolder(out)
        self.where = self._looked.where
        self.files = list(self._looked.files if files is None else files)
        self._short = False
        self._paths: list[str] | None = None

    def paths(self) -> list[str] | None:
        """Names with their folders."""
        if self._paths is None:
            rows = (row for file in self.files for row in self._looked.part(file, ["name", "question"]))
            self._paths = [_called(row) for row in rows]
        return self._paths

    def name(self, short: bool) -> None:
        """Call maps by the last part of their names, or by all of it."""
        self._short = short

    def each(self, at_once: int, first: Iterable[str] = ()) -> Iterator[Chunk]:
        """Maps in the order in which they lie in the files: one way through, whatever ``first`` asks."""
        for file in self.files:
            for row in self._looked.part(file, ["name", "question", "maps", "error"]):
                (name,) = by_short_name([_called(row)], self._short)
                try:
                    yield Chunk([name], total_of(row)[None])
                except SaccadeError as error:
                    yield Chunk([name], error)

    def read(self, name: str) -> Tensor | None:
        """One map again; the files are read until it comes."""
        for chunk in self.each(1):
            if chunk.names == [name]:
                return None if isinstance(chunk.maps, SaccadeError) else chunk.maps[0]
        return None


def total_of(row: Mapping[str, Any]) -> Tensor:
    """The total map (h,w) of a row; a DataError that says why there is none."""
    if row.get("error"):
        raise DataError(str(row["error"]))
    for told in row["maps"] or ():
        if told["look"] == TOTAL:
            return torch.from_numpy(decode_map(told))
    raise DataError(f"{row['name']}: no map was kept; look again with `maps=total`")


def _called(row: Mapping[str, Any]) -> str:
    return row["name"] if row["question"] is None else f"{row['name']}{SEPARATOR}{row['question']}"


def count_look_rows(out: str | Path) -> tuple[int, int]:
    """How many rows a finished job has, and how many of them have an error."""
    told = LookFolder(out).done
    return int(told["rows"]), int(told["errors"])


def read_look_records(out: str | Path, count: int) -> list[Record]:
    """Records of the first ``count`` rows that have an answer; pictures are read again where they are still there."""
    records: list[Record] = []
    for row in LookFolder(out).rows():
        if len(records) == count:
            break
        if not row["error"]:
            records.append(_record(row))
    if not records:
        raise DataError(f"{out}: no row has an answer; see the column 'error'")
    return records


def _record(row: Mapping[str, Any]) -> Record:
    height, width = row["height"], row["width"]
    looks = [_look(told, (height, width), len(row["maps"])) for told in row["maps"] or ()]
    trace = AttentionTrace(tuple(looks), canvas=geometry.identity(1), image_size=torch.tensor([[height, width]]))
    info: dict[str, Any] = {
        "model": row["model"],
        "picture": row["source"],
        "size": [height, width],
        "question": row["question"],
        "answer": row["answer"],
        "confidence": row["confidence"],
        "alternatives": [[each["answer"], each["confidence"]] for each in row["alternatives"]],
        **({} if row["peak_x"] is None else {"peak": [int(row["peak_x"]), int(row["peak_y"])]}),
        "notes": row["notes"],
    }
    return Record(trace, info, _picture(row))


def _look(told: Mapping[str, Any], picture: geometry.Size, many: int) -> Look:
    """A stored map as a look on the picture: its cells cover all of it."""
    values = torch.from_numpy(decode_map(told))[None]  # (1,h,w)
    frame = geometry.scale_shift((picture[1] / told["width"], picture[0] / told["height"]), (0.0, 0.0))
    name = "all looks" if told["look"] == TOTAL else f"{told['look']} {told['step'] + 1}" if many > 2 else told["look"]
    return Look(name, "soft", "derived", values, frame=frame)


def _picture(row: Mapping[str, Any]) -> Image.Image:
    """The picture of a row, read again; grey where it is gone."""
    shard, _, member = row["source"].partition("#")
    is_shard = bool(member) and kind_of(shard) in ("tar", "parquet")
    uri = shard if is_shard else row["source"]
    part = Part(0, kind_of(uri) or "files", (Member(uri, "", ""),))
    try:
        entry = next((each for each in entries_of(part) if each.source == row["source"]), None)
        if entry is not None:
            return read_picture(entry.load()).image
    except DataError:
        pass
    return Image.new("RGB", (row["width"], row["height"]), (128, 128, 128))
