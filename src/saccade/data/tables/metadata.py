"""A folder of pictures with ``metadata.csv`` or ``metadata.jsonl`` beside them: the convention of the datasets library.

* ``PATH/metadata.csv``: one table, with ``file_name`` from its folder and the other columns as any table has them.
* ``PATH/train/metadata.csv``, ``PATH/test/metadata.csv``: a table for each split.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from saccade.data.tables.rows import Cells, columns_of, csv_rows, jsonl_rows
from saccade.data.tables.splits import OTHER_SPLIT
from saccade.data.tables.table import CellRows
from saccade.errors import DataError, MissingExtraError
from saccade.files import cache_home, file_digest, write_bytes

_NAMES = ("metadata.csv", "metadata.jsonl")
SPLIT_FOLDERS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val",
                 "dev": "val", "test": "test", "testing": "test"}  # fmt: skip
"""What the folders of splits are called."""


def metadata_in(folder: Path) -> list[tuple[Path, str]]:
    """The tables in ``folder``, each with its split; "" for one table of all."""
    for name in _NAMES:
        if (folder / name).is_file():
            return [(folder / name, "")]
    return [
        (folder / place / name, split)
        for place, split in SPLIT_FOLDERS.items()
        for name in _NAMES
        if (folder / place / name).is_file()
    ]


def metadata_rows(folder: Path) -> CellRows:
    """The rows of all tables in ``folder``.

    Of several tables, rows say their split, and pictures are named from ``folder``.
    """
    tables = metadata_in(folder)
    if not tables:
        raise DataError(f"metadata:{folder}: neither metadata.csv nor metadata.jsonl in it, nor in train, val and test")
    found: list[tuple[str, Cells]] = []
    skipped: list[str] = []
    repeated: list[str] = []
    for path, split in tables:
        if path.suffix == ".csv":
            rows = csv_rows(path, ("image",))
        else:
            rows, wrong = jsonl_rows(path, repeated)
            skipped += wrong
        for line, cells in rows:
            placed = {**cells, "split": split} if split else dict(cells)
            if split and isinstance(placed.get("image"), str):
                placed["image"] = f"{path.parent.name}/{placed['image'].strip()}"
            found.append((f"line {line}", placed))
    advice = OTHER_SPLIT if any(split for _, split in tables) else None  # folders name the splits
    return CellRows(found, folder, skipped, repeated, advice)


def metadata_columns(folder: Path) -> frozenset[str]:
    """The columns of the first table in ``folder``, in lower case."""
    tables = metadata_in(folder)
    return columns_of(tables[0][0].suffix[1:], tables[0][0]) if tables else frozenset()


_BEGINS = {b"\x89PNG": ".png", b"\xff\xd8": ".jpg", b"GIF8": ".gif", b"BM": ".bmp", b"II*\x00": ".tif",
           b"MM\x00*": ".tif", b"RIFF": ".webp"}  # fmt: skip
_ROWS = 64  # read at once


def parquet_rows(path: Path) -> CellRows:
    """The rows of a Parquet file, or of all of them in a folder, numbered from 1."""
    files = sorted(path.glob("**/*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"parquet:{path}: no .parquet file in it")
    rows: list[tuple[str, Cells]] = []
    skipped: list[str] = []
    for file in files:
        for cells in _cells(file):
            number = len(rows) + len(skipped) + 1
            try:
                rows.append((f"row {number}", _with_picture(cells, file, number)))
            except ValueError as error:
                skipped.append(f"{error}: row {number}")
    return CellRows(rows, path if path.is_dir() else path.parent, skipped)


def parquet_columns(path: Path) -> frozenset[str]:
    """The columns of the first file, in lower case."""
    files = sorted(path.glob("**/*.parquet")) if path.is_dir() else [path]
    return frozenset(_named(column) for column in (_opened(files[0]).schema_arrow.names if files else ()))


def _cells(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of one file by column, labels of named classes in words."""
    opened = _opened(path)
    names = _class_names(opened.schema_arrow.metadata or {})
    split = next(
        (SPLIT_FOLDERS[word] for word in re.split(r"[^a-z]+", path.stem.lower()) if word in SPLIT_FOLDERS), None
    )
    columns = {_named(column) for column in opened.schema_arrow.names}
    if "image" not in columns:
        raise DataError(f"parquet:{path}: no column image; found {', '.join(sorted(columns))[:200]}")
    for batch in opened.iter_batches(batch_size=_ROWS):
        for row in batch.to_pylist():
            cells = {_named(column): value for column, value in row.items()}
            for column, words in names.items():
                if isinstance(number := cells.get(column), int) and 0 <= number < len(words):
                    cells[column] = words[number]
            yield cells if split is None or "split" in columns else {**cells, "split": split}


def _opened(path: Path) -> Any:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("a Parquet table", "tables") from error
    try:
        return parquet.ParquetFile(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise DataError(f"parquet:{path}: cannot be read ({error}); check the path, or write it again") from error


def _named(column: str) -> str:
    name = column.strip().lower()
    return "image" if name == "file_name" else name


def _class_names(metadata: dict[bytes, bytes]) -> dict[str, list[str]]:
    """Column → names of its classes, as the datasets library notes them; nothing where it did not."""
    try:
        features = json.loads(metadata[b"huggingface"])["info"]["features"]
        return {_named(column): list(told["names"]) for column, told in features.items() if "names" in told}
    except (KeyError, ValueError, TypeError):
        return {}


def _with_picture(cells: dict[str, object], file: Path, number: int) -> dict[str, object]:
    """The cells with the path of the picture, which is written into the cache if it is not there."""
    image = cells["image"]
    content = image.get("bytes") if isinstance(image, dict) else image
    if isinstance(image, dict) and content is None:
        return {**cells, "image": image.get("path")}
    if not isinstance(content, bytes):
        return cells
    suffix = next((suffix for begin, suffix in _BEGINS.items() if content.startswith(begin)), None)
    if suffix is None:
        raise ValueError("bytes that are no picture")
    path = cache_home() / "parquet-pictures" / _digest(file) / f"{number}{suffix}"
    if not (path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content):
        write_bytes(path, content)
    return {**cells, "image": str(path)}


_digests: dict[tuple[Path, int, int], str] = {}


def _digest(file: Path) -> str:
    """Digest of the file as it is now; computed once."""
    told = file.stat()
    key = (file, told.st_size, told.st_mtime_ns)
    if key not in _digests:
        _digests[key] = file_digest(file)[:16]
    return _digests[key]
