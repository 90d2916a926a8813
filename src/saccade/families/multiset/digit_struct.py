"""``digitStruct.mat``, the annotations of SVHN's full numbers: read once with h5py, then remembered.

It is a MATLAB 7.3 file, hence HDF5: ``digitStruct/name`` and ``digitStruct/bbox`` hold one reference for each picture,
to its name as character codes and to a group of five columns. A column of several numbers is references again, one of
a single number is that number. Following them all takes a minute or more for the 33,402 training pictures, so what was
read is kept in the cache folder as JSON, under the digest of the file.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.atomic import write_text
from saccade.cache import cache_home, file_digest
from saccade.data.tables.rows import Box
from saccade.errors import DataError, MissingExtraError, OutputError

_COLUMNS = ("label", "left", "top", "width", "height")


@dataclass(frozen=True)
class HouseNumber:
    """A picture as the annotations describe it."""

    image: str
    """Name of its file."""
    digits: tuple[str, ...]
    """From left to right."""
    boxes: tuple[Box, ...]
    """One for each digit."""


def read_digit_struct(path: Path) -> list[HouseNumber]:
    """The pictures of a ``digitStruct.mat``, in its order.

    Raises:
        MissingExtraError: h5py is not installed, and the file was never read before.
        DataError: the file is damaged or something else.
    """
    try:
        memory = cache_home() / "svhn" / f"{file_digest(path)}.json"
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    try:
        remembered = json.loads(memory.read_text(encoding="utf-8"))
        return [HouseNumber(name, tuple(digits), tuple(map(tuple, boxes))) for name, digits, boxes in remembered]
    except (OSError, ValueError, TypeError):
        numbers = _follow(path)
    with suppress(OutputError):  # a cache that cannot be written costs time, not the result
        write_text(memory, json.dumps([(number.image, number.digits, number.boxes) for number in numbers]))
    return numbers


def _follow(path: Path) -> list[HouseNumber]:
    """Follow every reference of the file."""
    try:
        import h5py
    except ImportError as error:
        raise MissingExtraError("reading SVHN's digitStruct.mat", "svhn") from error

    def numbers_of(file: Any, column: Any) -> list[float]:
        values = column[:].ravel()
        return [float(file[value][0, 0]) if isinstance(value, h5py.Reference) else float(value) for value in values]

    numbers = []
    try:
        with h5py.File(path, "r") as file:
            names, groups = (file[f"digitStruct/{part}"][:].ravel() for part in ("name", "bbox"))
            for name, group in zip(names, groups, strict=True):
                columns = [numbers_of(file, file[group][column]) for column in _COLUMNS]
                numbers.append(
                    HouseNumber(
                        image="".join(map(chr, file[name][:].ravel())),
                        digits=tuple("0" if row[0] == 10 else f"{row[0]:g}" for row in zip(*columns, strict=True)),
                        boxes=tuple((x, y, x + w, y + h) for _, x, y, w, h in zip(*columns)),
                    )
                )
    except (OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise DataError(f"{path}: not a digitStruct.mat of SVHN ({error}); unpack the archive again") from error
    return numbers
