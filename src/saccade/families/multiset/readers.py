"""Readers of pictures and their labels by name: ``csv:my.csv``, ``svhn:FOLDER`` → a table of multisets."""

from __future__ import annotations

from collections.abc import Mapping

from saccade.data.tables.doubts import warn_of_spellings
from saccade.data.tables.references import Reader, read_reference
from saccade.families.multiset.svhn import SvhnOptions, read_svhn
from saccade.families.multiset.table import (
    MultisetTable,
    MultisetTableOptions,
    read_multiset_csv,
    read_multiset_folders,
    read_multiset_jsonl,
)

MULTISET_READERS: dict[str, Reader[MultisetTable]] = {
    "csv": Reader(read_multiset_csv, MultisetTableOptions),
    "jsonl": Reader(read_multiset_jsonl, MultisetTableOptions),
    "svhn": Reader(read_svhn, SvhnOptions),
    "folder": Reader(read_multiset_folders, MultisetTableOptions),
}


def read_multisets(reference: str, options: Mapping[str, object] | None = None) -> MultisetTable:
    """The pictures that ``reference`` (READER:PATH) names; see :func:`read_reference`."""
    table = read_reference(reference, MULTISET_READERS, options, "picture")
    warn_of_spellings(reference, table.classes, "labels")
    return table
