"""Errors on CIFAR-10 of residual attention networks, naive ones, other masks, and plain networks of the same size.

The rows of the paper are Tables 1 and 3 of Wang et al. (2017, arXiv:1704.06904). Beside each stands a residual network
with as many weights and multiplications, trained by the same recipe. The last weights count: nothing is chosen by the
test pictures. There are two columns: the whole schedule, which is compared with the paper, and one of 15 epochs, which
affords several seeds of every variant. The second table has the differences that the paper claims, in both columns,
with the seeds that both sides have.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from saccade.families.classify.published import DATA, PUBLISHED, WANG_2017
from saccade.recorded import Measured, RecordedRun, difference, gain, measure
from saccade.show.report import Report, Section
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import GAIN_NOTE, Setting, TableCell, gain_text, measured_text
from saccade.verbs.reproduction.page import reproduction_page, table_block
from saccade.verbs.reproduction.training import Job

__all__ = ["COLUMNS", "DATA", "LEGEND", "ResidualTable", "residual_page"]


@dataclass(frozen=True)
class Row:
    """One system of the table."""

    label: str
    recipe: str


ROWS = {
    "ran-56": Row("Attention-56", "ran-56"),
    "resnet-56": Row("control: residual network of its size", "resnet-cifar10"),
    "ran-56-naive": Row("Attention-56, naive", "ran-56-naive"),
    "ran-56-channel": Row("Attention-56, masks of channels", "ran-56-channel"),
    "ran-56-spatial": Row("Attention-56, masks of places", "ran-56-spatial"),
    "ran-56-ema": Row("Attention-56, mean of weights", "ran-56-ema"),
    "ran-92": Row("Attention-92", "ran-92"),
    "resnet-92": Row("control: residual network of its size", "resnet-92-cifar10"),
    "ran-92-naive": Row("Attention-92, naive", "ran-92-naive"),
}
CLAIMS = (
    ("ran-56", "resnet-56", "attention against the same size without"),
    ("ran-92", "resnet-92", "attention against the same size without"),
    ("ran-56", "ran-56-naive", "(1 + M)·F against M·F"),
    ("ran-92", "ran-92-naive", "(1 + M)·F against M·F"),
    ("ran-56", "ran-56-channel", "mixed masks against masks of channels"),
    ("ran-56", "ran-56-spatial", "mixed masks against masks of places"),
)
"""What is compared: the better one by the paper, the other, and in words."""
METRIC = "accuracy"
SETTING = Setting("full", compared=True)
SHORT = Setting("short")
COLUMNS = {SETTING: "whole schedule", SHORT: "15 epochs"}
LEGEND = (
    "Error in % of the 10,000 test pictures, measured (published); below it, seeds × test pictures; ± is the standard "
    "deviation over seeds. All 50,000 training pictures, the last weights, nothing chosen by test. The published runs "
    "took 160,000 steps of 64 pictures (205 epochs), a rate of 0.1 divided by 10 twice, and a weight decay of 1e-4. "
    "Ours have a weight decay of 5e-4 and a rate that falls by a cosine: Attention-56 and its control 180 epochs of "
    "batches of 256 from 0.2, Attention-92 and its control 100 epochs of batches of 512 from 0.3; in the column of 15 "
    "epochs all have batches of 512 from 0.3. Controls have the weights and multiplications of the network above them, "
    "and its recipe. For context: a small modern network reaches 5 % error in about ten seconds on one GPU (airbench, "
    "2024)."
)


@dataclass(frozen=True)
class ResidualTable:
    """The recorded runs on CIFAR-10, and the tables that are made of them."""

    runs: Sequence[RecordedRun]
    source: str | None = None
    """``cifar10:FOLDER``, where it does not lie in the cache."""
    settings: Sequence[Setting] = tuple(COLUMNS)
    """The columns that are shown and trained."""

    def with_runs(self, more: Iterable[RecordedRun]) -> ResidualTable:
        """The same table with further runs; where a cell already has a run of that seed, that one stays."""
        there = {_place(run) for run in self.runs}
        return replace(self, runs=(*self.runs, *(run for run in more if _place(run) not in there)))

    def of(self, system: str, setting: Setting = SETTING) -> list[RecordedRun]:
        """The runs of one cell."""
        return [run for run in self.runs if (run.system, run.on, run.protocol) == (system, DATA, setting.protocol)]

    def cell(self, system: str, setting: Setting = SETTING) -> TableCell:
        """The accuracy of a system; of the whole schedule, with its published neighbour."""
        measured = measure(self.of(system, setting), METRIC)
        row = PUBLISHED.get((system, DATA)) if setting.compared else None
        published = None if row is None else row.metrics[METRIC]
        apart = difference(measured, published) if measured is not None and published is not None else None
        return TableCell(METRIC, system, DATA, setting, measured, published, apart)

    def cells(self) -> list[TableCell]:
        """Every cell."""
        return [self.cell(system, setting) for setting in self.settings for system in ROWS]

    def errors(self) -> PlainTable:
        """What each system gets wrong."""
        rows = []
        for system, row in ROWS.items():
            cells = [self.cell(system, setting) for setting in self.settings]
            beside = [None if cell.published is None else 1 - cell.published for cell in cells]
            told = [measured_text(_as_error(cell.measured), beside=each) for cell, each in zip(cells, beside)]
            rows.append([row.label, *told])
        title = "Tables 1 and 3: error % on CIFAR-10, measured (published)"
        return PlainTable(title, ("", *(COLUMNS[setting] for setting in self.settings)), rows)

    def differences(self) -> PlainTable:
        """Points by which the first of each pair errs less, with its sign as it is."""
        rows = []
        for better, other, what in CLAIMS:
            gains = [gain_text(gain(self.of(better, each), self.of(other, each), METRIC)) for each in self.settings]
            rows.append([what, ROWS[better].label, *gains, self._published_gain(better, other)])
        measured = (f"errs less by, points, {COLUMNS[setting]}" for setting in self.settings)
        columns = ("what", "of", *measured, "published")
        return PlainTable("differences over the seeds that both have", columns, rows, GAIN_NOTE)

    @staticmethod
    def _published_gain(better: str, other: str) -> str:
        rows = [PUBLISHED.get((system, DATA)) for system in (better, other)]
        known = [row.metrics[METRIC] for row in rows if row is not None]
        return f"{100 * (known[0] - known[1]):+.2f}" if len(known) == len(rows) else "–"

    def missing(self, seeds: int) -> list[Job]:
        """The runs that cells lack of seeds 0 … ``seeds`` − 1."""
        return [
            Job(row.recipe, system, DATA, setting, seed, self.source)
            for setting in self.settings
            for system, row in ROWS.items()
            for seed in range(seeds)
            if seed not in {run.seed for run in self.of(system, setting)}
        ]


def _place(run: RecordedRun) -> tuple[str, str, str, int]:
    """The cell and the seed of a run."""
    return run.system, run.on, run.protocol, run.seed


def _as_error(measured: Measured | None) -> Measured | None:
    """What was measured of right answers, told of wrong ones."""
    if measured is None:
        return None
    low, high = (None if end is None else 1 - end for end in (measured.high, measured.low))
    return replace(measured, mean=1 - measured.mean, low=low, high=high)


def residual_page(tables: Sequence[PlainTable]) -> Report:
    """The tables on a page."""
    return reproduction_page(
        "Residual attention networks on CIFAR-10",
        f"{WANG_2017}, Tables 1 and 3, measured again. Numbers come from recorded runs.",
        [Section("Errors", LEGEND, [table_block(table) for table in tables])],
        again="By training what has no run yet, on one GPU in minutes each.",
        commands=("saccade data get cifar10", "saccade reproduce ran-table --train --seeds 3 --out reproduction"),
    )
