"""Readers of pictures with a set of labels: your own tables, and SVHN.

In your own table, ``labels`` are ``3; 3; 7`` or a JSON list; an empty cell is the empty multiset. A column ``boxes``
has one ``x1 y1 x2 y2`` for each label, with semicolons between, or a JSON list of lists. The option ``kind`` says
whether labels may repeat and whether their order counts.

SVHN, full numbers: house numbers, with a box for every digit. Netzer, Wang, Coates, Bissacco, Wu and Ng, "Reading
Digits in Natural Images with Unsupervised Feature Learning" (2011), in either of two layouts below one folder:

* the official format 1: ``train/digitStruct.mat`` (HDF5, extra ``svhn``) beside ``train/1.png`` …, and the same in
  ``test/``. A picture is cut to the union of its digits' boxes, enlarged by 15 % on each side;
* a reduced copy that is cut already: ``train.csv`` (image, digits from left to right, one box x1,y1,x2,y2 for each)
  beside ``train/1.jpg`` …, and perhaps the same for test.

Val is 5 % of the training pictures, by a hash of their numbers, so the same in both layouts. Test is the official one
where it is there, even without train/. Otherwise it is another 10 % of the training pictures, and scores say so.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from saccade.config import Within
from saccade.data.examples import hashed_share
from saccade.data.tables import rows
from saccade.data.tables.readers import OWN, Reader, own_table
from saccade.data.tables.table import Columns, Found, Row, Table, TableOptions, one_label
from saccade.errors import DataError, MissingExtraError, OutputError
from saccade.files import cache_home, file_digest, write_text

Kind = Literal["multiset", "set", "list"]  # what the labels of a picture are


def _labels(cells: rows.Cells) -> tuple[str, ...]:
    value = cells.get("labels")
    if value is None and "label" in cells:
        return one_label(cells)  # of a folder by class
    if value is None:  # an empty cell is "": here there is no cell
        raise rows.UnusableRowError("no labels", "an empty multiset is an empty cell or []")
    return tuple(rows.words_of(value, "labels"))


def _boxes(cells: rows.Cells, labels: int) -> tuple[rows.Box | None, ...]:
    value = cells.get("boxes")
    if rows.is_blank(value) or value == []:
        return ()
    boxes = tuple(
        rows.box_in(part.strip() if isinstance(part, str) else part) for part in rows.parts_of(value, "boxes")
    )
    if len(boxes) != labels:
        raise rows.UnusableRowError("boxes for other labels", f"{len(boxes)} boxes for {labels} labels")
    return boxes


# All labels of a picture, and a box for each.
COLUMNS = Columns(needed=("image", "labels"), optional=frozenset(), labels=_labels, boxes=_boxes)


@dataclass(frozen=True)
class MultisetTableOptions(TableOptions):
    """How a table is read."""

    kind: Kind = "multiset"  # What ``labels`` means, see the module
    # Most labels of a training picture; others are left out of training.
    most: Annotated[int | None, Within(1)] = None


def read_own(reader: str, path: Path, options: MultisetTableOptions) -> Table:
    """The pictures of your own file or folder."""
    table = own_table(COLUMNS, reader, path, options, kind=options.kind, most=options.most, several=True)
    if not table.answers:
        raise DataError(f"{table.name}: no training picture has a label; there is nothing to learn")
    repeats = [row.image.name for row in table.as_found if len(set(row.labels)) < len(row.labels)]
    if options.kind == "set" and repeats:  # it was meant to be something else: that is for the user to say
        named = ", ".join(repeats[:3]) + (", …" if len(repeats) > 3 else "")
        why = f"a label repeats in {len(repeats):,} row(s): {named}"
        raise DataError(f"{path}: kind 'set', but {why}; remove the repeats, or set kind: multiset")
    return table


def commonest_multiset(table: Table, answers: Sequence[str]) -> tuple[int, ...] | None:
    """The most frequent training multiset, as numbers of ``answers``; ties go to the first, None if there is none."""
    number_of = {label: number for number, label in enumerate(answers)}
    counts: Counter[tuple[int, ...]] = Counter()
    for row in table.rows:
        if row.split == "train" and all(label in number_of for label in row.labels):
            numbers = [number_of[label] for label in row.labels]
            counts[tuple(numbers if table.kind == "list" else sorted(numbers))] += 1
    return counts.most_common(1)[0][0] if counts else None


class HouseNumber(NamedTuple):
    """A picture as the annotations describe it."""

    image: str  # name of its file
    digits: tuple[str, ...]  # from left to right
    boxes: tuple[rows.Box, ...]  # one for each digit


def read_digit_struct(path: Path) -> list[HouseNumber]:
    """The pictures of a ``digitStruct.mat``, in order; cached by the file's digest, as reading takes a minute."""
    memory = cache_home() / "svhn" / f"{file_digest(path)}.json"
    try:
        numbers = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        numbers = _follow(path)
        with suppress(OutputError):  # a cache that cannot be written costs time, not the result
            write_text(memory, json.dumps(numbers))
    return [HouseNumber(name, tuple(digits), tuple(map(tuple, boxes))) for name, digits, boxes in numbers]


