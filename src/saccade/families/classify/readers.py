"""Readers of pictures with one label each, by name: ``folder:PATH``, ``csv:my.csv`` → a table of labels."""

from __future__ import annotations

from collections.abc import Mapping

from saccade.data.tables.class_folders import read_class_folders
from saccade.data.tables.coco import read_coco
from saccade.data.tables.doubts import warn_of_spellings
from saccade.data.tables.labelled import LabelTable, LabelTableOptions, read_label_csv, read_label_jsonl
from saccade.data.tables.metadata import read_label_metadata, read_label_parquet
from saccade.data.tables.references import Reader, read_reference
from saccade.families.classify.cub import read_cub_species

LABEL_READERS: dict[str, Reader[LabelTable]] = {
    "cub": Reader(read_cub_species, LabelTableOptions),
    "folder": Reader(read_class_folders, LabelTableOptions),
    "csv": Reader(read_label_csv, LabelTableOptions),
    "jsonl": Reader(read_label_jsonl, LabelTableOptions),
    "metadata": Reader(read_label_metadata, LabelTableOptions),
    "parquet": Reader(read_label_parquet, LabelTableOptions),
    "coco": Reader(read_coco, LabelTableOptions),
}


def read_labels(reference: str, options: Mapping[str, object] | None = None) -> LabelTable:
    """The pictures that ``reference`` (READER:PATH) names; see :func:`read_reference`."""
    table = read_reference(reference, LABEL_READERS, options, "picture")
    warn_of_spellings(reference, table.classes, "labels")
    return table
