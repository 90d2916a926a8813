"""A table of pictures and the labels of what is on each: CSV or JSON lines with ``image, labels``.

======== =============================================================================================================
column    holds
======== =============================================================================================================
image     path of the picture, from the table's folder; each picture in one row
labels    ``3; 3; 7`` or a JSON list, in any order; an empty cell is the empty multiset
boxes optional: one ``x1 y1 x2 y2`` for each label, in its order, separated by semicolons, or a JSON list of lists, in
          pixels of the picture; an empty one where a label has none
split     optional: train, val or test
group     optional: pictures that belong together; all of them go into one split
======== =============================================================================================================

Other columns are ignored; splits, and what is refused of them, are those of ``question_rows.py``. What ``labels`` means
is the option ``kind``: a ``multiset`` (labels may repeat, their order means nothing), a ``set`` (a label that repeats
is an error) or a ``list`` (the order is part of the answer).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from saccade.data.tables.class_folders import read_class_folders
from saccade.data.tables.doubts import (
    SplitMember,
    check_splits,
    check_usable,
    contradictions,
    in_lines,
    pluralise,
    repeated_keys,
    spellings,
)
from saccade.data.tables.labelled import LabelTableOptions
from saccade.data.tables.rows import (
    Box,
    Cells,
    FilesFrom,
    Rows,
    UnusableRowError,
    box_in,
    check_width,
    csv_rows,
    group_and_split,
    is_blank,
    jsonl_rows,
    parts_of,
    text_in,
)
from saccade.data.tables.splits import OTHER_SPLIT, advice_on_column, split_sizes
from saccade.errors import ConfigError, DataError

Kind = Literal["multiset", "set", "list"]


@dataclass(frozen=True)
class MultisetRow:
    """One picture and what is on it; places are in pixels of the original picture, upright as a viewer shows it."""

    image: Path
    labels: tuple[str, ...]
    """None, one or several; they may repeat."""
    split: str
    """train, val or test."""
    boxes: tuple[Box | None, ...] = ()
    """xyxy, one for each label; or none at all."""
    crop: Box | None = None
    """The part of the picture to look at, all of it if not given."""


@dataclass(frozen=True)
class MultisetTable:
    """All pictures of a data set and the words of their labels."""

    name: str
    """READER:PATH."""
    rows: tuple[MultisetRow, ...]
    classes: tuple[str, ...]
    """What can be on a picture; its place here is a label's number."""
    most: int
    """Labels of a training picture at most; pictures with more are not for training."""
    kind: Kind = "multiset"
    skipped: tuple[str, ...] = ()
    """Rows left out, each with its reason."""
    doubts: tuple[str, ...] = ()
    """What its reader found doubtful, in words."""
    if_empty: str = OTHER_SPLIT
    """What to do about a split that has no rows, in words."""

    def count(self, split: str) -> int:
        """Pictures in ``split``."""
        return sum(row.split == split for row in self.rows)

    def summary(self) -> str:
        """What the table holds, in one line; below it, what looks wrong with it."""
        rows = f"{pluralise(len(self.rows), 'picture')} ({split_sizes(self.count)})"
        classes = pluralise(len(self.classes), "class", "classes")
        most = f"at most {pluralise(self.most, 'label')} on a training picture"
        return in_lines(f"{self.name}: {rows}, {classes}, {most}", (spellings(self.classes, "labels"), *self.doubts))

    def split_of(self) -> dict[Path, str]:
        """The split of every picture."""
        return {row.image: row.split for row in self.rows}

    def some(self, split: str, pictures: int) -> MultisetTable:
        """The table with ``split`` cut to its first ``pictures`` pictures."""
        first = {row.image for row in [row for row in self.rows if row.split == split][:pictures]}
        return replace(self, rows=tuple(row for row in self.rows if row.split != split or row.image in first))


