"""The tables of the papers: each system's published number beside what was measured here, from ``results/``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, cast

from saccade.errors import ConfigError, nearest
from saccade.families.registry import recipes
from saccade.papers.results import Measured, PaperRun, measure, published, recorded_runs, results_folder, rows
from saccade.show.tables import ShownTable

if TYPE_CHECKING:
    from torch import Tensor

    from saccade.families.question.scenes import SceneDataConfig
    from saccade.models.base import QueryModel
    from saccade.predict import Predictor

CAUSAL = "causal-benchmark"
NO_RUN = "no run"
COUNTS = frozenset({"failed_tasks"})  # Scores that are no fractions.
STRENGTH = "true_positive_strength"
# Two that the strength of Table 1b may have meant: saccade extends the edge cells to the border everywhere; the other
# lets maps fall to zero one cell beyond the outermost. The paper sums "attention probabilities within the ground-
# truth segmentation" and divides by the sum of all. It says neither which map of several that is, nor how a 4×4 map
# was laid on the picture.
PROJECTIONS = ("edge_extended", "zero_border")
# Does the map lie on what was asked for, and go along with it?
SCENE = (
    "map_follow", "map_turn", "map_specific", "map_hold",
    "true_positive_strength", "selectivity", "pointing", "iou",
)  # fmt: skip
# Does the map show what the answer depends on? Of the last four but insertion, less is better.
MODEL = ("cause_top", "cause_pairs", "misplaced", "off_objects", "deletion", "insertion")
KINDS = ("map", "rival", "truth")  # A map competes; a rival knows nothing of the model; truth was told the answer.


@dataclass(frozen=True)
class PaperTable:
    """A table that ``saccade reproduce`` prints."""

    title: str
    metrics: tuple[str, ...] = ()
    further: tuple[str, ...] = ()  # Scores that are not printed and that :attr:`Reproduction.cells` has too.
    # Rows that are no models: the system whose runs have it, and what it is called among their baselines.
    bounds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    # The paper's figures, each with the command that draws it from a shipped model.
    figures: Mapping[str, str] = field(default_factory=dict)
    note: str = ""  # What else must be known to compare.


_UNCHECKED = " The published numbers were quoted from memory and not checked against the papers."
_LOOK = "saccade look --example digits --filmstrip --out DIR"
_TASKS = tuple(f"accuracy_qa{number}" for number in range(1, 21))

TABLES = {
    "hattnet-table1": PaperTable(
        "Seo et al. 2016, Tables 1a and 1b: attention systems on MREF, MDIST and MBG",
        ("accuracy", STRENGTH),
        ("selectivity", "pointing", "causal_follow", "causal_hold", "swapped_query"),
        {
            "uniform": ("soft", "uniform"),
            "best cell, one grid": ("soft", "grid_oracle"),
            "best map, four grids": ("hattnet-ctx", "grid_oracle"),
        },
        {
            "Figures 1, 6": f"{_LOOK} --ask 7 --model hattnet-ctx-mref",
            "Figure 4": "saccade data make mref --out DIR",
            "Figure 7": f"{_LOOK} --ask 7 --model hattnet-ctx-mbg",
        },
    ),
    "hattnet-table2": PaperTable("Seo et al. 2016, Table 2: attributes on Visual Genome", ("weighted_map",)),
    "hsal-table1": PaperTable(
        "Welleck et al. 2017, Table 1: multisets read by saliency and reinforcement",
        ("macro_f1", "exact_match"),
        ("glimpse_in_evidence", "glimpse_on_label", "attn_saliency"),
        figures={"Figures 2, 3, 4, 12": f"{_LOOK} --model hsal-mnist-multiset"},
    ),
    "sat-table1": PaperTable(
        "Xu et al. 2015, Table 1: captions with soft and hard attention",
        ("bleu_1_nobp", "bleu_2_nobp", "bleu_3_nobp", "bleu_4_nobp", "meteor"),
        ("bleu_1_stop", "bleu_2_stop", "bleu_3_stop", "bleu_4_stop", "cider", "length_ratio", STRENGTH),
        note=" Ours are learned without punctuation, and scored so; the published BLEU has the full stop as a word, as "
        "bleu_1_stop to bleu_4_stop have.",
        figures={
            "Figures 2, 3, 5, 6 to 15": f"{_LOOK} --model sat-soft-scenes, and --model sat-hard-scenes",
        },
    ),
    "memory-table": PaperTable(
        "Sukhbaatar et al. 2015, Tables 1 to 3, and Kumar et al. 2016, Table 1: the 20 bAbI tasks",
        ("mean_error", "failed_tasks"),
        _TASKS,
        note=_UNCHECKED,
        figures={"hops on example stories": "saccade look STORY.txt --ask QUESTION --model memn2n-babi --out DIR"},
    ),
    "ran-table": PaperTable(
        "Wang et al. 2017, Tables 1 and 3: residual attention networks on CIFAR-10",
        ("accuracy",),
        note=_UNCHECKED,
    ),
    "racnn-table": PaperTable(
        "Fu et al. 2017, Table 2: what each scale of RA-CNN says, beside controls of the zoom",
        ("scale1_accuracy", "scale2_accuracy", "scale3_accuracy", "accuracy"),
        ("scale2_covers_evidence", "scale3_covers_evidence", "moved_follow"),
        note=_UNCHECKED,
        figures={"the zoom": "saccade look --example stripes --filmstrip --model racnn-details --out DIR"},
    ),
    "crown-table": PaperTable(
        "What colour is the crown? Questions about the parts of birds (CUB-200-2011), in no paper",
        ("accuracy", "swapped_query", "pointing_at"),
        figures={"a bird": "saccade look BIRD.jpg --ask crown --model crown-cub --filmstrip --out DIR"},
    ),
    CAUSAL: PaperTable("Leaderboard of maps on scenes that are rendered again, with planted causes"),
}


@dataclass(frozen=True)
class PaperCell:
    """One score of one system on one data set, published and measured."""

    system: str
    data: str
    protocol: str
    drawing: str
    metric: str
    published: float | None = None  # Only where our runs were made as the paper's was.
    measured: Measured | None = None
    command: str = ""  # What trained the first of its runs, or would train one.

    @property
    def difference(self) -> dict[str, float | None] | None:
        """Measured minus published, with the interval of what was measured."""
        if self.measured is None or self.published is None:
            return None
        ends = {"value": self.measured.mean, "low": self.measured.low, "high": self.measured.high}
        return {name: None if end is None else end - self.published for name, end in ends.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain values; scores are fractions."""
        return {**asdict(self), "difference": self.difference}


