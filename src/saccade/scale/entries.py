"""The pictures of a part, one after the other, as bytes: from files, from a tar shard, from a column of a Parquet file.

Shards are untrusted. Nothing is unpacked onto the disk, no member is larger than a picture may be, and a path in
a table stays inside the folder of the table. What cannot be read becomes an entry whose ``load`` raises a DataError, so
that it ends as a row with an error.
"""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from saccade.data.pictures.decoding import SUFFIXES
from saccade.errors import DataError
from saccade.scale.job import Member, Part
from saccade.scale.schema import pyarrow
from saccade.scale.stores import MAX_BYTES, is_remote, open_file, read_file

COLUMNS = ("image", "picture", "img", "jpg", "jpeg", "png", "file_name", "path")
"""Columns that are taken for pictures, the first that is there."""
_ROWS = 32  # of a Parquet file, read at once
_BROKEN = (tarfile.TarError, OSError, EOFError, zlib.error, ValueError)


@dataclass(frozen=True)
class Entry:
    """A picture that is still bytes."""

    name: str
    source: str
    load: Callable[[], bytes]
    """Its bytes, or a DataError."""


def entries_of(part: Part) -> Iterator[Entry]:
    """The pictures of a part, in order."""
    if part.kind == "files":
        return (Entry(each.name, each.uri, partial(read_file, each.uri)) for each in part.members)
    (shard,) = part.members
    return _from_tar(shard) if part.kind == "tar" else _from_parquet(shard, part.column)


def _failing(name: str, source: str, why: str) -> Entry:
    def load() -> bytes:
        raise DataError(f"{source}: {why}")

    return Entry(name, source, load)


def _from_tar(shard: Member) -> Iterator[Entry]:
    """The pictures of a tar shard; texts and other members beside them are passed over."""
    try:
        with closing(open_file(shard.uri)) as file:
            is_whole = not shard.uri.lower().endswith(".tar") or _has_end(file)
            with tarfile.open(fileobj=file, mode="r|*") as archive:
                for info in archive:
                    if info.isreg() and PurePosixPath(info.name.lower()).suffix in SUFFIXES:
                        yield _member(archive, info, shard)
        if not is_whole:
            yield _failing(shard.name, shard.uri, "cut off: the end of the archive is missing; pack or fetch it again")
    except DataError as error:
        yield _failing(shard.name, shard.uri, str(error).removeprefix(f"{shard.uri}: "))
    except _BROKEN as error:
        yield _failing(shard.name, shard.uri, f"damaged or cut off ({_line(error)}); pack or fetch it again")


def _member(archive: tarfile.TarFile, info: tarfile.TarInfo, shard: Member) -> Entry:
    """A member, read now: a stream cannot go back."""
    name = info.name.removeprefix("./")
    source = f"{shard.uri}#{name}"
    called = f"{shard.name}/{name[: -len(PurePosixPath(name).suffix)]}"
    if info.size > MAX_BYTES:
        return _failing(called, source, f"{info.size:,} bytes, and at most {MAX_BYTES:,} are allowed")
    member = archive.extractfile(info)
    data = b"" if member is None else member.read(info.size)
    if len(data) < info.size:
        raise tarfile.ReadError("unexpected end of data")
    return Entry(called, source, lambda: data)


def _has_end(file: Any) -> bool:
    """Whether a tar ends as it should, in two empty blocks; the file is back at its start then."""
    file.seek(0, os.SEEK_END)
    size = file.tell()
    file.seek(max(0, size - 1024))
    tail = file.read(1024)
    file.seek(0)
    return len(tail) == 1024 and not any(tail)


def _from_parquet(table: Member, column: str | None) -> Iterator[Entry]:
    """The pictures of a column: bytes, paths, or {bytes, path} as the datasets library writes them."""
    arrow, parquet = pyarrow()
    try:
        with closing(open_file(table.uri)) as file:
            opened = parquet.ParquetFile(file)
            chosen = _column(opened.schema_arrow.names, column)
            number = 0
            for batch in opened.iter_batches(batch_size=_ROWS, columns=[chosen]):
                for value in batch.column(0).to_pylist():
                    yield _cell(value, table, number)
                    number += 1
    except DataError as error:
        yield _failing(table.name, table.uri, str(error))
    except (arrow.ArrowException, OSError, ValueError, KeyError) as error:
        yield _failing(table.name, table.uri, f"damaged or no Parquet file ({_line(error)}); write or fetch it again")


def _column(names: list[str], wanted: str | None) -> str:
    if wanted is not None:
        if wanted not in names:
            raise DataError(f"no column '{wanted}'; found {', '.join(names)[:200]}")
        return wanted
    lower = {name.strip().lower(): name for name in reversed(names)}
    for name in COLUMNS:
        if name in lower:
            return lower[name]
    raise DataError(f"no column of pictures, say which with `column`; found {', '.join(names)[:200]}")


def _cell(value: object, table: Member, number: int) -> Entry:
    name, source = f"{table.name}/{number:06d}", f"{table.uri}#{number}"
    path = value.get("path") if isinstance(value, dict) else value
    data = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(data, bytes):
        return Entry(name, source, lambda: data)
    if not isinstance(path, str) or not path:
        found = "nothing" if value is None else type(value).__name__
        return _failing(name, source, f"expected bytes, a path or {{bytes, path}}, found {found}")
    parts = PurePosixPath(path).parts
    if is_remote(path) or path.startswith("/") or ".." in parts or "\0" in path:
        return _failing(name, source, f"a path that leaves the folder of the table: '{path[:80]}'")
    return Entry(name, source, partial(read_file, f"{table.uri.rpartition('/')[0]}/{path}"))


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__