@dataclass(frozen=True)
class MultisetTableOptions:
    """How a table is read."""

    kind: Kind = "multiset"
    """What ``labels`` means, see the module."""
    most: int | None = None
    """Labels of a training picture at most; those with more are then left out of training. All of them if not given."""
    strict: bool = False
    """Refuse a table with rows that cannot be used, instead of leaving them out."""

    def __post_init__(self) -> None:
        check_most(self.most)


def read_multiset_csv(path: Path, options: MultisetTableOptions) -> MultisetTable:
    """The pictures of a CSV file with a header, in UTF-8."""
    return _table("csv", path, csv_rows(path, ("image", "labels")), [], [], options)


def read_multiset_jsonl(path: Path, options: MultisetTableOptions) -> MultisetTable:
    """The pictures of a file with one JSON object in each line, in UTF-8."""
    repeated: list[str] = []
    return _table("jsonl", path, *jsonl_rows(path, repeated), repeated, options)


def read_multiset_folders(path: Path, options: MultisetTableOptions) -> MultisetTable:
    """The pictures of folders by class, each with the one label of its folder."""
    labelled = read_class_folders(path, LabelTableOptions(strict=options.strict))
    found = [(row.image.name, MultisetRow(row.image, (row.label,), row.split)) for row in labelled.as_found]
    before = [entry for entry in labelled.skipped if not entry.startswith("label never")]  # which is said below
    return make_multiset_table(
        labelled.name, found, before, kind=options.kind, most=options.most, strict=options.strict
    )


def make_multiset_table(
    name: str,
    found: Sequence[tuple[str, MultisetRow]],
    skipped: Iterable[str],
    *,
    kind: Kind = "multiset",
    most: int | None = None,
    strict: bool = False,
    doubts: Iterable[str] = (),
    if_empty: str = OTHER_SPLIT,
) -> MultisetTable:
    """A table whose words are those of its training rows; rows with other words are left out.

    A table without training rows, made to score a model that is trained already, has the words of all its rows.

    Args:
        name: READER:PATH.
        found: where each row was found (a line, a file), and the row.
        skipped: what was left out before.
        kind: what labels mean.
        most: labels of a training picture at most; as many as there are if not given.
        strict: refuse a table that has rows to leave out.
        doubts: what looks wrong although it can be used, in words.
        if_empty: what to do about a split that has no rows, in words.

    Raises:
        DataError: no row can be used, none has a label, or ``strict`` and some cannot be used.
    """
    train = [row for _, row in found if row.split == "train"] or [row for _, row in found]
    classes = tuple(sorted({label for row in train for label in row.labels}))
    rows, unseen = with_known_labels(found, classes, "never seen in train")
    left_out = (*skipped, *unseen)
    check_usable(name, rows, left_out, strict=strict)
    if not classes:
        raise DataError(f"{name}: none of its {len(train):,} training pictures has a label; there is nothing to learn")
    longest = max(len(row.labels) for row in train)
    return MultisetTable(
        name, tuple(rows), classes, min(most or longest, longest), kind, left_out, tuple(doubts), if_empty
    )


def check_most(most: int | None) -> None:
    """Refuse a number of labels that no picture can have."""
    if most is not None and most < 1:
        raise ConfigError(f"most: a picture has one label or more to be read, found {most}")


def with_known_labels(
    found: Iterable[tuple[str, MultisetRow]], classes: Iterable[str], why: str
) -> tuple[list[MultisetRow], list[str]]:
    """The rows all of whose labels are among ``classes``, and what was left out because of ``why``.

    A picture with one unknown label goes altogether: without it the rest would be a wrong answer.
    """
    known = set(classes)
    rows: list[MultisetRow] = []
    skipped: list[str] = []
    for where, row in found:
        unknown = [label for label in row.labels if label not in known]
        if unknown:
            skipped.append(f"label {why}: {where}, '{unknown[0]}'")
        else:
            rows.append(row)
    return rows, skipped


