"""Scores shipped models on both drawings of a scene: how much answers depend on how ink becomes colour."""

from __future__ import annotations

from collections.abc import Sequence

from saccade.data.scenes.drawing import EVERY
from saccade.families.question.reproduction.table1 import DATA, LABELS, ROWS
from saccade.recorded import RecordedRun, measure
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import mean_text, seeds_text

SCORED_ON = ("blend", "authors")
"""The drawings of :mod:`saccade.data.scenes.backgrounds`."""
SHARES = {drawing: {2: "½", 4: "¾"}[every] for drawing, every in EVERY.items()}
"""Drawings that have both: the share that is drawn as the authors draw."""
CLOSE = 0.003
"""How far apart the two accuracies of a model may lie: 0.3 points."""


def drawings_table(runs: Sequence[RecordedRun], data: Sequence[str] = DATA) -> PlainTable:
    """Accuracy of every run that learned from both drawings, on each of them, and how far apart they lie."""
    order = [row.system for row in ROWS]
    found = sorted(
        {
            (data.index(run.on), order.index(run.system), learned)
            for run in runs
            if run.on in data and run.system in order and (learned := run.drawing.partition(",")[0]) in SHARES
        }
    )
    rows = []
    for place, system, learned in found:
        cells = [(order[system], data[place], f"{learned}, scored on {drawing}") for drawing in SCORED_ON]
        one, other = (measure((run for run in runs if _cell(run) == cell), "accuracy") for cell in cells)
        if one is None or other is None:
            continue
        apart = other.mean - one.mean
        mark = "" if abs(apart) <= CLOSE else " *"
        told = [LABELS[order[system]], data[place].upper(), SHARES[learned], mean_text(one), mean_text(other)]
        rows.append([*told, f"{100 * apart:+.2f}{mark}", seeds_text(one)])
    return PlainTable(
        "models that learned from both drawings: accuracy %",
        ("system", "data", "authors' scenes in its last training", "on saccade's drawing", "on the authors' drawing",
         "difference", "seeds × n"),
        rows,
        f"The same digits at the same places, drawn twice. *: more than {100 * CLOSE:.1f} points apart. On MDIST the "
        "authors' sums of distractors wrap around at 256, which makes new colours: those scenes are harder.",
    )  # fmt: skip


def _cell(run: RecordedRun) -> tuple[str, str, str]:
    return run.system, run.on, run.drawing
