"""Table 1 of Welleck et al. (2017, arXiv:1711.05165) from recorded runs: macro-F1, exact match, and where was looked.

Measured on test scenes of glyphs that training never saw, from training without end; the paper's sizes are 60,000 and
10,000 scenes. SVHN is not fetched by saccade, so its cells are trained by hand and only shown here. Figures 5 and 6,
saliency at the glimpses and F1 over training, are drawn from the validations that records keep; Figures 3, 4 and 12,
which need a model, in :mod:`saccade.families.multiset.reproduction.figures`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.figure import Figure

from saccade.engine.recipe import packaged_recipes
from saccade.errors import ConfigError, nearest
from saccade.families.multiset.published import PUBLISHED, WELLECK_2017
from saccade.families.multiset.task import OBJECTS
from saccade.recorded import RecordedRun, difference, measure
from saccade.show.curves import Line, Theme, course, line_panels
from saccade.show.report import Report, Section
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import Setting, TableCell, mean_text, measured_text
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.page import reproduction_page, table_block
from saccade.verbs.reproduction.training import Job

DATA = {"mnist-set": "MNIST Set", "mnist-multiset": "MNIST Multiset", "svhn": "SVHN Multiset"}
SYSTEMS = {
    "hsal": "HSAL-RL",
    "hsal-plain": "HSAL-RL as published",
    "hsal-ce": "Cross-Entropy",
    "hsal-ordered": "control: CE in reading order",
    "hsal-oracle": "control: multiset loss",
    "counts": "control: counts",
}
METRICS = {"macro_f1": "F1", "exact_match": "0-1"}
LOOKING = ("glimpse_in_evidence", "glimpse_on_label", "attn_saliency")
RIVALS = {"random_glimpse": "bound: at random", "most_salient_glimpse": "bound: most salient"}
SETTING = Setting("unlimited", "disjoint", compared=True)
LEGEND = (
    "Measured (published); below it, seeds × test pictures; ± is the standard deviation over seeds. F1: macro-F1 of "
    "counts pooled over pictures; the paper's is macro-F1 as in Li et al. 2017. Cross-Entropy: the paper's baseline, "
    "labels in random order. HSAL-RL differs from the row as published: its gradient is the mean over every action "
    "instead of one draw; on MNIST its backbone learnt digits among others, and glimpses follow the priority map; on "
    "SVHN it has finer cells, learnt each digit from its box, and at last everything together. Controls: labels in "
    "reading order; the authors' later multiset loss (arXiv:1711.05246); a count of each label from the same "
    "activations, without attention."
)
Rows = list[dict[str, Any]]
"""Of a metrics.jsonl."""
FIGURES = {
    "figure5": ("attn_saliency", "saliency at the glimpses", "Figure 5: saliency at the glimpses over training."),
    "figure6": ("macro_f1", "macro-F1", "Figure 6: macro-F1 on the validation split over training."),
}


@dataclass(frozen=True)
class MultisetTable:
    """The recorded runs on these data sets, and the tables that are made of them."""

    runs: Sequence[RecordedRun]
    data: Sequence[str] = tuple(DATA)

    def __post_init__(self) -> None:
        for name in self.data:
            if name not in DATA:
                raise ConfigError(f"data '{name}': {nearest(name, DATA)}")

    def with_runs(self, more: Iterable[RecordedRun]) -> MultisetTable:
        """The same table with further runs; where a cell already has a run of that seed, that one stays."""
        there = {(run.system, run.on, run.seed) for run in self.runs}
        return replace(self, runs=(*self.runs, *(run for run in more if (run.system, run.on, run.seed) not in there)))

    @property
    def systems(self) -> dict[str, str]:
        """Rows by name: those of the table, and whatever else was recorded on these data sets."""
        others = {run.system for run in self.runs if run.on in DATA} - SYSTEMS.keys()
        return SYSTEMS | {system: system for system in sorted(others)}

    def of(self, system: str, data: str) -> list[RecordedRun]:
        """The runs of one cell."""
        return [run for run in self.runs if (run.system, run.on) == (system, data)]

    def cell(self, metric: str, system: str, data: str) -> TableCell:
        """One score with its published neighbour."""
        measured = measure(self.of(system, data), metric)
        row = PUBLISHED.get((system, data))
        published = None if row is None else row.metrics.get(metric)
        apart = difference(measured, published) if measured is not None and published is not None else None
        return TableCell(metric, system, data, SETTING, measured, published, apart)

    def cells(self) -> list[TableCell]:
        """Every cell, system by system."""
        return [self.cell(metric, system, data) for system in self.systems for data in self.data for metric in METRICS]

    def answers(self) -> PlainTable:
        """Table 1: what was read."""
        columns = ["", *(f"{DATA[data]} {name}" for data in self.data for name in METRICS.values())]
        rows = []
        for system, label in self.systems.items():
            found = [self.cell(metric, system, data) for data in self.data for metric in METRICS]
            rows.append([label, *(measured_text(cell.measured, beside=cell.published) for cell in found)])
        return PlainTable("Table 1: macro-F1 and 0-1 %, measured (published)", columns, rows)

    def looking(self, data: str) -> PlainTable:
        """Where the glimpses fell, beside other ways to glimpse; one line a system that has a run."""
        rows = [
            [label, *(mean_text(measure(runs, metric)) for metric in LOOKING)]
            for system, label in self.systems.items()
            if (runs := self.of(system, data)) and measure(runs, LOOKING[0]) is not None
        ]
        reference = self.of("hsal", data)
        for rival, label in RIVALS.items():
            found = [measure(reference, metric, of=rival) for metric in LOOKING]
            rows += [[label, *map(mean_text, found)]] if any(found) else []
        columns = ("", "on an object", "on what is said", "saliency there")
        return PlainTable(f"glimpses, % on {DATA[data]}", columns, rows)

    def otherwise(self, variants: Sequence[RecordedRun]) -> PlainTable:
        """Runs with other settings, or of the phases before the last: one line each, by name."""
        metrics = (*METRICS, *LOOKING[:2])
        rows = [
            [run.name, *(mean_text(measure([run], metric)) for metric in metrics)]
            for run in variants
            if run.on in self.data
        ]
        return PlainTable("otherwise taught, %", ("run", *METRICS.values(), "on an object", "on what is said"), rows)

    def missing(self, seeds: int) -> list[Job]:
        """The runs that cells on generated scenes lack of seeds 0 … ``seeds`` − 1."""
        return [
            Job(f"{system}-{data}", system, data, SETTING, seed)
            for data in self.data
            for system in SYSTEMS
            if f"{system}-{data}" in packaged_recipes()
            for seed in range(seeds)
            if seed not in {run.seed for run in self.of(system, data)}
        ]


def training_figures(table: MultisetTable) -> list[Drawing]:
    """Figures 5 and 6 from what the runs of ``table`` kept of their way; one that none has values for is left out."""
    found = {each: _rows_by_system(table, each) for each in table.data}
    drawings: list[Drawing] = []
    source = "validation while the controllers learn, the first seed of each system"
    for name, (metric, label, caption) in FIGURES.items():
        panels = {DATA[each]: lines for each, held in found.items() if (lines := _lines(held, metric))}
        drawings += [Drawing(f"hsal-{name}", caption, source, _plot(panels, label))] if panels else []
    return drawings


def _plot(panels: Mapping[str, Mapping[str, Line]], label: str) -> Callable[[Theme], Figure]:
    def draw(theme: Theme) -> Figure:
        return line_panels(panels, xlabel="step", ylabel=label, order=tuple(SYSTEMS.values()), theme=theme)[0]

    return draw


def _rows_by_system(table: MultisetTable, data: str) -> dict[str, Rows]:
    """Validations of a run of each system on ``data`` since its controllers learn; steps count from there.

    Of several that kept them it is the first.
    """
    found = {}
    for system, label in SYSTEMS.items():
        kept = [run for run in table.of(system, data) if run.course]
        for run in sorted(kept, key=lambda run: run.seed)[:1]:
            of_objects = {phase["name"] for phase in run.recipe.get("phases", ()) if phase.get("data") == OBJECTS}
            before = max((row["step"] for row in run.course if row["phase"] in of_objects), default=0)
            later = [row for row in run.course if row["phase"] not in of_objects]
            found[label] = [row | {"step": row["step"] - before} for row in later]
    return found


def _lines(held: Mapping[str, Rows], metric: str) -> dict[str, Line]:
    courses = {label: course(rows, metric, "validation") for label, rows in held.items()}
    return {
        label: Line([step for step, _ in points], [value for _, value in points])
        for label, points in courses.items()
        if len(points) > 1
    }


def multiset_page(table: MultisetTable, looking: Sequence[PlainTable], figures: Sequence[Drawing]) -> Report:
    """Table 1, where the glimpses fell, and the figures."""
    return reproduction_page(
        "Saliency-based sequential attention, Table 1",
        f"{WELLECK_2017}, measured again. Numbers in the tables come from recorded runs.",
        [
            Section("Table 1", LEGEND, [table_block(table.answers())]),
            Section("Where it glimpsed", "", [table_block(each) for each in looking]),
            Section("Figures", "", [figure.block() for figure in figures]),
        ],
        again="By training what has no run yet; SVHN has to be fetched by hand.",
        commands=(
            "saccade reproduce hsal-table1 --train --seeds 3 --out reproduction",
            "saccade train hsal-svhn-multiset --data svhn:FOLDER --out runs/svhn",
        ),
    )
