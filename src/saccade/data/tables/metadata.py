"""A folder of pictures with ``metadata.csv`` or ``metadata.jsonl`` beside them: the convention of the datasets library.

* ``PATH/metadata.csv``: one table, with ``file_name`` from its folder and the other columns as any table has them.
* ``PATH/train/metadata.csv``, ``PATH/test/metadata.csv``: a table for each split.
"""

from __future__ import annotations

from pathlib import Path

from saccade.data.tables.labelled import LabelTable, LabelTableOptions, label_table
from saccade.data.tables.rows import Rows, columns_of, csv_rows, jsonl_rows
from saccade.data.tables.splits import OTHER_SPLIT
from saccade.errors import DataError

_NAMES = ("metadata.csv", "metadata.jsonl")
SPLIT_FOLDERS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val",
                 "dev": "val", "test": "test", "testing": "test"}  # fmt: skip
"""What the folders of splits are called."""


def metadata_in(folder: Path) -> list[tuple[Path, str]]:
    """The tables in ``folder``, each with its split; "" for one table of all."""
    for name in _NAMES:
        if (folder / name).is_file():
            return [(folder / name, "")]
    return [
        (folder / place / name, split)
        for place, split in SPLIT_FOLDERS.items()
        for name in _NAMES
        if (folder / place / name).is_file()
    ]


def metadata_rows(folder: Path) -> tuple[Rows, list[str], list[str]]:
    """The rows of all tables in ``folder``, what was left out, and lines that name a key twice.

    Of several tables, rows say their split, and pictures are named from ``folder``.
    """
    tables = metadata_in(folder)
    if not tables:
        raise DataError(f"metadata:{folder}: neither metadata.csv nor metadata.jsonl in it, nor in train, val and test")
    found: Rows = []
    skipped: list[str] = []
    repeated: list[str] = []
    for path, split in tables:
        if path.suffix == ".csv":
            rows = csv_rows(path, ("image",))
        else:
            rows, wrong = jsonl_rows(path, repeated)
            skipped += wrong
        for line, cells in rows:
            placed = {**cells, "split": split} if split else dict(cells)
            if split and isinstance(placed.get("image"), str):
                placed["image"] = f"{path.parent.name}/{placed['image'].strip()}"
            found.append((line, placed))
    return found, skipped, repeated


def metadata_columns(folder: Path) -> frozenset[str]:
    """The columns of the first table in ``folder``, in lower case."""
    tables = metadata_in(folder)
    return columns_of(tables[0][0].suffix[1:], tables[0][0]) if tables else frozenset()


def read_label_metadata(folder: Path, options: LabelTableOptions) -> LabelTable:
    """The labelled pictures of a folder with metadata."""
    advice = OTHER_SPLIT if any(split for _, split in metadata_in(folder)) else None  # folders name the splits
    return label_table("metadata", folder, *metadata_rows(folder), options, base=folder, if_empty=advice)
