"""What the recorded runs took: steps, minutes, and examples a second, start-up and validation included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from saccade.recorded import RecordedRun, measure
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import Setting, mean_text


def cost_table(
    runs: Sequence[RecordedRun], data: Sequence[str], *, labels: Mapping[str, str], metric: str = "accuracy"
) -> PlainTable:
    """A line for every cell of ``data`` whose runs say their minutes, means over seeds, the quickest first.

    Args:
        runs: of any systems and data sets.
        data: data sets to show, by name.
        labels: what systems are called, by name; one that is not there is called by its name.
        metric: the score in the last column.
    """
    cells: dict[tuple[str, str], list[RecordedRun]] = {}
    for run in runs:
        if run.on in data and run.training.get("minutes") and run.training.get("steps"):
            drawn = "" if run.drawing == "blend" else f", drawing {run.drawing}"
            told = f"{run.on.upper()}, {Setting(run.protocol, run.glyphs).label}{drawn}"
            cells.setdefault((labels.get(run.system, run.system), told), []).append(run)
    rows = []
    for (system, told), found in sorted(cells.items(), key=lambda cell: _minutes(cell[1])):
        steps = fmean(int(run.training["steps"]) for run in found)
        examples = fmean(int(run.training["steps"]) * int(run.recipe.get("batch_size", 0)) for run in found)
        rows.append(
            [
                f"{system}\n{told}",
                f"{len(found)}",
                f"{steps:,.0f}",
                f"{examples / 1e6:.2f} M",
                f"{_minutes(found):.1f}",
                f"{examples / (60 * _minutes(found)):,.0f}",
                mean_text(measure(found, metric)),
            ]
        )
    machines = ", ".join(
        sorted({str(run.training.get("machine", "not told")) for each in cells.values() for run in each})
    )
    score = f"{metric.replace('_', ' ')} %"
    return PlainTable(
        "what training took, mean over seeds",
        ("system", "seeds", "steps", "examples", "minutes", "examples\na second", score),
        rows,
        f"Minutes are of the whole run: starting, compiling, making scenes, training, validating. On {machines}.",
    )


def _minutes(runs: Sequence[RecordedRun]) -> float:
    return fmean(float(run.training["minutes"]) for run in runs)
