"""Sections of a page about answers with one label: confusions, scores by class, and dependence on the evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from saccade.show.report import Block, Cell, Gallery, Picture, Section, Table, percent
from saccade.show.report_tables import Value
from saccade.show.score_tables import rests_on_table

MATRIX_CLASSES = 20
"""Classes of a confusion matrix that fits a page; of more, the most confused pairs are listed."""
CLASSES = 200
"""Rows of the table of classes at most: the worst come first."""

Row = Sequence[Cell | Value]


def confusion_section(confusion: Mapping[str, Any], classes: int) -> Section | None:
    """The matrix where it fits, else the most confused pairs; None where nothing is known.

    Args:
        confusion: ``classes`` and ``matrix`` where there are few, and ``mistakes``: pairs with their number.
        classes: how many there are.
    """
    names, matrix, pairs = confusion.get("classes", ()), confusion.get("matrix", ()), confusion.get("mistakes", ())
    if matrix and len(names) <= MATRIX_CLASSES:
        rows: list[Row] = [[name, *map(int, row)] for name, row in zip(names, matrix)]
        table = Table(["true \\ said", *names], rows)
        return Section("Confusion matrix", "A row for each true class, a column for each answer.", [table])
    if not pairs:
        return None
    text = f"The most confused pairs; a matrix of {classes} classes would not fit the page."
    rows = [[pair["true"], pair["said"], int(pair["n"])] for pair in pairs]
    return Section("Confusions", text, [Table(("true", "said", "times"), rows)])


def classes_section(per_class: Mapping[str, Mapping[str, Any]], elsewhere: str) -> Section | None:
    """Recall and precision of each class, the worst first; ``elsewhere`` names the file that has all of them."""
    if not per_class:
        return None
    known = {name: _or(score["recall"], 1.0) for name, score in per_class.items()}
    order = sorted(per_class, key=lambda name: (known[name], name))
    rows: list[Row] = [
        [name, per_class[name]["pictures"], _share(per_class[name]["recall"]), _share(per_class[name]["precision"])]
        for name in order[:CLASSES]
    ]
    left = len(per_class) - len(rows)
    text = "The worst come first." + (f" {left} better ones are in {elsewhere}." if left else "")
    columns = ("class", "pictures", "found (recall)", "right when said (precision)")
    return Section("Scores of classes", text, [Table(columns, rows, dash="no such picture, or never said")])


def mistakes_section(pictures: Sequence[Picture], what: str, missing: str = "") -> Section:
    """The worst mistakes with their maps.

    Args:
        pictures: each with its caption.
        what: whose answers these are, such as "test pictures".
        missing: why pictures cannot be shown, where some cannot.
    """
    if not pictures and not missing:
        return Section("Worst mistakes", f"No mistake was made on {what}.")
    text = f"The surest wrong answers on {what}, with where the model looked." + (f" {missing}" if missing else "")
    blocks: list[Block] = [Gallery(pictures)] if pictures else []
    return Section("Worst mistakes", text, blocks)


def rests_on_section(rests_on: Mapping[str, object]) -> Section | None:
    """How many answers are right without the evidence, and without the rest; None where no evidence is known."""
    table = rests_on_table(rests_on)
    if not table.rows:
        return None
    said = str(rests_on.get("says") or "")
    text = (
        "Where your boxes or masks say what the answer is about, pictures were changed and asked about again: the "
        "evidence blurred, or taken from a picture with another answer; and everything else in the same way. A "
        "model that stays right without the evidence uses something else."
    )
    return Section("What the answer depends on", f"{said}.\n\n{text}" if said else text, [table])


def caption(mistake: Mapping[str, Any]) -> str:
    """What stands below a mistake."""
    asked = f"{mistake['asked']}: " if mistake.get("asked") else ""
    own = f"; {mistake['true']} {mistake['of_true']:.0%}" if isinstance(mistake.get("of_true"), float) else ""
    return f"{asked}{mistake['true']}, said {mistake['said']} ({mistake['confidence']:.0%}{own})"


def _share(value: float | None) -> Cell:
    return Cell(None) if value is None else percent(value)


def _or(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value