@dataclass(frozen=True)
class Reproduction:
    """A table of a paper with everything that belongs to it."""

    table: str
    title: str
    tables: Sequence[ShownTable]  # What is printed, in order.
    cells: Sequence[PaperCell]
    figures: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        cells = [cell.to_json() for cell in self.cells]
        rows = [dict(zip(table.columns, row)) for table in self.tables for row in table.rows] if not cells else []
        return {"table": self.table, "title": self.title, "cells": cells, "rows": rows, "figures": dict(self.figures)}

    def markdown(self) -> str:
        """The tables as a document."""
        parts = [f"## {table.caption}\n\n{table.markdown()}\n{table.note}\n" for table in self.tables]
        return f"# {self.title}\n\n" + "\n".join(parts)


def reproduction(name: str) -> Reproduction:
    """The table called ``name`` from the results that come with saccade, or a ConfigError that names the nearest."""
    if name not in TABLES:
        raise ConfigError(f"no table '{name}': {nearest(name, TABLES)}")
    table = TABLES[name]
    if name == CAUSAL:
        return Reproduction(name, table.title, causal_tables(), [], table.figures)
    cells = cells_of(name)
    notes = dict.fromkeys(row.conditions for row in published() if row.table == name and row.conditions)
    note = "Measured ± standard deviation over seeds (published), %. " + ". ".join(notes) + "." + table.note
    tables = [ShownTable(*beside(cells, table.metrics), table.title, note)]
    if name == "hattnet-table1":
        tables.append(strength_table())
    trained = dict.fromkeys((cell.system, cell.data, cell.protocol, cell.drawing, cell.command) for cell in cells)
    commands = [[", ".join(filter(None, row[:-1])), row[-1]] for row in trained if row[-1]]
    tables.append(ShownTable(("row", "command"), commands, "What trains each row"))
    if table.figures:
        tables.append(ShownTable(("figure", "command"), [*table.figures.items()], "Figures, from shipped models"))
    return Reproduction(name, table.title, tables, cells, table.figures)


