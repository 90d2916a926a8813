"""READER:PATH, the way your own data is named: ``csv:my.csv``, ``cub:FOLDER``; and readers by name.

A READER has two letters or more, so that ``C:`` stays a drive. Every family reads its own tables and folders by
:func:`own_readers`, and the published collections that it knows. A reader is a function from a path and options to a
:class:`~saccade.data.tables.table.Table`.

``folder:PATH`` holds a folder for each class; every family that takes labels reads it:

* ``PATH/train/cat/1.jpg``: the splits are train, val (or valid, validation) and test. Where there is no val, 15 % of
  train become val, by a hash of the path.
* ``PATH/cat/1.jpg``: 70 / 15 / 15 % of the pictures are train / val / test, by a hash of the path.

Folders below a class belong to the class. Hidden files do not count. What cannot be used is left out and counted.

``metadata:PATH`` is the convention of the datasets library: ``PATH/metadata.csv`` (or .jsonl), or one in each of
``PATH/train`` and ``PATH/test``. ``parquet:PATH`` is a Parquet file, or a folder of them, with pictures or their paths.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from saccade.config import from_dict
from saccade.data.examples import SPLITS, hashed_share, split_of
from saccade.data.pictures.files import SUFFIXES, torn_copies, write_if_changed
from saccade.data.tables.doubts import first_few, pluralise, summarised
from saccade.data.tables.published import coco_annotations
from saccade.data.tables.rows import Cells, csv_rows, jsonl_rows
from saccade.data.tables.table import CellRows, Columns, Table, TableOptions, read_rows
from saccade.errors import ConfigError, DataError, MissingExtraError, nearest
from saccade.files import cache_home, file_digest


@dataclass(frozen=True)
class Reader:
    """How one kind of file or folder is read."""

    read: Callable[[Path, Any], Table]  # (path, options) → table
    options: type = TableOptions  # The dataclass of its options


def _lines(path: Path, columns: Columns, *, is_csv: bool) -> CellRows:
    skipped: list[str] = []
    rows = csv_rows(path, columns.needed) if is_csv else jsonl_rows(path, skipped)
    return CellRows([(f"line {line}", cells) for line, cells in rows], path.parent, skipped)


# Tables and folders of one's own, which every family reads by its columns.
OWN: dict[str, Callable[[Path, Columns], CellRows]] = {
    "csv": partial(_lines, is_csv=True),
    "jsonl": partial(_lines, is_csv=False),
    "folder": lambda path, columns: class_folders(path),
    "metadata": lambda path, columns: metadata_rows(path),
    "parquet": lambda path, columns: parquet_rows(path),
    "coco": lambda path, columns: coco_annotations(path),
}


def columns_of(reader: str, path: Path) -> frozenset[str]:
    """The columns of the first rows of one's own table, in lower case."""
    if reader == "metadata":
        path = next((table for table, _ in metadata_in(path)), path)
        reader = path.suffix[1:]
    rows: Iterable[tuple[object, Cells]] = [("a folder has its classes' names as labels", {"image": "", "label": ""})]
    if reader == "parquet":
        rows = parquet_cells(path)
    elif reader in ("csv", "jsonl"):
        rows = csv_rows(path, ()) if reader == "csv" else jsonl_rows(path, [])
    return frozenset(str(name).strip().lower() for _, cells in islice(rows, 20) for name in cells if name is not None)


def own_table(columns: Columns, reader: str, path: Path, options: TableOptions, **how: Any) -> Table:
    """The rows of a file or folder of one's own; ``how``: see :meth:`Table.of`."""
    name, cell_rows = f"{reader}:{path}", OWN[reader](path, columns)
    rows, doubts = read_rows(name, cell_rows, columns)
    how.setdefault("several", columns.unknown == "label" and any("labels" in cells for _, cells in cell_rows.rows))
    return Table.of(name, rows, columns, skipped=cell_rows.skipped, strict=options.strict, doubts=doubts, **how)


def own_readers(columns: Columns) -> dict[str, Reader]:
    """The readers of one's own tables and folders, for a family with these columns."""
    return {name: Reader(partial(own_table, columns, name)) for name in OWN}


