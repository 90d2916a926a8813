"""A table of one's own: CSV or JSON lines with ``image, query, label``, and evidence where there is some.

======== =============================================================================================================
column    holds
======== =============================================================================================================
image     path of the picture, from the table's folder
query     what is asked
label     the answer; or ``labels``, several: ``red; shiny`` or a JSON list
split     optional: train, val or test
group     optional: pictures that belong together (a patient, a video), which a split must not tear apart
box       optional: ``x1 y1 x2 y2`` or a JSON list, in pixels of the picture
point     optional: ``x y`` or a JSON list
mask      optional: path of a picture of the same size, black where there is no evidence
======== =============================================================================================================

Other columns are ignored. Without ``split``, 70 / 15 / 15 % of the groups (of the pictures, where no group is named)
are train / val / test by a hash of the name: a picture is in one split only, and stays there when the table grows.
"""

from __future__ import annotations

import csv
import json
import math
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TextIO

from saccade.data.question_table import SPLITS, Question, QuestionTable, hashed_share, make_table
from saccade.errors import DataError, nearest

_NEEDED = ("image", "query")
_SHARES = {"train": 0.70, "val": 0.85, "test": 1.0}  # upper ends

Cells = Mapping[str, Any]
"""One row by column: text from a CSV, any JSON value from JSON lines."""


@dataclass(frozen=True)
class TableOptions:
    """How a table is read."""

    strict: bool = False
    """Refuse a table with rows that cannot be used, instead of leaving them out."""


class _UnusableRowError(Exception):
    """Why one row cannot be used, and the detail that shows it."""

    def __init__(self, reason: str, detail: str = "") -> None:
        self.reason, self.detail = reason, detail


def read_csv(path: Path, options: TableOptions) -> QuestionTable:
    """The questions of a CSV file with a header, commas between the cells, in UTF-8."""
    with _opened(path) as file:
        try:
            reader = csv.DictReader(file, strict=True)
            reader.fieldnames = _checked_header(path, reader.fieldnames or ())
            rows = [(reader.line_num, cells) for cells in reader]
        except csv.Error as error:
            raise DataError(
                f"{path}: line {reader.reader.line_num} is not CSV ({error}); export the table again"
            ) from error
    return _table("csv", path, rows, [], options)


def read_jsonl(path: Path, options: TableOptions) -> QuestionTable:
    """The questions of a file with one JSON object in each line, in UTF-8."""
    rows: list[tuple[int, Cells]] = []
    skipped = []
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                cells = json.loads(line)
            except (ValueError, RecursionError):  # numbers of thousands of digits are a plain ValueError
                cells = None
            if isinstance(cells, dict):
                rows.append((number, cells))
            else:
                skipped.append(f"not a JSON object: line {number}")
    return _table("jsonl", path, rows, skipped, options)


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


def _checked_header(path: Path, header: Sequence[str]) -> list[str]:
    columns = [name.strip().lower() for name in header]
    missing = [name for name in _NEEDED if name not in columns]
    if "label" not in columns and "labels" not in columns:
        missing.append("label")
    if len(columns) == 1 and (other := re.search("[;\t]", columns[0])):
        raise DataError(f"{path}: cells are parted by {other.group()!r}, not by commas; export it with commas")
    if missing:
        hint = nearest(missing[0], columns) if columns else "the file is empty"
        raise DataError(f"{path}: no column {', '.join(missing)}; {hint}; the first line must name the columns")
    if twice := {name for name in columns if name and columns.count(name) > 1}:
        raise DataError(f"{path}: more than one column {', '.join(sorted(twice))}; rename or remove one")
    return columns


