"""READER:PATH, the way your own data is named: ``csv:my.csv``, ``cub:FOLDER``; and readers by name.

A READER has two letters or more, so that ``C:`` stays a drive. Each kind of data (questions, multisets, captions) has
a dictionary of readers of its own.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from saccade.config import from_dict
from saccade.data.tables.coco import is_coco
from saccade.data.tables.doubts import pluralise, summarised
from saccade.data.tables.metadata import metadata_in
from saccade.errors import DataError, nearest


class Table(Protocol):
    """What every reader makes."""

    @property
    def rows(self) -> Sequence[Any]:
        """What can be used."""

    @property
    def skipped(self) -> tuple[str, ...]:
        """What was left out, each with its reason."""


T = TypeVar("T", bound=Table)


@dataclass(frozen=True)
class Reader(Generic[T]):
    """How one kind of file or folder is read."""

    read: Callable[[Path, Any], T]
    """(path, options) → table."""
    options: type
    """The dataclass of its options."""


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


def read_reference(
    reference: str, readers: Mapping[str, Reader[T]], options: Mapping[str, object] | None, thing: str
) -> T:
    """The table that ``reference`` names; one warning counts the rows left out and names the first of each kind.

    Args:
        reference: READER:PATH.
        readers: by name.
        options: settings of the reader, see its options class.
        thing: what a row is, in the warning.

    Raises:
        ConfigError: an option that the reader does not have.
        DataError: nothing that can be used, or no such reader.
    """
    name, path = split_reference(reference, readers)
    reader = readers[name]
    table = reader.read(path, from_dict(reader.options, options or {}, where="data.options"))
    if table.skipped:
        left_out = summarised(table.skipped)
        warnings.warn(f"{reference}: {pluralise(len(table.rows), thing)} read, left out {left_out}", stacklevel=3)
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


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder; a link that leads to itself is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


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