def split_reference(reference: str, readers: Collection[str]) -> tuple[str, Path]:
    """The reader, one of ``readers``, and the path that ``reference`` names.

    >>> reader, path = split_reference("csv:birds/table.csv", ["csv", "cub"])
    >>> reader, path.name
    ('csv', 'table.csv')
    """
    match = re.fullmatch(r"([A-Za-z][A-Za-z0-9_-]+):(.+)", reference, re.DOTALL)
    if match is None:
        raise DataError(f"'{reference}' is not READER:PATH, as in csv:my.csv; readers: {', '.join(readers)}")
    name, path = match.groups()
    if name not in readers:
        raise DataError(f"no reader '{name}': {nearest(name, readers)}")
    return name, Path(path).expanduser()


def check_reference(
    name: str, readers: Mapping[str, Reader], options: Mapping[str, object], others: Collection[str] = ()
) -> None:
    """Refuse a ``name`` that is neither READER:PATH nor one of the ``others``, and options that no such reader has."""
    if ":" not in name:
        raise ConfigError(f"name: found '{name}'; {nearest(name, (*others, *(f'{key}:PATH' for key in readers)))}")
    try:
        reader, _ = split_reference(name, readers)
    except DataError as error:
        raise ConfigError(f"name: {error}") from error
    from_dict(readers[reader].options, options, where="options")


def read_reference(reference: str, readers: Mapping[str, Reader], options: Mapping[str, object] | None = None) -> Table:
    """The table that ``reference`` (READER:PATH) names; a warning counts what was left out, and names the first."""
    name, path = split_reference(reference, readers)
    reader = readers[name]
    table = reader.read(path, from_dict(reader.options, options or {}, where="data.options"))
    if table.skipped:
        rows = pluralise(len(table.rows), table.columns.thing)
        warnings.warn(f"{reference}: {rows} read, left out {summarised(table.skipped)}", stacklevel=3)
    return table


_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet",
             ".json": "coco"}  # fmt: skip
_DATA_IS = (
    "data is a name of 'saccade data list', READER:PATH, or a path: a folder of class folders, a folder with "
    "metadata.csv, or a .csv, .jsonl, .parquet or COCO .json file"
)


def with_reader(reference: str, names: Collection[str]) -> str:
    """``reference`` as READER:PATH where it is a path alone; anything else as it is.

    A word with a slash or a suffix is a path; so is a bare word that is none of the ``names`` of data, if such a folder
    exists.
    """
    word, colon, _ = reference.partition(":")
    has_reader = bool(colon) and len(word) > 1 and "/" not in word  # C: is a drive
    if has_reader or reference in ("", *names):
        return reference
    path = Path(reference).expanduser()
    if path.is_dir():
        return f"{_folder_reader(path)}:{path}"
    if not path.exists():
        meant = "".join(f"; did you mean '{name}'?" for name in get_close_matches(reference, names, n=1))
        raise DataError(f"'{reference}': there is no data of that name, and no such file or folder{meant}; {_DATA_IS}")
    reader = _SUFFIXES.get(path.suffix.lower())
    if reader == "coco":  # any other JSON is none
        with path.open(encoding="utf-8", errors="replace") as file:
            begins_so = re.search(r'"(images|annotations|categories)"\s*:\s*\[', file.read(100_000))
        reader = reader if begins_so else None
    if reader is None:
        raise DataError(f"'{path}': not a kind of file that is recognised by its name; {_DATA_IS}")
    return f"{reader}:{path}"


def _folder_reader(path: Path) -> str:
    if (path / "causal.json").is_file():
        return "causal"
    if metadata_in(path):
        return "metadata"
    entries = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    if any(entry.suffix == ".parquet" for entry in entries):
        return "parquet"
    if any(entry.is_dir() for entry in entries):
        return "folder"
    raise DataError(
        f"'{path}' holds no folders of classes, so no labels are known: sort the pictures into folders, one for each "
        "class, or add a metadata.csv with file_name and label"
    )


# What the folders of splits are called.
SPLIT_FOLDERS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val",
                 "dev": "val", "test": "test", "testing": "test"}  # fmt: skip
_HELD_OUT = 0.15  # of train, where there is no val
_NAMED = 5
_METADATA = ("metadata.csv", "metadata.jsonl")