def _table(
    reader: str, path: Path, rows: Sequence[tuple[int, Cells]], skipped: list[str], options: TableOptions
) -> QuestionTable:
    has_split = any("split" in cells for _, cells in rows)
    multi_label = any("labels" in cells for _, cells in rows)
    files = _Files(path.parent)
    first_line: dict[Question, int] = {}
    for line, cells in rows:
        try:
            question = _question(cells, files, has_split)
        except _UnusableRowError as error:
            skipped.append(f"{error.reason}: line {line}" + (f", {error.detail}" if error.detail else ""))
            continue
        if first_line.setdefault(question, line) != line:
            skipped.append(f"duplicate: line {line} repeats line {first_line[question]}")
    found = [(f"line {line}", question) for question, line in first_line.items()]
    return make_table(f"{reader}:{path}", found, skipped, multi_label=multi_label, strict=options.strict)


class _Files:
    """Files named from a folder; whether each is there is asked once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.find = lru_cache(maxsize=None)(self._find)

    def _find(self, name: str) -> Path | None:
        path = os.path.join(self.folder, name)
        return Path(path) if os.path.isfile(path) else None


def _question(cells: Cells, files: _Files, has_split: bool) -> Question:
    if None in cells:  # where csv puts what it has no column for
        raise _UnusableRowError("more cells than columns", "quote cells that hold commas")
    name = _text(cells, "image")
    image = files.find(name)
    if image is None:
        raise _UnusableRowError("no such picture", name)
    group = str(cells.get("group") or "").strip() or posixpath.normpath(name)
    split = _text(cells, "split") if has_split else _split_of(group)
    if split not in SPLITS:
        raise _UnusableRowError("unknown split", f"'{split}' is none of {', '.join(SPLITS)}")
    return Question(
        image=image,
        query=_text(cells, "query"),
        labels=_labels(cells),
        split=split,
        box=_box(cells.get("box")),
        point=_numbers(cells.get("point"), "point", 2),  # type: ignore[arg-type]
        mask=_mask(cells.get("mask"), files),
        group=group,
    )


def _split_of(group: str) -> str:
    share = hashed_share(group)
    return next(split for split, end in _SHARES.items() if share < end)


def _text(cells: Cells, column: str) -> str:
    value = cells.get(column)
    if value is None or isinstance(value, (list, dict)):
        raise _UnusableRowError(f"no {column}", "" if value is None else f"found {json.dumps(value)[:40]}")
    text = str(value).strip()
    if not text:
        raise _UnusableRowError(f"empty {column}")
    return text


def _labels(cells: Cells) -> tuple[str, ...]:
    several = cells.get("labels")
    if several is None or several == "":
        return (_text(cells, "label" if "label" in cells else "labels"),)
    if isinstance(several, str) and several.lstrip().startswith("["):
        try:
            several = json.loads(several)
        except json.JSONDecodeError as error:
            raise _UnusableRowError("unreadable labels", several[:40]) from error
    parts = several if isinstance(several, list) else str(several).split(";")
    labels = dict.fromkeys(text for part in parts if (text := str(part).strip()))  # in order, each once
    if not labels:
        raise _UnusableRowError("empty label")
    return tuple(labels)


def _box(value: object) -> tuple[float, float, float, float] | None:
    numbers = _numbers(value, "box", 4)
    if numbers is None:
        return None
    x1, y1, x2, y2 = numbers
    if x2 <= x1 or y2 <= y1:
        raise _UnusableRowError("unreadable box", f"{value} has no area; corners go x1 y1 x2 y2")
    return x1, y1, x2, y2


def _numbers(value: object, what: str, count: int) -> tuple[float, ...] | None:
    if value is None or value == "":
        return None
    parts = re.split(r"[\s,;]+", value.strip(" []()")) if isinstance(value, str) else value
    try:
        numbers = tuple(float(part) for part in parts)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != count or not all(map(math.isfinite, numbers)):
        raise _UnusableRowError(f"unreadable {what}", f"'{value}' is not {count} numbers")
    return numbers


def _mask(value: object, files: _Files) -> Path | None:
    if value is None or value == "":
        return None
    found = files.find(str(value).strip())
    if found is None:
        raise _UnusableRowError("no such mask", str(value))
    return found
