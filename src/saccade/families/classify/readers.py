"""Readers of pictures with a class: your own table, folders, CIFAR and CUB.

CUB-200-2011 as a classifier sees it: which of 200 birds is it? The whole bird's box is the evidence.

Wah et al., "The Caltech-UCSD Birds-200-2011 Dataset" (CNS-TR-2011-001), in its official layout. Train is the official
training list less a tenth of its pictures for val, test the official test list. Boxes are never learned from: they
score crops, and a control crops by them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from saccade.data.tables.class_folders import read_class_folders
from saccade.data.tables.coco import read_coco
from saccade.data.tables.cub_files import CubFiles
from saccade.data.tables.doubts import warn_of_spellings
from saccade.data.tables.labelled import (
    LabelRow,
    LabelTable,
    LabelTableOptions,
    make_label_table,
    read_label_csv,
    read_label_jsonl,
)
from saccade.data.tables.metadata import read_label_metadata, read_label_parquet
from saccade.data.tables.references import Reader, read_reference
from saccade.data.tables.splits import hashed_share


def read_cub_species(path: Path, options: LabelTableOptions) -> LabelTable:
    """The birds in ``path``, the folder CUB_200_2011 or the one that holds it, with their species."""
    files = CubFiles(path)
    split_of = files.split_by_picture()
    found: list[tuple[str, LabelRow]] = []
    skipped: list[str] = []
    # Not in the order of the species, so that the first pictures of a split are a fair sample of it.
    for number, name in sorted(files.images.items(), key=lambda item: hashed_share(item[1])):
        image = files.folder / "images" / name
        if not image.is_file():
            skipped.append(f"no such picture: {image.name}")
            continue
        species = _in_words(files.species[files.species_of[number]])
        found.append((image.name, LabelRow(image, species, split_of[number], files.boxes[number])))
    return make_label_table(f"cub:{path}", found, skipped, strict=options.strict)


def _in_words(folder: str) -> str:
    """The name of a species from that of its folder.

    >>> _in_words("001.Black_footed_Albatross")
    'Black footed Albatross'
    """
    number, dot, name = folder.partition(".")
    return (name if dot and number.isdigit() else folder).replace("_", " ")


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
