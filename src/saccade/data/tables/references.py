"""READER:PATH, the way your own data is named: ``csv:my.csv``, ``cub:FOLDER``; and readers by name.

A READER has two letters or more, so that ``C:`` stays a drive. Every family reads its own tables and folders by
:func:`own_readers`; beside them stand the published collections that it knows. A reader is a function of a path and of
its options that makes a :class:`~saccade.data.tables.table.Table`.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from saccade.config import from_dict
from saccade.data.tables.class_folders import class_folders, is_folder
from saccade.data.tables.coco import coco_annotations, is_coco
from saccade.data.tables.doubts import pluralise, summarised, warn_of_spellings
from saccade.data.tables.metadata import metadata_in, metadata_rows, parquet_rows
from saccade.data.tables.rows import csv_rows, jsonl_rows
from saccade.data.tables.table import CellRows, Columns, Table, TableOptions, read_rows
from saccade.errors import ConfigError, DataError, nearest


@dataclass(frozen=True)
class Reader:
    """How one kind of file or folder is read."""

    read: Callable[[Path, Any], Table]
    """(path, options) → table."""
    options: type = TableOptions
    """The dataclass of its options."""


def _csv(path: Path, columns: Columns) -> CellRows:
    return CellRows([(f"line {line}", cells) for line, cells in csv_rows(path, columns.needed)], path.parent)


def _jsonl(path: Path, columns: Columns) -> CellRows:
    repeated: list[str] = []
    rows, skipped = jsonl_rows(path, repeated)
    return CellRows([(f"line {line}", cells) for line, cells in rows], path.parent, skipped, repeated)


OWN: dict[str, Callable[[Path, Columns], CellRows]] = {
    "csv": _csv,
    "jsonl": _jsonl,
    "folder": lambda path, columns: class_folders(path),
    "metadata": lambda path, columns: metadata_rows(path),
    "parquet": lambda path, columns: parquet_rows(path),
    "coco": lambda path, columns: coco_annotations(path),
}
"""Tables and folders of one's own, which every family reads by its columns."""


def own_table(columns: Columns, reader: str, path: Path, options: TableOptions, **how: Any) -> Table:
    """The rows of a file or folder of one's own; ``how``: see :meth:`Table.of`."""
    name, found = f"{reader}:{path}", OWN[reader](path, columns)
    rows, doubts, if_empty = read_rows(name, found, columns)
    how = {"several": columns.unknown == "label" and any("labels" in cells for _, cells in found.rows), **how}
    return Table.of(
        name, rows, columns, skipped=found.skipped, strict=options.strict, doubts=doubts, if_empty=if_empty, **how
    )


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
        known = (*others, *(f"{reader}:PATH" for reader in readers))
        raise ConfigError(f"name: found '{name}'; {nearest(name, known)}")
    try:
        reader, _ = split_reference(name, readers)
    except DataError as error:
        raise ConfigError(f"name: {error}") from error
    from_dict(readers[reader].options, options, where="options")


def read_reference(reference: str, readers: Mapping[str, Reader], options: Mapping[str, object] | None = None) -> Table:
    """The table that ``reference`` (READER:PATH) names; a warning counts what was left out, and names the first.

    Another warning names words that differ in spelling alone.

    Raises:
        ConfigError: an option that the reader does not have.
        DataError: nothing that can be used, or no such reader.
    """
    name, path = split_reference(reference, readers)
    reader = readers[name]
    table = reader.read(path, from_dict(reader.options, options or {}, where="data.options"))
    if table.skipped:
        left_out = summarised(table.skipped)
        rows = pluralise(len(table.rows), table.columns.thing)
        warnings.warn(f"{reference}: {rows} read, left out {left_out}", stacklevel=3)
    warn_of_spellings(reference, table.queries, "queries")
    warn_of_spellings(reference, table.answers, "labels")
    return table


_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_READABLE = "a folder of class folders, a folder with metadata.csv, or a .csv, .jsonl, .parquet or COCO .json file"
_DATA_IS = f"data is a name of 'saccade data list', READER:PATH, or a path: {_READABLE}"


def with_reader(reference: str, names: Collection[str]) -> str:
    """``reference`` as READER:PATH where it is a path alone; anything else as it is.

    A word with a slash or a suffix is a path. A bare word is one too, if it is none of the ``names`` of data and a
    folder of that name exists; so ``mref`` stays the generator even beside a folder of that name.

    Raises:
        DataError: it is a path, and nothing that can be read lies there; or a word that is neither data nor a folder.
    """
    path = Path(reference).expanduser()
    looks_so = "/" in reference or os.sep in reference or path.suffix != "" or reference in (".", "..")
    is_folder = reference not in ("", *names) and path.is_dir()  # Path("") would be the folder one is in
    if _has_reader(reference) or reference in ("", *names):
        return reference
    if not looks_so and not is_folder:
        meant = "".join(f"; did you mean '{name}'?" for name in get_close_matches(reference, names, n=1))
        raise DataError(f"'{reference}': there is no data of that name, and no such file or folder{meant}; {_DATA_IS}")
    if path.is_dir():
        return f"{_folder_reader(path)}:{path}"
    if not path.exists():
        raise DataError(f"'{path}': there is no such file or folder; {_DATA_IS}")
    reader = _SUFFIXES.get(path.suffix.lower()) or (
        "coco" if path.suffix.lower() == ".json" and is_coco(path) else None
    )
    if reader is None:
        raise DataError(
            f"'{path}' is not a kind of file that is recognised by its name: {_READABLE}; or name READER:PATH"
        )
    return f"{reader}:{path}"


def _has_reader(reference: str) -> bool:
    """Whether a word of two letters or more stands before a colon; ``C:`` is a drive."""
    word, colon, _ = reference.partition(":")
    return bool(colon) and len(word) > 1 and "/" not in word


def _folder_reader(path: Path) -> str:
    """The reader of a folder, by what lies in it."""
    if (path / "causal.json").is_file():
        return "causal"
    if metadata_in(path):
        return "metadata"
    with os.scandir(path) as entries:
        found = [(entry.name, is_folder(entry)) for entry in entries if not entry.name.startswith(".")]
    if not found:
        raise DataError(f"'{path}' is empty: there are no pictures to learn from")
    if any(name.endswith(".parquet") for name, _ in found):
        return "parquet"
    if any(is_folder for _, is_folder in found):
        return "folder"
    raise DataError(
        f"'{path}' holds files and no folders of classes, so the labels are not known: sort them into folders, one "
        "for each class, or add a metadata.csv with file_name and label"
    )
