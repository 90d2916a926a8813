"""Models that may say "it is not there": their accuracy on digits that are there and on absent ones."""

from __future__ import annotations

from collections.abc import Sequence

from saccade.recorded import RecordedRun
from saccade.verbs.plain_table import PlainTable


def absent_table(runs: Sequence[RecordedRun]) -> PlainTable:
    """One row for each run that was asked for absent digits too."""
    rows = []
    for run in runs:
        present, absent = run.value("accuracy"), run.value("accuracy_absent")
        if present is not None and absent is not None:
            drawn = run.evaluation.drawing or run.drawing
            told = [run.system, run.on.upper(), drawn, f"{100 * present:.2f}", f"{100 * absent:.2f}"]
            rows.append([*told, f"{run.seed}", f"{run.evaluation.n:,}"])
    return PlainTable(
        "models that also say that a digit is not there: accuracy %",
        ("model", "data", "drawing", "digits that are there", "absent digits", "seed", "n"),
        rows,
        "drawing: of the test scenes; both: half of them each. A fifth of the questions in training are for absent "
        "digits. Right about an absent digit: the model says 'not there'. n: the questions for digits that are there; "
        "a scene that holds all ten digits has no question for an absent one.",
    )
