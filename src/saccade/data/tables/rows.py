"""Rows of a CSV file or of JSON lines, and what their cells hold: text, labels, numbers, boxes, splits, files.

What is wrong with a file is a DataError. What is wrong with one row is an :class:`UnusableRowError`: the table that
reads it leaves the row out and names it by its line.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import posixpath
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any, TextIO

from saccade.data.examples import SPLITS, split_of
from saccade.errors import DataError
from saccade.files import check_text, read_regular

Cells = Mapping[str, Any]  # One row by column: text from a CSV, any JSON value from JSON lines
Rows = Iterator[tuple[int, Cells]]  # Rows with the number of their line; of a long table only one is in memory
_FARTHEST = 1e9  # pixels from the corner of a picture
_SHOWN = 40  # characters of a cell in a message
Box = tuple[float, float, float, float]  # xyxy


class UnusableRowError(Exception):
    """Why one row cannot be used, and the detail that shows it."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail

    def at(self, where: str) -> str:
        """An entry for the list of what was left out: ``REASON: WHERE, DETAIL``."""
        return f"{self.reason}: {where}" + (f", {self.detail}" if self.detail else "")


def csv_rows(path: Path, needed: Sequence[str]) -> Rows:
    """The rows of a CSV file with a header, in UTF-8; commas, semicolons or tabs between the cells, as the header has.

    ``needed`` columns must be there; ``label|labels`` asks for either. ``file_name`` is ``image``.
    """
    with _opened(path) as file:
        header = file.readline()
        bare = re.sub(r'"[^"]*"', "", header)
        separator = max(",;\t", key=bare.count)  # of equal ones the first
        reader = csv.DictReader(itertools.chain([header], file), strict=True, delimiter=separator)
        try:
            reader.fieldnames = _checked_header(path, reader.fieldnames or (), needed)
            for cells in reader:
                yield reader.line_num, cells
        except csv.Error as error:
            line = reader.reader.line_num
            raise DataError(f"{path}: line {line} is not CSV ({error}); export the table again") from error


def jsonl_rows(path: Path, skipped: list[str]) -> Rows:
    """The rows of a file with one JSON object in each line, in UTF-8; lines that are none are added to ``skipped``."""
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                cells = json.loads(line)
            except (ValueError, RecursionError):  # numbers of thousands of digits are a plain ValueError
                cells = None
            if not isinstance(cells, dict):
                skipped.append(f"not a JSON object: line {number}")
                continue
            if "image" not in cells and "file_name" in cells:
                cells["image"] = cells.pop("file_name")
            yield number, cells


def json_in(path: Path) -> Any:
    """The JSON value in a file of at most two gigabytes."""
    try:
        return json.loads(read_regular(path, 1 << 31))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or f"not JSON, or cut short: {error}"
        raise DataError(f"{path}: cannot be read ({why}); download it again, and unpack it there") from error


@contextmanager
def layout_of(path: Path, what: str, advice: str = "download it again") -> Iterator[None]:
    """Whatever reading an unexpected layout raises is a DataError: ``path`` is not ``what``."""
    try:
        yield
    except (OSError, LookupError, ValueError, TypeError, AttributeError, OverflowError, RuntimeError) as error:
        raise DataError(f"{path}: not {what} ({type(error).__name__}: {error}); {advice}") from error


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """A text file in UTF-8, with or without a byte order mark; whatever prevents that is a DataError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        wrong = error.object[error.start]
        raise DataError(f"{path}: not UTF-8 (byte 0x{wrong:02x}); save or export it as UTF-8") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error


def _checked_header(path: Path, header: Sequence[str], needed: Sequence[str]) -> list[str]:
    columns = [name.strip().lower() for name in header]
    if "image" not in columns:
        columns = ["image" if name == "file_name" else name for name in columns]
    missing = [names.split("|")[0] for names in needed if not {*names.split("|")} & {*columns}]
    if missing:
        listed = shorten(", ".join(columns), 200, placeholder=", …")
        there = f"found {listed}" if columns else "the file is empty"
        raise DataError(f"{path}: no column {', '.join(missing)}; {there}; the first line must name the columns")
    if twice := sorted(name for name, times in Counter(columns).items() if name and times > 1):
        raise DataError(f"{path}: more than one column {twice[0][:_SHOWN]}; rename or remove one")
    return columns


def file_in(folder: Path, name: str, what: str) -> Path:
    """The file of that name in a folder; one that is not there is called ``what``."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        searched = "" if os.path.isabs(name) else f" in {folder.absolute()}"
        raise UnusableRowError(f"no such {what}{searched}", name[:200])
    return Path(path)


