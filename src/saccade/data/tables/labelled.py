"""Pictures with one label each: a table of one's own, as every family that takes labels can read it.

======== =============================================================================================================
column    holds
======== =============================================================================================================
image     path of the picture, from the table's folder; each picture in one row
label     what it shows, one word or several
split     optional: train, val or test
group     optional: pictures that belong together (a patient, a video); all of them go into one split
box       optional: ``x1 y1 x2 y2`` or a JSON list, in pixels of the picture: where the label can be seen
mask      optional: path of a picture of the same size, black where there is no evidence
======== =============================================================================================================

Other columns are ignored. Without ``split``, 70 / 15 / 15 % of the groups are train / val / test by a hash of the name.
Folders of pictures (``class/xxx.jpg``) make the same table: :mod:`saccade.data.tables.class_folders`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from saccade.data.tables.doubts import (
    SplitMember,
    check_splits,
    check_usable,
    contradictions,
    first_few,
    in_lines,
    pluralise,
    repeated_keys,
    spellings,
)
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
    text_in,
)
from saccade.data.tables.splits import OTHER_SPLIT, advice_on_column, split_sizes

_NAMED = 5  # classes that a doubt names


@dataclass(frozen=True)
class LabelRow:
    """One picture and what it shows; places are in pixels of the original picture, upright as a viewer shows it."""

    image: Path
    label: str
    split: str
    """train, val or test."""
    box: Box | None = None
    """xyxy."""
    mask: Path | None = None
    """A picture of the same size; what is not black is evidence. It comes before the box."""
    group: str = ""
    """What must not be torn apart by a split: a patient, a video; empty: the picture alone."""
    query: str = ""
    """What is asked about the picture; empty: nothing, the label says what it shows."""
    point: tuple[float, float] | None = None
    """(x, y) of the part that is asked about; it comes before the box, which is then that of the object."""
    mask_grey: int | None = None
    """Where a mask has several objects: the grey value of the one that is evidence."""


@dataclass(frozen=True)
class LabelTable:
    """All pictures of a data set and the words of their labels."""

    name: str
    """READER:PATH."""
    rows: tuple[LabelRow, ...]
    classes: tuple[str, ...]
    """What a picture can show; its place here is a label's number."""
    skipped: tuple[str, ...] = ()
    """Rows left out, each with its reason."""
    as_found: tuple[LabelRow, ...] = ()
    """Every row that could be read, those with labels that are never seen in train too: a model may know them."""
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
        doubts = (spellings(self.classes, "labels"), self._lone(), *self._absent(), *self.doubts)
        return in_lines(f"{self.name}: {rows}, {classes}", doubts)

    def _lone(self) -> str:
        """Classes with one training picture, in words: they can be learned by heart, not by what they show."""
        held = Counter(row.label for row in self.rows if row.split == "train")
        lone = sorted(label for label, pictures in held.items() if pictures == 1)
        return (
            f"{pluralise(len(lone), 'class', 'classes')} with one training picture ({first_few(lone, _NAMED)})"
            * bool(lone)
        )

    def _absent(self) -> Iterator[str]:
        """Classes that val or test lacks, in words: how well they are known is not scored there."""
        for split in ("val", "test"):
            held = {row.label for row in self.rows if row.split == split}
            absent = [label for label in self.classes if label not in held] if held else []
            if absent:
                classes = pluralise(len(absent), "class", "classes")
                yield f"{classes} without a {split} picture ({first_few(absent, _NAMED)})"

    def split_of(self) -> dict[Path, str]:
        """The split of every picture."""
        return {row.image: row.split for row in self.as_found or self.rows}

    def some(self, split: str, pictures: int) -> LabelTable:
        """The table with ``split`` cut to its first ``pictures`` pictures."""

        def kept(rows: tuple[LabelRow, ...]) -> tuple[LabelRow, ...]:
            first = {row.image for row in [row for row in rows if row.split == split][:pictures]}
            return tuple(row for row in rows if row.split != split or row.image in first)

        return replace(self, rows=kept(self.rows), as_found=kept(self.as_found))


@dataclass(frozen=True)
class LabelTableOptions:
    """How a table, or folders, are read."""

    strict: bool = False
    """Refuse a table with rows that cannot be used, instead of leaving them out."""


def read_label_csv(path: Path, options: LabelTableOptions) -> LabelTable:
    """The pictures of a CSV file with a header, in UTF-8."""
    return label_table("csv", path, csv_rows(path, ("image", "label")), [], [], options)