def class_folders(path: Path) -> CellRows:
    """The pictures below ``path``, each labelled by the folder of its class."""
    broken = sorted(entry.name for entry in path.iterdir() if entry.is_symlink() and not entry.exists())
    skipped = [f"link that leads nowhere: {name}" for name in broken]
    top = _folders(path)
    splits = {SPLIT_FOLDERS[folder.name.lower()]: folder for folder in top if folder.name.lower() in SPLIT_FOLDERS}
    if splits and len(splits) < len(top):
        others = [folder.name for folder in top if folder.name.lower() not in SPLIT_FOLDERS]
        raise DataError(
            f"folder:{path}: {first_few(others, _NAMED)} beside {', '.join(folder.name for folder in splits.values())}"
            "; put classes either into folders train, val and test or right into the folder"
        )
    classes = [(split, folder) for split in SPLITS if split in splits for folder in _folders(splits[split])]
    cells_of: dict[Path, dict[str, str]] = {}
    for split, folder in classes if splits else [("", folder) for folder in top]:
        if folder.is_symlink() and path.resolve().is_relative_to(folder.resolve()):
            skipped.append(f"link that leads back: {folder.relative_to(path).as_posix()}")
            continue
        before = len(cells_of)
        for file in _files(folder):
            where = file.relative_to(path).as_posix()
            if file.suffix.lower() not in SUFFIXES:
                skipped.append(f"no picture by its name: {where}")
                continue
            is_held_out = "val" not in splits and hashed_share(where) >= 1 - _HELD_OUT
            part = "val" if split == "train" and is_held_out else split or split_of(where)
            cells_of[file] = {"image": where, "label": folder.name, "split": part}
        if len(cells_of) == before:
            skipped.append(f"class without pictures: {folder.relative_to(path).as_posix()}")
    if not cells_of and not skipped:
        raise DataError(f"folder:{path}: no folder of a class in it; expected {path.name}/CLASS/PICTURE.jpg")
    label_of = {file: cells["label"] for file, cells in cells_of.items()}
    for same in torn_copies(label_of):
        for file in same:
            twin = next(other for other in same if label_of[other] != label_of[file])
            skipped.append(f"same picture in two classes: {cells_of[file]['image']} = {twin.parent.name}/{twin.name}")
        for file in same:
            del cells_of[file]
    return CellRows([(cells["image"], cells) for cells in cells_of.values()], path, skipped)


def _folders(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if not entry.name.startswith(".") and entry.is_dir())


def _files(folder: Path) -> Iterator[Path]:
    for place, inside, names in os.walk(folder):
        inside[:] = sorted(name for name in inside if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(names) if not name.startswith("."))


def metadata_in(folder: Path) -> list[tuple[Path, str]]:
    """The tables in ``folder``, each with its split; "" for one table of all."""
    for name in _METADATA:
        if (folder / name).is_file():
            return [(folder / name, "")]
    return [
        (folder / place / name, split)
        for place, split in SPLIT_FOLDERS.items()
        for name in _METADATA
        if (folder / place / name).is_file()
    ]


def metadata_rows(folder: Path) -> CellRows:
    """The rows of all tables in ``folder``; of several, rows say their split, and pictures lie below ``folder``."""
    tables = metadata_in(folder)
    if not tables:
        raise DataError(f"metadata:{folder}: neither metadata.csv nor metadata.jsonl in it, nor in train, val and test")
    rows: list[tuple[str, Cells]] = []
    skipped: list[str] = []
    for path, split in tables:
        for line, cells in csv_rows(path, ("image",)) if path.suffix == ".csv" else jsonl_rows(path, skipped):
            placed = {**cells, "split": split} if split else dict(cells)
            if split and isinstance(placed.get("image"), str):
                placed["image"] = f"{path.parent.name}/{placed['image'].strip()}"
            rows.append((f"line {line}", placed))
    return CellRows(rows, folder, skipped)


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
    """The rows of a file, or of all in a folder, by column; pictures still inside."""
    files = sorted(path.glob("**/*.parquet")) if path.is_dir() else [path]
    if not files:
        raise DataError(f"parquet:{path}: no .parquet file in it")
    return ((file, cells) for file in files for cells in _cells(file))


def _cells(path: Path) -> Iterator[dict[str, Any]]:
    try:
        parquet = importlib.import_module("pyarrow.parquet")
        file = parquet.ParquetFile(path)
    except ImportError as error:
        raise MissingExtraError("a Parquet table", "tables") from error
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise DataError(f"parquet:{path}: cannot be read ({error}); check the path, or write it again") from error
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
    return file_digest(file)[:16]
