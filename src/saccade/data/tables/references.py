"""READER:PATH, the way your own data is named: ``csv:my.csv``, ``cub:FOLDER``; and readers by name.

A READER has two letters or more, so that ``C:`` stays a drive. Each kind of data (questions, multisets, captions) has
a dictionary of readers of its own.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from saccade.config import from_dict
from saccade.data.tables.wording import pluralise, summarised
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
