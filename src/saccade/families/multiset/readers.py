"""Readers of pictures and their labels by name: ``csv:my.csv``, ``svhn:FOLDER`` → a table of multisets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saccade.data.tables.references import Reader, read_reference, split_reference
from saccade.data.tables.rows import csv_rows, jsonl_rows
from saccade.data.tables.wording import warn_of_spellings
from saccade.errors import DataError
from saccade.families.multiset.svhn import SvhnOptions, read_svhn
from saccade.families.multiset.table import (
    MultisetTable,
    MultisetTableOptions,
    read_multiset_csv,
    read_multiset_jsonl,
)
from saccade.families.question.readers import READERS

MULTISET_READERS: dict[str, Reader[MultisetTable]] = {
    "csv": Reader(read_multiset_csv, MultisetTableOptions),
    "jsonl": Reader(read_multiset_jsonl, MultisetTableOptions),
    "svhn": Reader(read_svhn, SvhnOptions),
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
    """The pictures that ``reference`` (READER:PATH) names; see :func:`read_reference`."""
    table = read_reference(reference, MULTISET_READERS, options, "picture")
    warn_of_spellings(reference, table.classes, "labels")
    return table
