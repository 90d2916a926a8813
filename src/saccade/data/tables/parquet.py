"""A Parquet file, or a folder of them, as the datasets library writes them: pictures inside, or paths of pictures."""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from saccade.data.pictures.content_digest import write_if_changed
from saccade.data.tables.folders import SPLIT_FOLDERS
from saccade.data.tables.rows import Cells
from saccade.data.tables.table import CellRows
from saccade.errors import DataError, MissingExtraError
from saccade.files import cache_home, file_digest

_BEGINS = {b"\x89PNG": ".png", b"\xff\xd8": ".jpg", b"GIF8": ".gif", b"BM": ".bmp", b"II*\x00": ".tif",
           b"MM\x00*": ".tif", b"RIFF": ".webp"}  # fmt: skip
_ROWS = 64  # read at once


def parquet_rows(path: Path) -> CellRows:
    """The rows of a Parquet file, or of all of them in a folder, numbered from 1."""
    rows: list[tuple[str, Cells]] = []
    skipped: list[str] = []
    for number, (file, cells) in enumerate(parquet_cells(path), start=1):
        try:
            rows.append((f"row {number}", _with_picture(cells, file, number)))
        except ValueError as error:
            skipped.append(f"{error}: row {number}")
    return CellRows(rows, path if path.is_dir() else path.parent, skipped)


def parquet_cells(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The rows of a file, or of all in a folder, by column: labels of named classes in words, pictures still inside."""
    files = sorted(path.glob("**/*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"parquet:{path}: no .parquet file in it")
    return ((file, cells) for file in files for cells in _cells(file))


def _cells(path: Path) -> Iterator[dict[str, Any]]:
    file = _opened(path)
    names = _class_names(file.schema_arrow.metadata or {})
    split = next((SPLIT_FOLDERS[word] for word in re.split(r"[^a-z]+", path.stem.lower()) if word in SPLIT_FOLDERS), "")
    columns = {_named(column) for column in file.schema_arrow.names}
    if "image" not in columns:
        raise DataError(f"parquet:{path}: no column image; found {', '.join(sorted(columns))[:200]}")
    for batch in file.iter_batches(batch_size=_ROWS):
        for row in batch.to_pylist():
            cells = {_named(column): value for column, value in row.items()}
            for column, words in names.items():
                if isinstance(number := cells.get(column), int) and 0 <= number < len(words):
                    cells[column] = words[number]
            yield {**cells, "split": split} if split and "split" not in columns else cells


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
        return {_named(column): list(feature["names"]) for column, feature in features.items() if "names" in feature}
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
    facts = file.stat()
    folder = cache_home() / "parquet-pictures" / _digest(file, facts.st_size, facts.st_mtime_ns)
    return {**cells, "image": str(write_if_changed(folder / f"{number}{suffix}", content))}


@lru_cache
def _digest(file: Path, size: int, changed: int) -> str:
    """Digest of the file as it is now; computed once."""
    return file_digest(file)[:16]
