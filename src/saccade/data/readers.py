"""Readers by name: ``csv:my.csv``, ``cub:FOLDER`` → a table of questions.

A reference is READER:PATH with a READER of two letters or more, so that ``C:`` stays a drive.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.config import from_dict
from saccade.data.cub import CubOptions, read_cub
from saccade.data.question_table import QuestionTable, summarised
from saccade.data.tables import TableOptions, read_csv, read_jsonl
from saccade.data.visual_genome import VisualGenomeOptions, read_visual_genome
from saccade.errors import DataError, nearest


@dataclass(frozen=True)
class DataReader:
    """How one kind of data is read."""

    read: Callable[[Path, Any], QuestionTable]
    """(path, options) → table."""
    options: type
    """The dataclass of its options."""


READERS: dict[str, DataReader] = {
    "csv": DataReader(read_csv, TableOptions),
    "jsonl": DataReader(read_jsonl, TableOptions),
    "cub": DataReader(read_cub, CubOptions),
    "vg": DataReader(read_visual_genome, VisualGenomeOptions),
}


def split_reference(reference: str, readers: Collection[str] = READERS.keys()) -> tuple[str, Path]:
    """The reader, one of ``readers``, and the path that ``reference`` names.

    >>> reader, path = split_reference("csv:birds/table.csv")
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


def read_questions(reference: str, options: Mapping[str, Any] | None = None) -> QuestionTable:
    """The questions that ``reference`` names; one warning counts the rows left out and names the first of each kind.

    Args:
        reference: READER:PATH.
        options: settings of the reader, see its options class.

    Raises:
        ConfigError: an option that the reader does not have.
        DataError: nothing that can be used, or no such reader.
    """
    name, path = split_reference(reference)
    reader = READERS[name]
    table = reader.read(path, from_dict(reader.options, options or {}, where="data.options"))
    if table.skipped:
        warnings.warn(
            f"{reference}: {len(table.rows):,} questions read, left out {summarised(table.skipped)}", stacklevel=2
        )
    return table
