"""Readers of pictures and their labels by name: ``csv:my.csv``, ``svhn:FOLDER`` → a table of multisets."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.config import from_dict
from saccade.data.multiset_table import (
    MultisetTable,
    MultisetTableOptions,
    read_multiset_csv,
    read_multiset_jsonl,
)
from saccade.data.question_table import summarised
from saccade.data.readers import READERS, split_reference
from saccade.data.svhn import SvhnOptions, read_svhn
from saccade.data.table_rows import csv_rows, jsonl_rows
from saccade.errors import DataError


@dataclass(frozen=True)
class MultisetReader:
    """How one kind of data is read."""

    read: Callable[[Path, Any], MultisetTable]
    """(path, options) → table."""
    options: type
    """The dataclass of its options."""


MULTISET_READERS: dict[str, MultisetReader] = {
    "csv": MultisetReader(read_multiset_csv, MultisetTableOptions),
    "jsonl": MultisetReader(read_multiset_jsonl, MultisetTableOptions),
    "svhn": MultisetReader(read_svhn, SvhnOptions),
}


def holds_multisets(reference: str) -> bool:
    """Whether ``reference`` names multisets, where the same reader may also name questions: a table without queries.

    What cannot be read is left to the reader that is asked for it, and its message.
    """
    try:
        name, path = split_reference(reference, MULTISET_READERS)
        if name not in READERS:
            return True
        rows = csv_rows(path, ("image",)) if name == "csv" else jsonl_rows(path)[0]
    except DataError:
        return False
    return bool(rows) and not any("query" in cells for _, cells in rows)


def read_multisets(reference: str, options: Mapping[str, Any] | None = None) -> MultisetTable:
    """The pictures that ``reference`` names; one warning counts the rows left out and names the first of each kind.

    Args:
        reference: READER:PATH.
        options: settings of the reader, see its options class.

    Raises:
        ConfigError: an option that the reader does not have.
        DataError: nothing that can be used, or no such reader.
    """
    name, path = split_reference(reference, MULTISET_READERS)
    reader = MULTISET_READERS[name]
    table = reader.read(path, from_dict(reader.options, options or {}, where="data.options"))
    if table.skipped:
        left_out = summarised(table.skipped)
        warnings.warn(f"{reference}: {len(table.rows):,} pictures read, left out {left_out}", stacklevel=2)
    return table
