"""Readers of pictures with a class: your own table, folders, CIFAR and CUB.

CUB-200-2011 as a classifier sees it: which of 200 birds is it? The whole bird's box is the evidence.

Wah et al., "The Caltech-UCSD Birds-200-2011 Dataset" (CNS-TR-2011-001), in its official layout. Train is the official
training list less a tenth of its pictures for val, test the official test list. Boxes are never learned from: they
score crops, and a control crops by them.
"""

from __future__ import annotations

from pathlib import Path

from saccade.data.examples import hashed_share
from saccade.data.tables.cub_files import CubFiles
from saccade.data.tables.readers import Reader, own_readers
from saccade.data.tables.table import Columns, Found, Row, Table, TableOptions

COLUMNS = Columns()
"""One label a picture; boxes and masks are evidence."""


def read_cub_species(path: Path, options: TableOptions) -> Table:
    """The birds in ``path``, the folder CUB_200_2011 or the one that holds it, with their species."""
    files = CubFiles(path)
    found: list[Found] = []
    skipped: list[str] = []
    # Not in the order of the species, so that the first pictures of a split are a fair sample of it.
    for number, name in sorted(files.images.items(), key=lambda item: hashed_share(item[1])):
        image = files.folder / "images" / name
        if not image.is_file():
            skipped.append(f"no such picture: {image.name}")
            continue
        species = _in_words(files.species[files.species_of[number]])
        found.append((image.name, Row(image, (species,), files.splits[number], box=files.boxes[number])))
    return Table.of(f"cub:{path}", found, COLUMNS, skipped=skipped, strict=options.strict)


def _in_words(folder: str) -> str:
    """The name of a species from that of its folder.

    >>> _in_words("001.Black_footed_Albatross")
    'Black footed Albatross'
    """
    number, dot, name = folder.partition(".")
    return (name if dot and number.isdigit() else folder).replace("_", " ")


LABEL_READERS: dict[str, Reader] = {"cub": Reader(read_cub_species), **own_readers(COLUMNS)}