def cells_of(name: str) -> list[PaperCell]:
    """Every cell of a table: first the systems of the paper in its order, then the others."""
    table = TABLES[name]
    groups: dict[tuple[str, str, str, str], list[PaperRun]] = {}
    for run in recorded_runs().values():
        if run.kind == "main" and run.table == name:
            groups.setdefault((run.system, run.data, run.label, run.drawing), []).append(run)
    printed = {(row.system, row.data, row.protocol, row.metric): row.value for row in published() if row.table == name}
    for system, data, protocol, _ in printed:
        if system not in table.bounds and not any(key[:3] == (system, data, protocol) for key in groups):
            groups[system, data, protocol, ""] = []
    places = list(dict.fromkeys(system for system, *_ in (*printed, *sorted(groups))))
    cells = []
    sets = list(dict.fromkeys(data for _, data, *_ in (*printed, *sorted(groups))))
    for key in sorted(groups, key=lambda key: (sets.index(key[1]), places.index(key[0]), *key[2:])):
        command = next((run.command for run in groups[key]), "") or training_command(*key[:3])
        for metric in (*table.metrics, *table.further):
            published_value = printed.get((key[0].partition("-authors")[0], *key[1:3], metric))
            cells.append(PaperCell(*key, metric, published_value, measure(groups[key], metric), command))
    for bound, (system, baseline) in table.bounds.items():
        for key, runs in groups.items():
            measured = measure(runs, f"baseline/{baseline}/{STRENGTH}") if key[0] == system else None
            if measured is not None:
                measured = replace(measured, low=None, high=None)
                cells.append(PaperCell(bound, *key[1:], STRENGTH, printed.get((bound, *key[1:3], STRENGTH)), measured))
    return [cell for cell in cells if cell.metric in table.metrics or cell.measured is not None]


def training_command(system: str, data: str, protocol: str) -> str:
    """The command that would train a cell without a run; empty where there is no recipe."""
    recipe = next((name for name in (f"{system}-{data}", system) if name in recipes()), None)
    return "" if recipe is None else f"saccade train {recipe} --out runs/{recipe}  ({protocol or data}: {NO_RUN})"


