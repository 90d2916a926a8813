"""Table 1 of Welleck et al. (2017, arXiv:1711.05165) from recorded runs: macro-F1, exact match, and glimpses.

Published numbers stand beside runs with the paper's 60,000 / 10,000 pictures (protocol ``authors``) and on SVHN, and
not beside training without end (``unlimited``). SVHN is not fetched by saccade, so its cells are trained by hand and
only shown here. How each row was trained is a table of its own. Figures 5 and 6, saliency at the glimpses and scores
over training, are drawn from the validations that records keep; Figures 3, 4 and 12, which need a model, in
:mod:`saccade.families.multiset.reproduction.figures`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.figure import Figure

from saccade.engine.recipe import packaged_recipes
from saccade.errors import ConfigError, nearest
from saccade.families.multiset.data import SCENES, SIZES
from saccade.families.multiset.published import PUBLISHED, WELLECK_2017
from saccade.families.multiset.task import OBJECTS
from saccade.recorded import RecordedRun, difference, gain, measure
from saccade.show.curves import Line, Theme, course, line_panels
from saccade.show.report import Report, Section
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import GAIN_NOTE, Setting, TableCell, gain_text, mean_text, measured_text
from saccade.verbs.reproduction.drawing import Drawing
from saccade.verbs.reproduction.page import reproduction_page, table_block
from saccade.verbs.reproduction.request import ALL
from saccade.verbs.reproduction.training import Job

DATA = {"mnist-set": "MNIST Set", "mnist-multiset": "MNIST Multiset", "svhn": "SVHN Multiset"}
SYSTEMS = {
    "hsal": "HSAL-RL, improved",
    "hsal-plain": "HSAL-RL, plain",
    "hsal-ce": "Cross-Entropy",
    "hsal-ordered": "control: CE in reading order",
    "hsal-oracle": "control: multiset loss",
    "counts": "control: counts",
}
METRICS = {"macro_f1": "F1", "exact_match": "0-1"}
COMPARED = (
    ("hsal", "hsal-plain"),
    ("hsal-plain", "hsal-ce"),
    ("hsal", "hsal-ordered"),
    ("hsal", "counts"),
)
"""Pairs whose difference is told."""
UNEQUAL = "Unlimited and on SVHN the systems differ in steps and backbone too: see how each row was trained."
LOOKING = ("glimpse_in_evidence", "glimpse_on_label", "attn_saliency")
RIVALS = {"random_glimpse": "bound: at random", "most_salient_glimpse": "bound: most salient"}
AUTHORS, UNLIMITED = Setting("authors", "disjoint", compared=True), Setting("unlimited", "disjoint")
FILES = Setting("", compared=True)
"""For SVHN, which has a fixed number of pictures."""
LEGEND = (
    "Measured (published); below it, seeds × test pictures; ± is the standard deviation over seeds. authors: the "
    "paper's 60,000 pictures, 5,000 of which choose the weights, and 10,000 to test. unlimited: fresh pictures without "
    "end, which the paper did not have; no published number stands there. Test digits are MNIST test glyphs that "
    "training never saw; the authors' generator takes all its glyphs from MNIST's training part. F1: macro-F1 of "
    "counts pooled over pictures; the paper's is macro-F1 as in Li et al. 2017. SVHN: held-out training pictures, cut "
    "out around the true boxes of the digits and 15 % more on each side; the paper measures on the official test "
    "pictures and does not say how they are cut. HSAL-RL, plain: network and loss of the paper. It differs in these: "
    "on MNIST a backbone of 128 channels that starts from nothing, on 100 × 100, for an ImageNet ResNet-34 on 224 × "
    "224; 192 or 256 units for 512; an entropy bonus of 0.01; unlimited, 3 % empty scenes; on SVHN 13×13 cells for "
    "7×7, β of 0.45 to 0.6 for 1.5 to 2, varied pictures. The recipe hsal-paper has the paper's sizes and no run: "
    "ImageNet weights of ResNet-34 were not at hand. HSAL-RL, "
    "improved: besides, its gradient is the mean over every action instead of one draw; on MNIST its backbone learned "
    "digits among others, and glimpses follow the priority map; on SVHN it learned each digit from its box, then "
    "everything together, and boxes also taught it to look where it names (`elsewhere: 0`). Cross-Entropy: "
    "the paper's baseline, labels in random order. authors: it has the backbone of HSAL-RL, plain, and as many steps, "
    "and reads fewer pictures than published; the cause is not known. Ours is fed the label that it said before; the "
    "paper does not say what its baseline was fed. unlimited and SVHN: its controllers learned for fewer steps than "
    "those of HSAL-RL (see how each row was trained). Controls: labels in reading order; the authors' later multiset "
    "loss (arXiv:1711.05246); a count of each label from the same activations, without attention."
)
Rows = list[dict[str, Any]]
"""Rows of a metrics.jsonl."""
FIGURES = {
    "figure5": ("attn_saliency", "saliency at the glimpses", "Figure 5: saliency at the glimpses over training."),
    "figure6": ("macro_f1", "macro-F1", "Figure 6: macro-F1 on the validation split over training."),
    "figure6-op": ("overall_precision", "overall precision", "Figure 6, OP: overall precision over training."),
    "figure6-or": ("overall_recall", "overall recall", "Figure 6, OR: overall recall over training."),
    "figure6-0-1": ("exact_match", "exact match", "Figure 6, 0-1: exact match over training."),
}


@dataclass(frozen=True)
class MultisetTable:
    """The recorded runs on these data sets, and the tables that are made of them."""

    runs: Sequence[RecordedRun]
    data: Sequence[str] = tuple(DATA)
    protocol: str = ALL
    """Protocol of generated scenes: one, or all."""

    def __post_init__(self) -> None:
        for name in self.data:
            if name not in DATA:
                raise ConfigError(f"data '{name}': {nearest(name, DATA)}")
        if self.protocol not in (known := (AUTHORS.protocol, UNLIMITED.protocol, ALL)):
            raise ConfigError(f"protocol '{self.protocol}': {nearest(self.protocol, known)}")

    def with_runs(self, more: Iterable[RecordedRun]) -> MultisetTable:
        """The same table with further runs; where a cell already has a run of that seed, that one stays."""
        there = {_place(run) for run in self.runs}
        return replace(self, runs=(*self.runs, *(run for run in more if _place(run) not in there)))

    @property
    def systems(self) -> dict[str, str]:
        """Rows by name: those of the table, and whatever else was recorded on these data sets."""
        others = {run.system for run in self.runs if run.on in DATA} - SYSTEMS.keys()
        return SYSTEMS | {system: system for system in sorted(others)}

    def settings(self, data: str) -> tuple[Setting, ...]:
        """The columns of a data set."""
        known = (AUTHORS, UNLIMITED) if data in SCENES else (FILES,)
        return tuple(each for each in known if self.protocol in (ALL, each.protocol) or data not in SCENES)

    def columns(self) -> list[tuple[str, Setting]]:
        """Data sets and settings, in the order of the table."""
        return [(data, setting) for data in self.data for setting in self.settings(data)]

    def of(self, system: str, data: str, setting: Setting) -> list[RecordedRun]:
        """The runs of one cell."""
        held = [run for run in self.runs if (run.system, run.on) == (system, data)]
        return [run for run in held if data not in SCENES or run.protocol == setting.protocol]

    def cell(self, metric: str, system: str, data: str, setting: Setting) -> TableCell:
        """One score with its published neighbour."""
        measured = measure(self.of(system, data, setting), metric)
        row = PUBLISHED.get((system, data)) if setting.compared else None
        published = None if row is None else row.metrics.get(metric)
        apart = difference(measured, published) if measured is not None and published is not None else None
        return TableCell(metric, system, data, setting, measured, published, apart)

    def cells(self) -> list[TableCell]:
        """Every cell, system by system."""
        return [
            self.cell(metric, system, data, setting)
            for system in self.systems
            for data, setting in self.columns()
            for metric in METRICS
        ]

    def answers(self) -> PlainTable:
        """Table 1: what was read."""
        columns = ["", *(f"{titled(*column)} {name}" for column in self.columns() for name in METRICS.values())]
        rows = []
        for system, label in self.systems.items():
            found = [self.cell(metric, system, *column) for column in self.columns() for metric in METRICS]
            rows.append([label, *(measured_text(cell.measured, beside=cell.published) for cell in found)])
        return PlainTable("Table 1: macro-F1 and 0-1 %, measured (published)", columns, rows)

    def differences(self) -> PlainTable:
        """By how many points of exact match one system reads more than another."""
        rows = [
            [
                f"{SYSTEMS[one]} against {SYSTEMS[other].removeprefix('control: ')}",
                *(gain_text(gain(self.of(one, *at), self.of(other, *at), "exact_match")) for at in self.columns()),
            ]
            for one, other in COMPARED
        ]
        columns = ("", *(titled(*column) for column in self.columns()))
        return PlainTable("differences, points of 0-1", columns, rows, f"{GAIN_NOTE} {UNEQUAL}")

    def trained(self) -> PlainTable:
        """How each cell was trained: what is compared with what."""
        rows = []
        for data, setting in self.columns():
            for system, label in self.systems.items():
                runs = self.of(system, data, setting)
                rows += [[label, titled(data, setting), *_budget(runs[0])]] if runs else []
        columns = ("", "data", "learned from", "test glyphs", "backbone", "taught by", "controllers learned for")
        note = (
            "The first seed of each cell. A backbone that another run taught is not counted. Fresh pictures: "
            "those of all phases that the record holds."
        )
        return PlainTable("how each row was trained", columns, rows, note)

    def looking(self, data: str, setting: Setting) -> PlainTable:
        """Where the glimpses fell, beside other ways to glimpse; one line a system that has a run."""
        rows = [
            [label, *(mean_text(measure(runs, metric)) for metric in LOOKING)]
            for system, label in self.systems.items()
            if (runs := self.of(system, data, setting)) and measure(runs, LOOKING[0]) is not None
        ]
        reference = self.of("hsal", data, setting)
        for rival, label in RIVALS.items():
            found = [measure(reference, metric, of=rival) for metric in LOOKING]
            rows += [[label, *map(mean_text, found)]] if any(found) else []
        columns = ("", "on an object", "on what is said", "saliency there")
        return PlainTable(f"glimpses, % on {titled(data, setting)}", columns, rows)

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
            Job(f"{system}-{data}", system, data, setting, seed)
            for data, setting in self.columns()
            for system in SYSTEMS
            if f"{system}-{data}" in packaged_recipes()
            for seed in range(seeds)
            if seed not in {run.seed for run in self.of(system, data, setting)}
        ]


def titled(data: str, setting: Setting) -> str:
    """The data set, and of generated scenes the protocol."""
    return f"{DATA[data]}, {setting.protocol}" if setting.protocol else DATA[data]


def _place(run: RecordedRun) -> tuple[str, str, str, int]:
    """The cell of a run, and its seed."""
    return run.system, run.on, run.protocol if run.on in SCENES else "", run.seed


def _budget(run: RecordedRun) -> list[str]:
    """What a run learned from and for how long, in words."""
    recipe, phases = run.recipe, run.recipe.get("phases", ())
    later = [phase for phase in phases if phase.get("data") != OBJECTS]
    steps = sum(phase.get("steps") or 0 for phase in phases)
    if run.on not in SCENES:
        learned = "the training pictures"
    elif run.protocol == AUTHORS.protocol:
        learned = f"{SIZES['authors']['train']:,} pictures"
    else:
        learned = f"{steps * recipe.get('batch_size', 0) / 1e6:.1f} M fresh pictures"
    lengths = [f"{phase['epochs']} epochs" if phase.get("epochs") else f"{phase['steps']:,} steps" for phase in later]
    losses = {
        loss["name"] if isinstance(loss, Mapping) else str(loss) for phase in later if (loss := phase.get("loss"))
    }
    backbone = str(run.settings.get("backbone", "compact"))
    return [learned, run.evaluation.glyphs or "–", backbone, ", ".join(sorted(losses)) or "–", ", ".join(lengths)]


def training_figures(table: MultisetTable) -> list[Drawing]:
    """Figures 5 and 6 from what the runs of ``table`` kept of their way; one that none has values for is left out."""
    found = {column: _rows_by_system(table, *column) for column in table.columns()}
    drawings: list[Drawing] = []
    source = "validation while the controllers learn, the first seed of each system"
    for name, (metric, label, caption) in FIGURES.items():
        panels = {titled(*column): lines for column, held in found.items() if (lines := _lines(held, metric))}
        drawings += [Drawing(f"hsal-{name}", caption, source, _plot(panels, label))] if panels else []
    return drawings


def _plot(panels: Mapping[str, Mapping[str, Line]], label: str) -> Callable[[Theme], Figure]:
    def draw(theme: Theme) -> Figure:
        return line_panels(panels, xlabel="step", ylabel=label, order=tuple(SYSTEMS.values()), theme=theme)[0]

    return draw


def _rows_by_system(table: MultisetTable, data: str, setting: Setting) -> dict[str, Rows]:
    """Validations of a run of each system on ``data`` since its controllers learn; steps count from there.

    Of several that kept them it is the first.
    """
    found = {}
    for system, label in SYSTEMS.items():
        kept = [run for run in table.of(system, data, setting) if run.course]
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
    """Table 1, differences between systems, where the glimpses fell, and the figures."""
    return reproduction_page(
        "Saliency-based sequential attention, Table 1",
        f"{WELLECK_2017}, measured again. Numbers in the tables come from recorded runs.",
        [
            Section("Table 1", LEGEND, [table_block(table.answers()), table_block(table.trained())]),
            Section("Differences", "", [table_block(table.differences())]),
            Section("Where it glimpsed", "", [table_block(each) for each in looking]),
            Section("Figures", "", [figure.block() for figure in figures]),
        ],
        again="By training what has no run yet; SVHN has to be fetched by hand.",
        commands=(
            "saccade reproduce hsal-table1 --train --seeds 3 --out reproduction",
            "saccade train hsal-svhn-multiset --data svhn:FOLDER --out runs/svhn",
        ),
    )
