"""Your own table: CSV or JSON lines with ``image, query, label``, and optional evidence.

======== =============================================================================================================
column    holds
======== =============================================================================================================
image     path of the picture, from the table's folder
query     what is asked; without this column every picture is asked the same, ``what is it?``
label     the answer; or ``labels``, several: ``red; shiny`` or a JSON list
split     optional: train, val or test
group     optional: pictures that belong together (a patient, a video); all of them go into one split
box       optional: ``x1 y1 x2 y2`` or a JSON list, in pixels of the picture
point     optional: ``x y`` or a JSON list
mask      optional: path of a picture of the same size, black where there is no evidence
======== =============================================================================================================

Other columns are ignored. Without ``split``, 70 / 15 / 15 % of the groups (of the pictures, where no group is named)
are train / val / test by a hash of the name: a picture is in one split only, and stays there when the table grows. With
it, a picture or a group in two splits is refused, and copies of a picture are named
(:mod:`saccade.data.tables.doubts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from saccade.data.tables.class_folders import read_class_folders
from saccade.data.tables.coco import read_coco
from saccade.data.tables.doubts import SplitMember, check_splits, repeated_keys
from saccade.data.tables.labelled import LabelTable, LabelTableOptions
from saccade.data.tables.metadata import metadata_rows, parquet_rows
from saccade.data.tables.rows import (
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
    numbers_in,
    text_in,
    words_of,
)
from saccade.data.tables.splits import advice_on_column
from saccade.families.question.table import Question, QuestionTable, make_table

ONE_QUESTION = "what is it?"
"""What is asked about pictures that have labels and no questions."""


@dataclass(frozen=True)
class TableOptions:
    """How a table is read."""

    strict: bool = False
    """Refuse a table with rows that cannot be used, instead of leaving them out."""


def read_csv(path: Path, options: TableOptions) -> QuestionTable:
    """The questions of a CSV file with a header, in UTF-8."""
    return _table("csv", path, csv_rows(path, ("image", "label|labels")), [], [], options)


def read_jsonl(path: Path, options: TableOptions) -> QuestionTable:
    """The questions of a file with one JSON object in each line, in UTF-8."""
    repeated: list[str] = []
    return _table("jsonl", path, *jsonl_rows(path, repeated), repeated, options)


def read_folders(path: Path, options: TableOptions) -> QuestionTable:
    """The pictures of folders by class (:mod:`saccade.data.tables.class_folders`), all asked the same."""
    return _of_labels(read_class_folders(path, LabelTableOptions()), options)


def read_annotations(path: Path, options: TableOptions) -> QuestionTable:
    """The pictures of COCO annotations (:mod:`saccade.data.tables.coco`), all asked the same."""
    return _of_labels(read_coco(path, LabelTableOptions()), options)


def _of_labels(table: LabelTable, options: TableOptions) -> QuestionTable:
    """Pictures with one label each as questions."""
    found = [
        (
            row.image.name,
            Question(row.image, ONE_QUESTION, (row.label,), row.split, row.box, None, row.mask, str(row.image)),
        )
        for row in table.as_found
    ]
    skipped = [each for each in table.skipped if not each.startswith("label never seen")]  # found again below
    return make_table(table.name, found, skipped, multi_label=False, strict=options.strict, doubts=table.doubts)


def read_metadata(folder: Path, options: TableOptions) -> QuestionTable:
    """The questions of a folder with ``metadata.csv`` or ``metadata.jsonl`` in it."""
    return _table("metadata", folder, *metadata_rows(folder), options, base=folder)


def read_parquet(path: Path, options: TableOptions) -> QuestionTable:
    """The questions of a Parquet file, or of all of them in a folder."""
    rows, skipped = parquet_rows(path)
    base = path if path.is_dir() else path.parent
    return _table("parquet", path, rows, skipped, [], options, unit="row", base=base)


def _table(
    reader: str,
    path: Path,
    rows: Rows,
    skipped: list[str],
    repeated: list[str],
    options: TableOptions,
    *,
    unit: str = "line",
    base: Path | None = None,
) -> QuestionTable:
    """The table of rows that are numbered by ``unit``; pictures are named from ``base``, or the folder of ``path``."""
    folder = path.parent if base is None else base
    has_split = any("split" in cells for _, cells in rows)
    multi_label = any("labels" in cells for _, cells in rows)
    has_query = any("query" in cells for _, cells in rows)
    files = FilesFrom(folder)
    first_line: dict[Question, int] = {}
    for line, cells in rows:
        try:
            question = _question(cells if has_query else {**cells, "query": ONE_QUESTION}, files, has_split)
        except UnusableRowError as error:
            skipped.append(error.at(f"{unit} {line}"))
            continue
        if first_line.setdefault(question, line) != line:
            skipped.append(f"duplicate: {unit} {line} repeats {unit} {first_line[question]}")
    name = f"{reader}:{path}"
    check_splits(name, folder, (SplitMember(row.image, row.group, row.split) for row in first_line))
    found = [(f"{unit} {line}", question) for question, line in first_line.items()]
    doubts = [repeated_keys(repeated), "" if has_query else f"no column query: all are asked '{ONE_QUESTION}'"]
    return make_table(
        name,
        found,
        skipped,
        multi_label=multi_label,
        strict=options.strict,
        doubts=doubts,
        if_empty=advice_on_column(has_split),
    )


def _question(cells: Cells, files: FilesFrom, has_split: bool) -> Question:
    check_width(cells)
    name = text_in(cells, "image")
    image = files.picture(name)
    group, split = group_and_split(cells, name, has_split)
    return Question(
        image=image,
        query=text_in(cells, "query"),
        labels=_labels(cells),
        split=split,
        box=box_in(cells.get("box")),
        # numbers_in gives as many as asked for
        point=numbers_in(cells.get("point"), "point", 2),  # type: ignore[arg-type]
        mask=_mask(cells.get("mask"), files),
        group=group,
    )


def _labels(cells: Cells) -> tuple[str, ...]:
    several = cells.get("labels")
    if is_blank(several):
        return (text_in(cells, "label" if "label" in cells else "labels"),)
    labels = dict.fromkeys(words_of(several, "labels"))  # in order, each once
    if not labels:
        raise UnusableRowError("empty label")
    return tuple(labels)


def _mask(value: object, files: FilesFrom) -> Path | None:
    if is_blank(value):
        return None
    return files.file(str(value).strip(), "mask")