def _table(
    reader: str, path: Path, rows: Rows, skipped: list[str], repeated: list[str], options: MultisetTableOptions
) -> MultisetTable:
    has_split = any("split" in cells for _, cells in rows)
    files = FilesFrom(path.parent)
    line_of: dict[Path, int] = {}
    found: list[tuple[str, MultisetRow]] = []
    placed: list[SplitMember] = []
    said: list[tuple[Path, str, tuple[str, ...]]] = []
    for line, cells in rows:
        try:
            row, group = _row(cells, files, has_split)
        except UnusableRowError as error:
            skipped.append(error.at(f"line {line}"))
            continue
        placed.append(SplitMember(row.image, group, row.split))
        said.append((row.image, "", row.labels))
        if line_of.setdefault(row.image, line) != line:
            skipped.append(f"picture named twice: line {line} repeats line {line_of[row.image]}")
        else:
            found.append((f"line {line}", row))
    name = f"{reader}:{path}"
    check_splits(name, path.parent, placed)
    if options.kind == "set":
        _refuse_repeats(path, found)
    return make_multiset_table(
        name,
        found,
        skipped,
        kind=options.kind,
        most=options.most,
        strict=options.strict,
        doubts=(contradictions(said, "picture"), repeated_keys(repeated)),
        if_empty=advice_on_column(has_split),
    )


def _row(cells: Cells, files: FilesFrom, has_split: bool) -> tuple[MultisetRow, str]:
    """A row and the group of its picture."""
    check_width(cells)
    name = text_in(cells, "image")
    image = files.picture(name)
    group, split = group_and_split(cells, name, has_split)
    labels = _labels(cells)
    return MultisetRow(image, labels, split, _boxes(cells.get("boxes"), len(labels))), group


def _labels(cells: Cells) -> tuple[str, ...]:
    value = cells.get("labels")
    if value is None:  # an empty cell is "": here there is no cell
        raise UnusableRowError("no labels", "an empty multiset is an empty cell or []")
    parts = [value] if isinstance(value, dict) else parts_of(value, "labels")
    if any(part is None or isinstance(part, (list, dict, bool)) for part in parts):
        raise UnusableRowError("unreadable labels", str(value)[:40])
    return tuple(text for part in parts if (text := str(part).strip()))


def _boxes(value: object, labels: int) -> tuple[Box | None, ...]:
    if is_blank(value) or value == []:
        return ()
    boxes = tuple(box_in(part.strip() if isinstance(part, str) else part) for part in parts_of(value, "boxes"))
    if len(boxes) != labels:
        raise UnusableRowError("boxes for other labels", f"{len(boxes)} boxes for {labels} labels")
    return boxes


def _refuse_repeats(path: Path, found: Sequence[tuple[str, MultisetRow]]) -> None:
    """A set in which a label repeats was meant to be something else: that is for the user to say."""
    repeats = [where for where, row in found if len(set(row.labels)) < len(row.labels)]
    if repeats:
        named = ", ".join(repeats[:3]) + (", …" if len(repeats) > 3 else "")
        raise DataError(
            f"{path}: kind 'set', but a label repeats in {len(repeats):,} row(s): {named}; "
            "remove the repeats, or set kind: multiset"
        )


def commonest_multiset(table: MultisetTable, classes: Sequence[str]) -> tuple[int, ...] | None:
    """The most frequent multiset of the training pictures, as numbers of ``classes``: the baseline that never looks.

    It may be empty. Of equally frequent ones the first in the table is taken. None if no training picture has only
    labels of ``classes``.
    """
    number_of = {label: number for number, label in enumerate(classes)}
    held: Counter[tuple[int, ...]] = Counter()
    for row in table.rows:
        if row.split == "train" and all(label in number_of for label in row.labels):
            numbers = [number_of[label] for label in row.labels]
            held[tuple(numbers if table.kind == "list" else sorted(numbers))] += 1
    return held.most_common(1)[0][0] if held else None
