"""Table 1 of Seo et al. (2016, arXiv:1606.02393) from recorded runs: accuracy (a), attention on the target (b), more.

Every cell says its mean ± standard deviation over seeds, the number of seeds and the n of each; a cell of the paper
stands beside the measured one that was made as it was (``authors`` sizes, merged glyphs), with the difference and its
95 % interval. Beyond the paper: disjoint glyphs, training without end, controls, bounds, selectivity, causal tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from saccade.engine.recipe import packaged_recipes
from saccade.errors import ConfigError, nearest
from saccade.families.question.published import OTHER_PHOTOGRAPHS, PUBLISHED
from saccade.families.question.scenes.task import FEW
from saccade.models.io.facts import ON_GRIDS
from saccade.recorded import Measured, RecordedRun, difference, measure
from saccade.verbs.plain_table import PlainTable
from saccade.verbs.reproduction.cells import (
    NO_RUN,
    Setting,
    TableCell,
    difference_text,
    mean_text,
    measured_text,
    seeds_text,
)
from saccade.verbs.reproduction.training import Job

Protocol = Literal["authors", "unlimited", "all"]
DATA = ("mref", "mdist", "mbg")


@dataclass(frozen=True)
class Row:
    """A row of the tables."""

    system: str
    label: str
    kind: Literal["paper", "ours", "control", "bound"]


ROWS = (
    Row("stn-plain", "STN, plain", "paper"),
    Row("stn", "STN, bounded", "paper"),
    Row("soft", "SOFT", "paper"),
    Row("hard", "HARD", "paper"),
    Row("hattnet", "HAttNet", "paper"),
    Row("hattnet-ctx", "HAttNet-CTX", "paper"),
    Row("hattnet-ctx-varied", "CTX, varied", "ours"),
    Row("hattnet-ctx-sparse", "CTX, sparse", "ours"),
    Row("stn-tuned", "STN, tuned", "ours"),
    Row("cross", "control: cross", "control"),
    Row("film", "control: FiLM", "control"),
    Row("blind", "control: blind", "control"),
    Row("uniform", "bound: even", "bound"),
    Row("all_objects", "bound: all digits, one grid", "bound"),
    Row("grid_oracle", "bound: best cell, one grid", "bound"),
    Row("all_objects-gated", "bound: all digits, four grids", "bound"),
    Row("grid_oracle-gated", "bound: best map, four grids", "bound"),
)
GATED = "-gated"
"""Ends the name of a bound that is made on the grids of gates."""
LABELS = {row.system: row.label for row in ROWS}
DRAWINGS = (
    "Drawing: with the authors' sizes, scenes are drawn as their generator draws them (authors); unlimited, by "
    "saccade's own blending (blend). A cell whose runs are drawn otherwise names their drawing behind its count; both: "
    "half of the scenes each. Runs of different drawings are never averaged"
)
"""Said under every table of accuracies."""
LEGEND = (
    "Each cell: mean ± standard deviation over seeds, and seeds × test examples. Published numbers are compared with "
    "the authors' sizes and merged glyphs, as their code has them; the interval of a difference counts the published "
    "number as exact. The released code trains by RMSprop with a dropout of 0.5; ours by AdamW with a weight decay "
    f"of 0.3 and no dropout, for 54 epochs, HAttNet-CTX 60, as tried on SOFT and validation pictures. {DRAWINGS}. "
    "varied: a part of each picture at a time, averaged weights, 100 epochs. sparse: a price on gates "
    "open where nothing is. STN, plain: the window of its paper, any affine map. STN, bounded: the window stays inside "
    "the picture and leaves its start slowly; which of the two the paper had, it does not say. STN, tuned: attention "
    "points, the window is at "
    "most half of the picture, and in training the localisation has to answer too. Controls: one cross-attention head; "
    "the query at every stage (FiLM) and no attention; no query. Bounds, through the same projection: attention spread "
    "evenly, on all digits alike, and the most that any weights can reach. One grid: the 4×4 cells of SOFT, HARD and "
    "cross, where that is the best single cell. Four grids: the 49×49, 23×23, 10×10 and 4×4 cells of HAttNet, "
    "multiplied as its maps are; – until a run was scored on all four."
)

SETTINGS = (
    Setting("authors", "merged", compared=True, drawing="authors"),
    Setting("authors", "disjoint", drawing="authors"),
    Setting("unlimited", "disjoint"),
)


@dataclass(frozen=True)
class Table1:
    """The recorded runs, and every table that is made of them.

    Args:
        runs: of any systems, data sets and protocols.
        data: data sets to show.
        protocol: which settings to show.
    """

    runs: Sequence[RecordedRun]
    data: Sequence[str] = DATA
    protocol: Protocol = "all"

    def __post_init__(self) -> None:
        for name in self.data:
            if name not in DATA:
                raise ConfigError(f"data '{name}': {nearest(name, DATA)}")
        if self.protocol not in (*(setting.protocol for setting in SETTINGS), "all"):
            known = ("authors", "unlimited", "all")
            raise ConfigError(f"protocol '{self.protocol}': {nearest(self.protocol, known)}")

    def with_runs(self, more: Iterable[RecordedRun]) -> Table1:
        """The same table with further runs; where a cell already has a run of that seed, that one stays."""

        def cell(run: RecordedRun) -> tuple[str | int, ...]:
            return run.system, run.on, run.protocol, run.glyphs, run.drawing, run.seed

        there = {cell(run) for run in self.runs}
        return replace(self, runs=(*self.runs, *(run for run in more if cell(run) not in there)))

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The columns."""
        return tuple(setting for setting in SETTINGS if self.protocol in (setting.protocol, "all"))

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of the paper, ours, and whatever else was recorded on these data sets."""
        others = {run.system for run in self.runs if run.on in DATA} - LABELS.keys()
        return ROWS + tuple(Row(system, system, "ours") for system in sorted(others))

    def of(self, system: str, data: str, setting: Setting) -> list[RecordedRun]:
        """The runs of one cell, all of one drawing: that of the setting, or another if there are none of it."""
        wanted = (system, data, setting.protocol, setting.glyphs)
        found = [run for run in self.runs if (run.system, run.on, run.protocol, run.glyphs) == wanted]
        drawings = sorted(
            {run.drawing for run in found}, key=lambda name: (name != setting.drawing, name != "blend", name)
        )
        return [run for run in found if run.drawing == drawings[0]]

    def drawn(self, system: str, data: str, setting: Setting) -> str:
        """The drawing of the runs of one cell, if it is not that of the setting."""
        found = self.of(system, data, setting)
        return found[0].drawing if found and found[0].drawing != setting.drawing else ""

    def cell(self, metric: str, system: str, data: str, setting: Setting) -> TableCell:
        """One score with its published neighbour."""
        is_bound = any(row.kind == "bound" and row.system == system for row in ROWS)
        measured = self._bound(metric, system, data, setting) if is_bound else measure(
            self.of(system, data, setting), metric
        )  # fmt: skip
        row = PUBLISHED.get((system, data))
        published = row.metrics.get(metric) if row and setting.compared else None
        apart = difference(measured, published) if measured is not None and published is not None else None
        reason = OTHER_PHOTOGRAPHS if data == "mbg" else ""
        drawn = self.drawn(system, data, setting)
        return TableCell(metric, system, data, setting, measured, published, apart, reason, drawn)

    def _bound(self, metric: str, baseline: str, data: str, setting: Setting) -> Measured | None:
        """A baseline on the grid of the 4×4 models, or on the four of gated ones, as the first of them recorded it."""
        gated, single = ("hattnet", "hattnet-ctx", "hattnet-ctx-sparse"), ("soft", "hard")
        systems = gated if baseline.endswith(GATED) else single if baseline in ON_GRIDS else (*single, *gated)
        for system in systems:
            found = measure(self.of(system, data, setting), metric, of=baseline.removesuffix(GATED))
            if found is not None:
                return found
        return None

    def cells(self, metrics: Iterable[str] = ("accuracy", "true_positive_strength")) -> list[TableCell]:
        """Every cell of the given scores, in the order of the tables."""
        return [
            self.cell(metric, row.system, data, setting)
            for metric in metrics
            for data in self.data
            for row in self.rows_of(metric)
            for setting in self.settings
        ]

    def rows_of(self, metric: str) -> list[Row]:
        """Rows that can have a score: bounds look, and answer nothing."""
        return [row for row in self.rows if row.kind != "bound" or metric not in ("accuracy", "swapped_query")]

    def missing(self, seeds: int) -> list[Job]:
        """The runs of seeds 0 … ``seeds`` − 1 that cells lack and saccade has a recipe for."""
        recipes = packaged_recipes()
        jobs = []
        for data in self.data:
            for row in self.rows:
                if (recipe := f"{row.system}-{data}") not in recipes:
                    continue
                for setting in self.settings:
                    runs = self.of(row.system, data, setting)
                    there = {run.seed for run in runs if run.drawing == setting.drawing}
                    jobs += [Job(recipe, row.system, data, setting, seed) for seed in range(seeds) if seed not in there]
        return jobs

    def accuracy(self, data: str) -> PlainTable:
        """Table 1a for one data set."""
        return self._beside_published("accuracy", data, f"Table 1a: accuracy % on {data.upper()}")

    def strength(self, data: str) -> PlainTable:
        """Table 1b for one data set."""
        title = f"Table 1b: true-positive strength % on {data.upper()}"
        return self._beside_published("true_positive_strength", data, title)

    def _beside_published(self, metric: str, data: str, title: str) -> PlainTable:
        columns, rows = ["system"], []
        for setting in self.settings:
            columns += ["paper", setting.label, "difference [95 %]"] if setting.compared else [setting.label]
        for row in self.rows_of(metric):
            line = [row.label]
            for setting in self.settings:
                cell = self.cell(metric, row.system, data, setting)
                line += [printed(cell)] if setting.compared else []
                line += ["–" if row.kind == "bound" and cell.measured is None else _text(cell)]
                line += [difference_text(cell.difference, cell.not_comparable)] if setting.compared else []
            rows.append(line)
        note = f"{data.upper()}: {OTHER_PHOTOGRAPHS}. {self.photographs()}" if data == "mbg" else ""
        return PlainTable(f"{title} ({OTHER_PHOTOGRAPHS})" if note else title, columns, rows, note.strip())

    def photographs(self) -> str:
        """Which photographs lay behind the test scenes of MBG, and how many runs were scored on each set."""
        counts = Counter(run.evaluation.backgrounds or "not recorded" for run in self.runs if run.on == "mbg")
        if not counts:
            return ""
        few = f" shipped-…: {FEW}." if any(name.startswith("shipped-") for name in counts) else ""
        listed = ", ".join(f"{name} ({count} run{'s' * (count > 1)})" for name, count in sorted(counts.items()))
        return f"Photographs behind the test scenes, by set, number and digest: {listed}.{few}"

    def looking(self, data: str) -> PlainTable:
        """What the maps and the causal tests say: one line a cell that has a run."""
        metrics = ("selectivity", "pointing", "causal_follow", "causal_hold", "swapped_query")
        rows = []
        for row in self.rows:
            for setting in self.settings[-1:] if row.kind == "bound" else self.settings:  # bounds hardly change
                held = [self.cell(metric, row.system, data, setting).measured for metric in metrics]
                first = next((found for found in held if found is not None), None)
                if first is not None:
                    drawn = self.drawn(row.system, data, setting)
                    told = f"{setting.label}\n{seeds_text(first)}" + (f", {drawn}" if drawn else "")
                    rows.append([row.label, told, *map(mean_text, held)])
        columns = ("system", "training\nseeds × n", "selective", "pointing", "follows", "holds", "swapped")
        title = f"where it looked, and what an answer follows, % on {data.upper()}"
        return PlainTable(
            f"{title} ({OTHER_PHOTOGRAPHS})" if data == "mbg" else title,
            columns,
            rows,
            "selective: attention on the digit asked for ÷ on all digits. pointing: the peak lies on it. follows: the "
            "digit is recoloured and the answer goes with it. holds: another digit is recoloured or removed and the "
            "answer stays. swapped: asked for another digit, it still says the first one's colour; 20 is ideal, 42 is "
            "a model that ignores the question.",
        )

    def short(self) -> PlainTable:
        """Systems × data sets, as the paper prints it: measured (published), and training without end."""
        compared, unlimited = SETTINGS[0], SETTINGS[-1]
        columns, rows = ["accuracy %"], []
        for data in self.data:
            columns += [f"{data.upper()} as published", f"{data.upper()} unlimited"]
        for row in self.rows_of("accuracy"):
            line, found = [row.label], False
            for data in self.data:
                cell, fresh = (self.cell("accuracy", row.system, data, setting) for setting in (compared, unlimited))
                found |= cell.measured is not None or fresh.measured is not None
                line += [
                    _text(cell, beside=cell.published),
                    _text(fresh),
                ]
            if row.kind == "paper":
                rows.append(line)
            elif found:  # what the paper does not have need not be there in both settings
                rows.append(["–" if text == NO_RUN else text for text in line])
        note = (
            "Measured (published); below it, seeds × test examples. As published: the sizes of the authors' code, "
            "glyphs shared between training and test; unlimited: fresh scenes, disjoint glyphs. –: no run, and nothing "
            "published. "
            f"{DRAWINGS}. MBG: {OTHER_PHOTOGRAPHS}. {self.photographs()}"
        ).strip()
        return PlainTable("accuracy, measured (published)", columns, rows, note)


def printed(cell: TableCell) -> str:
    """The published number in percent; that of a cell made on other photographs says where it was measured."""
    return "–" if cell.published is None else f"{100 * cell.published:.2f}{_where(cell)}"


def _text(cell: TableCell, beside: float | None = None) -> str:
    """What was measured, with the published value ``beside`` it in brackets."""
    return measured_text(cell.measured, beside=beside, where=_where(cell), drawn=cell.drawn)


def _where(cell: TableCell) -> str:
    return " on SUN" if cell.not_comparable else ""
