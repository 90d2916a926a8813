"""Questions as ``saccade probe`` takes them: one answer each, in rows that several kinds of data share."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from saccade.data.tables.doubts import check_usable
from saccade.data.tables.labelled import LabelRow, LabelTable
from saccade.families.question.readers import read_questions
from saccade.families.question.table import Question


def read_asked(reference: str) -> LabelTable:
    """The questions that ``reference`` (READER:PATH) names; those with several answers are left out."""
    table = read_questions(reference)
    found = table.as_found or table.rows
    pictures: dict[str, set[Path]] = defaultdict(set)
    for row in found:
        pictures[row.group].add(row.image)
    rows = tuple(_row(row, named=len(pictures[row.group]) > 1) for row in found if len(row.labels) == 1)
    several = [f"several answers: {row.image.name}, {row.query}" for row in found if len(row.labels) > 1]
    left_out = (*table.skipped, *several)
    check_usable(table.name, rows, left_out, strict=False, thing="question")
    return LabelTable(table.name, rows, table.answers, left_out, rows, table.doubts)


def _row(row: Question, *, named: bool) -> LabelRow:
    """A question with one answer; a group that holds its own picture alone is none."""
    return LabelRow(
        image=row.image,
        label=row.labels[0],
        split=row.split,
        box=row.box,
        mask=row.mask,
        group=row.group if named else "",
        query=row.query,
        point=row.point,
        mask_grey=row.mask_grey,
    )