def read_label_jsonl(path: Path, options: LabelTableOptions) -> LabelTable:
    """The pictures of a file with one JSON object in each line, in UTF-8."""
    repeated: list[str] = []
    return label_table("jsonl", path, *jsonl_rows(path, repeated), repeated, options)


def make_label_table(
    name: str,
    found: Sequence[tuple[str, LabelRow]],
    skipped: Iterable[str],
    *,
    strict: bool = False,
    doubts: Iterable[str] = (),
    if_empty: str = OTHER_SPLIT,
) -> LabelTable:
    """A table whose labels are those of its training rows; rows with other labels are left out.

    A table without training rows, made to score a model that is trained already, has the labels of all its rows.

    Args:
        name: READER:PATH.
        found: where each row was found (a line, a file), and the row.
        skipped: what was left out before.
        strict: refuse a table that has rows to leave out.
        doubts: what looks wrong although it can be used, in words.
        if_empty: what to do about a split that has no rows, in words.

    Raises:
        DataError: no row can be used, or ``strict`` and some cannot be used.
    """
    train = [row for _, row in found if row.split == "train"] or [row for _, row in found]
    classes = tuple(sorted({row.label for row in train}))
    rows, unseen = with_known_label(found, classes, "never seen in train")
    left_out = (*skipped, *unseen)
    check_usable(name, rows, left_out, strict=strict, thing="picture")
    as_found = tuple(row for _, row in found)
    return LabelTable(name, tuple(rows), classes, left_out, as_found, tuple(doubts), if_empty)


def with_known_label(
    found: Iterable[tuple[str, LabelRow]], classes: Iterable[str], why: str
) -> tuple[list[LabelRow], list[str]]:
    """The rows whose label is among ``classes``, and what was left out because of ``why``."""
    known = set(classes)
    rows: list[LabelRow] = []
    skipped: list[str] = []
    for where, row in found:
        if row.label in known:
            rows.append(row)
        else:
            skipped.append(f"label {why}: {where}, '{row.label}'")
    return rows, skipped


def label_table(
    reader: str,
    path: Path,
    rows: Rows,
    skipped: list[str],
    repeated: list[str],
    options: LabelTableOptions,
    *,
    unit: str = "line",
    base: Path | None = None,
    if_empty: str | None = None,
) -> LabelTable:
    """The table of numbered rows.

    Args:
        reader: its name.
        path: the file or folder that was read.
        rows: cells by column, with the number of each row.
        skipped: what was left out before.
        repeated: rows that name a column twice.
        options: see the class.
        unit: what the numbers count, as messages call it.
        base: the folder that pictures are named from; that of ``path`` if not given.
        if_empty: what to do about a split that has no rows, where no column can name it.
    """
    folder = path.parent if base is None else base
    has_split = any("split" in cells for _, cells in rows)
    files = FilesFrom(folder)
    line_of: dict[Path, int] = {}
    found: list[tuple[str, LabelRow]] = []
    placed: list[SplitMember] = []
    said: list[tuple[Path, str, tuple[str, ...]]] = []
    for line, cells in rows:
        try:
            row, group = _row(cells, files, has_split)
        except UnusableRowError as error:
            skipped.append(error.at(f"{unit} {line}"))
            continue
        placed.append(SplitMember(row.image, group, row.split))
        said.append((row.image, "", (row.label,)))
        if line_of.setdefault(row.image, line) != line:
            skipped.append(f"picture named twice: {unit} {line} repeats {unit} {line_of[row.image]}")
        else:
            found.append((f"{unit} {line}", row))
    name = f"{reader}:{path}"
    check_splits(name, folder, placed)
    doubts = (contradictions(said, "picture"), repeated_keys(repeated))
    advice = advice_on_column(has_split) if if_empty is None else if_empty
    return make_label_table(name, found, skipped, strict=options.strict, doubts=doubts, if_empty=advice)


def _row(cells: Cells, files: FilesFrom, has_split: bool) -> tuple[LabelRow, str]:
    """A row and the group of its picture."""
    check_width(cells)
    name = text_in(cells, "image")
    image = files.picture(name)
    group, split = group_and_split(cells, name, has_split)
    mask = None if is_blank(cells.get("mask")) else files.file(str(cells["mask"]).strip(), "mask")
    named = "" if is_blank(cells.get("group")) else group
    return LabelRow(image, text_in(cells, "label"), split, box_in(cells.get("box")), mask, named), group
