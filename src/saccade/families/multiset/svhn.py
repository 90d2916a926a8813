"""SVHN, full numbers: pictures of house numbers, the digits on each, and a box for every digit.

Netzer, Wang, Coates, Bissacco, Wu and Ng, "Reading Digits in Natural Images with Unsupervised Feature Learning"
(2011), in either of two layouts below one folder:

* the official format 1, as its archives unpack: ``train/digitStruct.mat`` (HDF5, read with the extra ``svhn``) beside
  ``train/1.png`` …, and the same in ``test/``. A picture is cut to the union of its digits' boxes, enlarged by 15 % of
  its width and height on each side, as far as the picture goes;
* a reduced copy that is cut already: ``train.csv`` (image, digits from left to right, one box x1,y1,x2,y2 for each)
  beside ``train/1.jpg`` …, and perhaps the same for test.

Splits: val is 5 % of the training pictures, by a hash of their numbers, hence the same in both layouts. Test is the
official one where it is there, and a trained model is scored on it without train/. Else it is another 10 % of the
training pictures, which a score must then say. Of the 33,402
training pictures that makes 28,463 train, 1,638 val and 3,301 test. With ``hold_out_test: false`` these 3,301 are
trained on too, whether official test pictures are there or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from saccade.data.tables.rows import Box, FilesFrom, UnusableRowError, box_in, csv_rows, text_in
from saccade.data.tables.splits import OTHER_SPLIT, hashed_share
from saccade.errors import DataError
from saccade.families.multiset.digit_struct import HouseNumber, read_digit_struct
from saccade.families.multiset.table import MultisetRow, MultisetTable, check_most, make_multiset_table

MARGIN = 0.15
"""How far a crop goes beyond the union of the boxes on each side, in widths and heights of that union."""

_VAL, _TEST = 0.05, 0.15  # upper ends of their shares of the training pictures
_DIGIT_STRUCT = "digitStruct.mat"


@dataclass(frozen=True)
class SvhnOptions:
    """How the numbers are read."""

    kind: Literal["multiset", "list"] = "multiset"
    """Whether the order of the digits, left to right, is part of the answer."""
    most: int | None = None
    """Digits of a training picture at most; longer numbers are then left out of training. Six if not given: one has."""

    hold_out_test: bool = True
    """Whether test is a tenth of the training pictures where there are no official test pictures. If false, these
    are trained on too, and there is no test split but the official one."""

    def __post_init__(self) -> None:
        check_most(self.most)


def read_svhn(path: Path, options: SvhnOptions) -> MultisetTable:
    """The numbers in ``path``, the folder that holds train/, test/ or both."""
    parts = [part for part in ("train", "test") if _has(path, part)]
    if not parts:
        packed = " (it is a file: unpack it)" if path.is_file() else ""
        raise DataError(
            f"{path}: neither train/{_DIGIT_STRUCT} nor train.csv is here, nor either of test{packed}; name the folder "
            "that train.tar.gz or test.tar.gz of SVHN's format 1 was unpacked in"
        )
    found: list[tuple[str, MultisetRow]] = []
    skipped: list[str] = []
    for part in parts:
        files, struct = FilesFrom(path / part), path / part / _DIGIT_STRUCT
        official = struct.is_file()
        for number in read_digit_struct(struct) if official else _reduced(path / f"{part}.csv", skipped):
            where = f"{part}/{number.image}"
            image = files.find(number.image)
            if image is None:
                skipped.append(f"no such picture: {where}")
                continue
            try:
                _check(number)
            except UnusableRowError as error:
                skipped.append(error.at(where))
                continue
            split = "test" if part == "test" else _split(image.stem, options.hold_out_test and "test" not in parts)
            crop = _enlarged(number.boxes) if official else None
            found.append((where, MultisetRow(image, number.digits, split, number.boxes, crop)))
    advice = _if_empty(parts, options)
    return make_multiset_table(f"svhn:{path}", found, skipped, kind=options.kind, most=options.most, if_empty=advice)


def _if_empty(parts: list[str], options: SvhnOptions) -> str:
    """What to do about a split without pictures: SVHN has no column that could name one."""
    if "train" not in parts:
        return "score test, or unpack train.tar.gz beside it"
    if "test" not in parts and not options.hold_out_test:
        return "with hold_out_test: false no test pictures are kept back: score val, or unpack test.tar.gz beside train"
    return OTHER_SPLIT


def _has(folder: Path, part: str) -> bool:
    return (folder / part / _DIGIT_STRUCT).is_file() or (folder / f"{part}.csv").is_file()


def _split(number: str, with_test: bool) -> str:
    share = hashed_share(f"svhn train {number}")
    if share < _VAL:
        return "val"
    return "test" if share < _TEST and with_test else "train"


def _check(number: HouseNumber) -> None:
    if not number.digits:
        raise UnusableRowError("no digits")
    if wrong := [digit for digit in number.digits if digit not in set("0123456789")]:
        raise UnusableRowError("unknown digit", f"'{wrong[0]}'")
    if len(number.boxes) != len(number.digits):
        raise UnusableRowError("boxes for other digits", f"{len(number.boxes)} boxes for {len(number.digits)} digits")
    for box in number.boxes:
        box_in(box)  # has an area


def _enlarged(boxes: tuple[Box, ...]) -> Box:
    x0, y0 = min(box[0] for box in boxes), min(box[1] for box in boxes)
    x1, y1 = max(box[2] for box in boxes), max(box[3] for box in boxes)
    across, down = MARGIN * (x1 - x0), MARGIN * (y1 - y0)
    return x0 - across, y0 - down, x1 + across, y1 + down


def _reduced(path: Path, skipped: list[str]) -> Iterator[HouseNumber]:
    """The numbers of a ``train.csv``."""
    for line, cells in csv_rows(path, ("image", "digits", "boxes_xyxy")):
        try:
            boxes = [box_in(text) for text in text_in(cells, "boxes_xyxy").split()]
            digits = tuple(text_in(cells, "digits").split())
            yield HouseNumber(text_in(cells, "image"), digits, tuple(box for box in boxes if box is not None))
        except UnusableRowError as error:
            skipped.append(error.at(f"{path.name} line {line}"))
