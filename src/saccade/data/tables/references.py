"""READER:PATH, the way your own data is named: ``csv:my.csv``, ``cub:FOLDER``; and readers by name.

A READER has two letters or more, so that ``C:`` stays a drive. Every family reads its own tables and folders by
:func:`own_readers`; beside them stand the published collections that it knows. A reader is a function of a path and of
its options that makes a :class:`~saccade.data.tables.table.Table`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from saccade.config import from_dict
from saccade.data.tables.coco import coco_annotations, is_coco
from saccade.data.tables.doubts import pluralise, summarised
from saccade.data.tables.folders import class_folders, metadata_in, metadata_rows
from saccade.data.tables.parquet import parquet_cells, parquet_rows
from saccade.data.tables.rows import Cells, csv_rows, jsonl_rows
from saccade.data.tables.table import CellRows, Columns, Table, TableOptions, read_rows
from saccade.errors import ConfigError, DataError, nearest


@dataclass(frozen=True)
class Reader:
    """How one kind of file or folder is read."""

    read: Callable[[Path, Any], Table]  # (path, options) → table
    options: type = TableOptions  # The dataclass of its options


def _csv(path: Path, columns: Columns) -> CellRows:
    return CellRows([(f"line {line}", cells) for line, cells in csv_rows(path, columns.needed)], path.parent)


def _jsonl(path: Path) -> CellRows:
    skipped: list[str] = []
    return CellRows([(f"line {line}", cells) for line, cells in jsonl_rows(path, skipped)], path.parent, skipped)


# Tables and folders of one's own, which every family reads by its columns.
OWN: dict[str, Callable[[Path, Columns], CellRows]] = {
    "csv": _csv,
    "jsonl": lambda path, columns: _jsonl(path),
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
    rows: Iterable[tuple[object, Cells]]
    if reader == "parquet":
        rows = parquet_cells(path)
    elif reader in ("csv", "jsonl"):
        rows = csv_rows(path, ()) if reader == "csv" else jsonl_rows(path, [])
    else:
        rows = [("a folder has its classes' names as labels", {"image": "", "label": ""})]
    return frozenset(str(name).strip().lower() for _, cells in islice(rows, 20) for name in cells if name is not None)


def own_table(columns: Columns, reader: str, path: Path, options: TableOptions, **how: Any) -> Table:
    """The rows of a file or folder of one's own; ``how``: see :meth:`Table.of`."""
    name, cell_rows = f"{reader}:{path}", OWN[reader](path, columns)
    rows, doubts = read_rows(name, cell_rows, columns)
    several = columns.unknown == "label" and any("labels" in cells for _, cells in cell_rows.rows)
    how = {"several": several, **how}
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


_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_DATA_IS = (
    "data is a name of 'saccade data list', READER:PATH, or a path: a folder of class folders, a folder with "
    "metadata.csv, or a .csv, .jsonl, .parquet or COCO .json file"
)


def with_reader(reference: str, names: Collection[str]) -> str:
    """``reference`` as READER:PATH where it is a path alone; anything else as it is.

    A word with a slash or a suffix is a path. A bare word is one too, if it is none of the ``names`` of data and a
    folder of that name exists; so ``mref`` stays the generator even beside a folder of that name.
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
    suffix = path.suffix.lower()
    reader = "coco" if suffix == ".json" and is_coco(path) else _SUFFIXES.get(suffix)
    if reader is None:
        raise DataError(f"'{path}': not a kind of file that is recognised by its name; {_DATA_IS}")
    return f"{reader}:{path}"


def _folder_reader(path: Path) -> str:
    """The reader of a folder, by what lies in it."""
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