def _follow(path: Path) -> list[tuple[str, list[str], list[rows.Box]]]:
    """Names, digits and boxes from the references in the HDF5 file (MATLAB 7.3).

    A picture's name is character codes, its boxes a group of five columns; a column of several numbers is references
    again.
    """
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError("reading SVHN's digitStruct.mat", "svhn") from error

    def numbers_of(file: Any, column: Any) -> list[float]:
        values = column[:].ravel()
        return [float(file[value][0, 0]) if isinstance(value, h5py.Reference) else float(value) for value in values]

    numbers = []
    with rows.layout_of(path, "a digitStruct.mat of SVHN", "unpack the archive again"), h5py.File(path, "r") as file:
        names, groups = (file[f"digitStruct/{part}"][:].ravel() for part in ("name", "bbox"))
        for name, group in zip(names, groups, strict=True):
            columns = (numbers_of(file, file[group][key]) for key in ("label", "left", "top", "width", "height"))
            digits, left, top, width, height = columns
            named = ["0" if digit == 10 else f"{digit:g}" for digit in digits]
            boxes = [(x, y, x + w, y + h) for x, y, w, h in zip(left, top, width, height, strict=True)]
            numbers.append(("".join(map(chr, file[name][:].ravel())), named, boxes))
    return numbers


MARGIN = 0.15  # how far a crop goes beyond the union of the boxes on each side, in widths and heights of that union

_VAL, _TEST = 0.05, 0.15  # upper ends of their shares of the training pictures


@dataclass(frozen=True)
class SvhnOptions:
    """How the numbers are read."""

    # Whether the order of the digits, left to right, is part of the answer.
    kind: Literal["multiset", "list"] = "multiset"
    # Most digits of a training picture; longer numbers are left out of training. Six by default: one picture has six.
    most: Annotated[int | None, Within(1)] = None
    # Whether test is a tenth of the training pictures if there is no official one. If false, these are trained on too.
    hold_out_test: bool = True


def read_svhn(path: Path, options: SvhnOptions) -> Table:
    """The numbers in ``path``, the folder that holds train/, test/ or both."""
    annotations: dict[str, Path] = {}
    for part in ("train", "test"):
        for file in (path / f"{part}.csv", path / part / "digitStruct.mat"):
            if file.is_file():
                annotations[part] = file
    if not annotations:
        wanted = "neither train/digitStruct.mat nor train.csv is here, nor either of test"
        raise DataError(f"{path}: {wanted}; name the folder that an archive of SVHN's format 1 was unpacked in")
    usable: list[Found] = []
    skipped: list[str] = []
    for part, file in annotations.items():
        official = file.suffix == ".mat"
        for number in read_digit_struct(file) if official else _reduced(file, skipped):
            where = f"{part}/{number.image}"
            try:
                image = rows.file_in(path / part, number.image, "picture")
                _check(number)
            except rows.UnusableRowError as error:
                skipped.append(error.at(where))
                continue
            share = hashed_share(f"svhn train {image.stem}")
            held_out = options.hold_out_test and "test" not in annotations and share < _TEST
            split = "test" if part == "test" else "val" if share < _VAL else "test" if held_out else "train"
            crop = _enlarged(number.boxes) if official else None
            usable.append((where, Row(image, number.digits, split, boxes=number.boxes, crop=crop)))
    return Table.of(
        f"svhn:{path}", usable, COLUMNS, skipped=skipped, several=True, kind=options.kind, most=options.most
    )


def _check(number: HouseNumber) -> None:
    _, digits, boxes = number
    if not digits or not set(digits) <= set("0123456789"):
        raise rows.UnusableRowError("no digits" if not digits else "unknown digit", " ".join(digits))
    if len(boxes) != len(digits):
        raise rows.UnusableRowError("boxes for other digits", f"{len(boxes)} boxes for {len(digits)} digits")
    for box in boxes:
        rows.box_in(box)  # has an area


def _enlarged(boxes: tuple[rows.Box, ...]) -> rows.Box:
    x0, y0 = min(box[0] for box in boxes), min(box[1] for box in boxes)
    x1, y1 = max(box[2] for box in boxes), max(box[3] for box in boxes)
    across, down = MARGIN * (x1 - x0), MARGIN * (y1 - y0)
    return x0 - across, y0 - down, x1 + across, y1 + down


def _reduced(path: Path, skipped: list[str]) -> Iterator[HouseNumber]:
    for line, cells in rows.csv_rows(path, ("image", "digits", "boxes_xyxy")):
        try:
            boxes = [rows.box_in(text) for text in rows.text_in(cells, "boxes_xyxy").split()]
            digits = tuple(rows.text_in(cells, "digits").split())
            yield HouseNumber(rows.text_in(cells, "image"), digits, tuple(box for box in boxes if box is not None))
        except rows.UnusableRowError as error:
            skipped.append(error.at(f"{path.name} line {line}"))


MULTISET_READERS: dict[str, Reader] = {
    **{name: Reader(partial(read_own, name), MultisetTableOptions) for name in OWN},
    "svhn": Reader(read_svhn, SvhnOptions),
}
