"""What was measured, and what the papers print: ``results/``, ``published.csv``, and the mean over the seeds of a cell.

Two things make a cell uncertain: which test examples there were and which seed trained the model. All seeds are tested
on the same examples, so the half-width of the first part is the mean of the runs' own intervals. The second part is
Student's t for the mean of the seeds. The two are independent and add in quadrature. With one seed only the first part
is known. A published number counts as exact.
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import hypot, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.models.facts import ModelFacts

# 97.5 % points of Student's t by degrees of freedom from 1; beyond, the last stands (a little too wide).
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


@dataclass(frozen=True)
class RunScore:
    """One score of one run."""

    value: float
    low: float | None  # 95 % interval over the test examples; None where none was recorded.
    high: float | None
    n: int
    split: str


@dataclass(frozen=True)
class PaperRun:
    """One training run: a row of ``runs.csv``, and its rows of ``scores.csv``."""

    scores: dict[str, RunScore]

    run: str
    table: str
    # ``main``; ``variant``: other settings than the recipe's; ``tried``: on the validation split; ``shipped``.
    kind: str
    system: str
    data: str
    # How scenes are drawn: by the authors' generator (``authors``), by saccade's blending, or half of them each.
    drawing: str
    glyphs: str  # ``disjoint`` between training and test, or ``merged``.
    protocol: str
    seed: str
    recipe: str
    epochs: str
    steps: str
    minutes: str
    machine: str
    commit: str
    sha256: str  # The first digits of the digest of its weights.
    command: str

    @property
    def label(self) -> str:
        """``authors merged``; ``unlimited`` alone, because unlimited training always has disjoint glyphs."""
        return f"{self.protocol} {self.glyphs}".strip() if self.protocol == "authors" else self.protocol


@dataclass(frozen=True)
class Measured:
    """One score of one cell."""

    mean: float
    std: float | None  # Over the seeds, with n − 1; None with one seed.
    low: float | None  # 95 % interval of the mean; None where the runs recorded none.
    high: float | None
    seeds: tuple[int, ...]
    n: int  # Test examples of each seed; of the smallest, where they differ.


def results_folder() -> Path:
    """Where the results are: inside an installed package, or ``results`` of the checkout it runs from."""
    package = Path(__file__).parent.parent
    packed = package / "results"
    return packed if packed.is_dir() else package.parents[1] / "results"


@cache
def recorded_runs(folder: Path | None = None) -> dict[str, PaperRun]:
    """Every run by name, those of ``folder`` or those that come with saccade."""
    folder = folder or results_folder()
    runs = {row["run"]: PaperRun({}, **row) for row in rows(folder / "runs.csv")}
    for row in rows(folder / "scores.csv"):
        value, low, high = (float(row[key]) if row[key] else None for key in ("value", "low", "high"))
        if value is not None:
            runs[row["run"]].scores[row["metric"]] = RunScore(value, low, high, int(row["n"]), row["split"])
    return runs


def rows(path: Path) -> Iterator[dict[str, str]]:
    """The rows of a CSV file by column."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def measure(runs: Iterable[PaperRun], metric: str) -> Measured | None:
    """The mean of ``metric`` over ``runs`` of one cell, which differ in their seed; None when none of them has it."""
    by_seed = {int(run.seed): run.scores[metric] for run in runs if metric in run.scores}
    if not by_seed:
        return None
    scores = list(by_seed.values())
    values, many = [score.value for score in scores], len(scores)
    mean, std = statistics.fmean(values), statistics.stdev(values) if many > 1 else None
    between = 0.0 if std is None else _STUDENT[min(many - 1, len(_STUDENT)) - 1] * std / sqrt(many)
    low = high = None
    below = [score.value - score.low for score in scores if score.low is not None]
    above = [score.high - score.value for score in scores if score.high is not None]
    if len(below) == len(above) == many:
        low = mean - hypot(statistics.fmean(below), between)
        high = mean + hypot(statistics.fmean(above), between)
    return Measured(mean, std, low, high, tuple(sorted(by_seed)), min(score.n for score in scores))


@dataclass(frozen=True)
class PaperScore:
    """One number of a paper's table."""

    value: float
    table: str  # Name of the table for ``saccade reproduce``.
    paper: str
    system: str
    data: str
    protocol: str  # The label of our runs that were made as the paper's was; see :attr:`Run.label`.
    metric: str
    conditions: str  # What is known of how it was measured, and why ours may not compare.


@cache
def published() -> tuple[PaperScore, ...]:
    """Every number, in the order of the tables."""
    return tuple(PaperScore(float(row.pop("value")), **row) for row in rows(Path(__file__).parent / "published.csv"))


def published_for(facts: ModelFacts) -> dict[str, float]:
    """By metric, what a paper says of the model that ``facts`` describe; empty if it was trained or built differently.

    The recipe decides: ``hsal-mnist-set`` is a system of a paper, ``hsal-ordered-mnist-set`` is not. Nor is a system
    that a paper trained in several ways, such as MemN2N.
    """
    system, data = facts.architecture, str(facts.data.get("name"))
    recipe = facts.recipe.get("name", system)
    printed = [row for row in published() if (row.system, row.data) == (system, data)]
    of_the_paper = recipe == system or recipe.startswith(f"{system}-{data}")
    one_way = len({row.protocol for row in printed}) == 1
    return {row.metric: row.value for row in printed} if of_the_paper and one_way else {}