def text_in(cells: Cells, column: str) -> str:
    """The text of a cell that must not be empty."""
    value = cells.get(column)
    if value is None or isinstance(value, (list, dict)):
        raise UnusableRowError(f"no {column}", "" if value is None else f"found {json.dumps(value)[:_SHOWN]}")
    text = str(value).strip()
    if not text:
        raise UnusableRowError(f"empty {column}")
    return _writable(text, column)


def _writable(text: str, column: str) -> str:
    """``text``, if a file can hold it; names of files may have bytes that are not UTF-8."""
    try:
        check_text(text)
        if column not in ("image", "mask"):
            text.encode()
    except ValueError as error:
        raise UnusableRowError(f"unreadable {column}", ascii(text[:_SHOWN])) from error
    return text


def group_and_split(cells: Cells, image: str, has_split: bool) -> tuple[str, str]:
    """The group of a row, by default its picture, and its split: from the table, else by a hash of the group."""
    named = cells.get("group")  # 0 is a name too
    group = posixpath.normpath(image) if is_blank(named) else _writable(str(named).strip(), "group")
    split = text_in(cells, "split") if has_split else split_of(group)
    if split not in SPLITS:
        raise UnusableRowError("unknown split", f"'{split}' is none of {', '.join(SPLITS)}")
    return group, split


def is_blank(value: object) -> bool:
    """Whether an optional cell says nothing: it is not there, or holds spaces at most."""
    return value is None or (isinstance(value, str) and not value.strip())


def parts_of(value: object, what: str) -> list[Any]:
    """The parts of a cell that holds several: a JSON list as it is, else text parted by semicolons."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise UnusableRowError(f"unreadable {what}", str(value)[:_SHOWN]) from error
    return value if isinstance(value, list) else str(value).split(";")


def words_of(value: object, what: str) -> list[str]:
    """The words of a cell that holds several, without empty ones; what is no word makes the row unusable."""
    parts = [value] if isinstance(value, dict) else parts_of(value, what)
    if any(part is None or isinstance(part, (bool, list, dict)) for part in parts):
        raise UnusableRowError(f"unreadable {what}", str(value)[:_SHOWN])
    return [_writable(text, what) for part in parts if (text := str(part).strip())]


def box_in(value: object) -> Box | None:
    """A box with an area, or None for an empty cell."""
    numbers = numbers_in(value, "box", 4)
    if numbers is None:
        return None
    x1, y1, x2, y2 = numbers
    if x2 <= x1 or y2 <= y1:
        raise UnusableRowError("unreadable box", f"{str(value)[:_SHOWN]} has no area; corners go x1 y1 x2 y2")
    return x1, y1, x2, y2


def numbers_in(value: object, what: str, count: int) -> tuple[float, ...] | None:
    """``count`` numbers, as a list or as text parted by spaces, commas or semicolons; None for an empty cell."""
    if is_blank(value):
        return None
    parts = re.split(r"[\s,;]+", value.strip(" []()")) if isinstance(value, str) else value
    try:
        # what is no list is a TypeError, which is caught
        numbers = tuple(float(part) for part in parts)  # type: ignore[attr-defined]
    except (TypeError, ValueError, OverflowError):  # a whole number of 400 digits is beyond any float
        numbers = ()
    if len(numbers) != count or not all(abs(number) <= _FARTHEST for number in numbers):
        raise UnusableRowError(f"unreadable {what}", f"'{str(value)[:_SHOWN]}' is not {count} numbers")
    return numbers