def beside(cells: Iterable[PaperCell], metrics: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of a table: one line a system, data set and protocol; published numbers in brackets."""
    lines: dict[tuple[str, ...], dict[str, PaperCell]] = {}
    for cell in cells:
        lines.setdefault((cell.system, cell.data, cell.protocol, cell.drawing), {})[cell.metric] = cell
    rows = []
    for key, by_metric in lines.items():
        first = next((cell.measured for cell in by_metric.values() if cell.measured is not None), None)
        counted = NO_RUN if first is None else f"{len(first.seeds)} × {first.n:,}"
        texts = [cell_text(by_metric.get(metric)) for metric in metrics]
        rows.append([*key[:2], ", ".join(filter(None, key[2:])), *texts, counted])
    heads = [metric.removesuffix("_nobp").replace("_", " ") for metric in metrics]
    return ["system", "data", "protocol, drawing", *heads, "seeds × n"], rows


def cell_text(cell: PaperCell | None) -> str:
    """``98.07 ± 0.16 (98.51)``; a dash where nothing is known."""
    if cell is None or (cell.measured is None and cell.published is None):
        return "–"
    published = "" if cell.published is None else f"({number(cell.published, cell.metric)})"
    if cell.measured is None:
        return published
    spread = "" if cell.measured.std is None else f" ± {number(cell.measured.std, cell.metric)}"
    return f"{number(cell.measured.mean, cell.metric)}{spread} {published}".rstrip()


def number(value: float, metric: str) -> str:
    """A fraction in percent; a count as it is."""
    return f"{value:.0f}" if metric in COUNTS else f"{100 * value:.2f}"


def causal_tables() -> list[ShownTable]:
    """Two tables for each set, best maps first; below each, how well two halves of the scenes agree."""
    measured = list(rows(results_folder() / "causal.csv"))
    tables = []
    for name in dict.fromkeys(row["set"] for row in measured):
        of_set = [row for row in measured if (row["set"], row["what"]) == (name, "value")]
        halves = next(row for row in of_set if row["method"] == "split-half tau")
        for title, scores in (("about the scene", SCENE), ("about the model", MODEL)):
            maps = [row for row in of_set if row["kind"] in KINDS and any(row[score] for score in scores)]
            maps.sort(key=lambda row: (KINDS.index(row["kind"]), -float(row[scores[0]] or "-inf")))
            lines = []
            for row in maps:
                texts = [percent(row[score]) for score in scores]
                lines.append([row["model"], row["method"], *texts, f"{int(row['n']):,}"])
            if not lines:
                continue  # Refused, for all models of the set.
            taus = ", ".join(f"{score} {float(halves[score]):.2f}" for score in scores if halves[score])
            note = f"n: questions or photographs, one seed. Kendall's τ between two halves of them: {taus}."
            columns = ["model", "map", *(score.replace("_", " ") for score in scores), "n"]
            tables.append(ShownTable(columns, lines, f"{title}, {name}, %", note))
    return tables


def percent(text: str) -> str:
    """A fraction as it stands in a CSV, in percent; a dash where there is none."""
    return f"{100 * float(text):.1f}" if text else "–"


def zero_border(maps: Tensor, frame: Tensor, size: tuple[int, int]) -> Tensor:
    """Bilinear between receptive-field centres, falling to zero one cell beyond the outermost: (B,h,w) → (B,H,W)."""
    from saccade import geometry

    inverse = geometry.invert(frame.double().to(maps.device))
    return geometry.sample(maps.double().unsqueeze(1), inverse, size, padding_mode="zeros").squeeze(1).to(maps.dtype)


def strengths(predictor: Predictor, n: int, scenes: SceneDataConfig | None = None) -> dict[str, float]:
    """By ``PROJECTION/product`` (all maps multiplied) and ``PROJECTION/last``: on the first ``n`` test questions.

    ``scenes`` says which scenes; None: fresh ones, in our own drawing.
    """
    import torch

    from saccade.families.question.scenes import SceneData, SceneDataConfig
    from saccade.geometry import project
    from saccade.metrics.intervals import mean_defined
    from saccade.metrics.maps.localisation import true_positive_strength
    from saccade.tasks.evaluate import in_parts

    model = cast("QueryModel", predictor.model)
    scenes = scenes or SceneDataConfig(predictor.facts.data["name"])
    split = SceneData(scenes, "test", device=predictor.device, allow_pack=True)
    batch = split.take(torch.arange(n))
    size = (split.spec.size, split.spec.size)
    with torch.no_grad():
        trace = model.wrap(in_parts(model, batch.images, batch.query), size).trace
    grids = [(look.weights, look.frame) for look in trace.looks if look.weights is not None and look.frame is not None]
    evidence, values = batch.evidence(), {}
    for name, lay in zip(PROJECTIONS, (project, zero_border)):
        laid = torch.stack([lay(weights, frame, size) for weights, frame in grids])  # (L,B,H,W)
        for which, maps in (("product", laid.prod(0)), ("last", laid[-1])):
            values[f"{name}/{which}"] = mean_defined(true_positive_strength(maps, evidence))
    return values


def strength_table() -> ShownTable:
    """What :func:`strengths` gave, one line a model, the mean over its seeds."""
    columns = [f"{projection}/{which}" for projection in PROJECTIONS for which in ("product", "last")]
    groups: dict[str, list[PaperRun]] = {}
    for run in recorded_runs().values():
        if f"strength/{columns[0]}" in run.scores:
            groups.setdefault(re.sub(r"-seed\d+$", "", run.run), []).append(run)
    lines, counts = [], set()
    for name, runs in groups.items():
        counts.add(runs[0].scores[f"strength/{columns[0]}"].n)
        cells = [[100 * run.scores[f"strength/{column}"].value for run in runs] for column in columns]
        spread = [f" ± {stdev(cell):.1f}" if len(cell) > 1 else "" for cell in cells]
        lines.append([name, *(f"{fmean(cell):.1f}{around}" for cell, around in zip(cells, spread)), str(len(runs))])
    heads = [column.replace("_", " ").replace("/", ", ") for column in columns]
    note = f"The first {min(counts):,} test questions. The paper does not say which of these it means."
    return ShownTable(["model", *heads, "runs"], lines, "True-positive strength % under two projections", note)
