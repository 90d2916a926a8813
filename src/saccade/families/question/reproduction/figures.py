"""Figures 5a, 5b, 6 and 7 of Seo et al. (2016, arXiv:1606.02393), and the curve of the sparse gates.

Figure 5a is drawn from the records. Figures 5b, 6 and 7 need maps, so they are drawn from the shipped models; a model
that is not shipped is left out, and the figure says which are in it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean, stdev

import torch
from matplotlib.figure import Figure

from saccade.families.question.published import OTHER_PHOTOGRAPHS
from saccade.families.question.query_model import query_model
from saccade.families.question.reproduction.ablations import PenaltyPoint
from saccade.families.question.reproduction.confirm import Confirmation
from saccade.families.question.reproduction.table1 import LABELS, Table1
from saccade.families.question.scenes.data import SceneData, SceneDataConfig
from saccade.metrics.labels import SCALE_EDGES
from saccade.predict import load
from saccade.show.comparison_grid import Example, Shown, comparison_grid
from saccade.show.curves import Line, Theme, line_panels
from saccade.show.marks import Mask
from saccade.verbs.reproduction.cells import Setting
from saccade.verbs.reproduction.drawing import Drawing

IN_FIGURES = ("soft", "hard", "hattnet", "hattnet-ctx", "hattnet-ctx-sparse")
SERIES = tuple(LABELS[system] for system in IN_FIGURES)
COMPARED = {"soft": 1, "hard": 1, "hattnet-ctx": 3}
"""Models of Figures 6 and 7, and how many of their last looks are shown: as in the paper."""
FIGURE_OF = {"mref": 6, "mdist": 6, "mbg": 7}
CURVE_POINTS = 400
SCENES, EXAMPLES = 64, 4


def scale_figure(table: Table1, setting: Setting) -> Drawing | None:
    """Figure 5a: accuracy by the scale of the digit, a panel a data set; None without any run."""
    panels = {_title(data): _scale_lines(table, data, setting) for data in table.data}
    if not any(panels.values()):
        return None
    ticks = [f"{low:g}–{high:g}" for low, high in pairwise(SCALE_EDGES)]

    def draw(theme: Theme) -> Figure:
        below = "scale of the digit"
        return line_panels(panels, xlabel=below, ylabel="accuracy", ticks=ticks, order=SERIES, theme=theme)[0]

    slug = setting.label.replace(" ", "-")
    runs = [run for data in table.data for system in IN_FIGURES for run in table.of(system, data, setting)]
    drawings = ", ".join(f"{name} ({count})" for name, count in sorted(Counter(run.drawing for run in runs).items()))
    return Drawing(
        f"figure-5a-{slug}",
        f"Figure 5a. Right answers by the scale of the digit asked for ({setting.label}); bars: standard deviation "
        f"over seeds. MBG: {OTHER_PHOTOGRAPHS}.",
        f"{len(runs)} recorded runs, n = 10,000 each; scenes drawn as {drawings}",
        draw,
    )


def _scale_lines(table: Table1, data: str, setting: Setting) -> dict[str, Line]:
    lines = {}
    for system in IN_FIGURES:
        runs = table.of(system, data, setting)
        bins = [list(run.evaluation.metrics["accuracy_by_scale"].values()) for run in runs]
        if bins:
            by_bin = [[value for value in values if value is not None] for values in zip(*bins)]
            means = [fmean(values) if values else math.nan for values in by_bin]
            spread = [stdev(values) if len(values) > 1 else 0.0 for values in by_bin] if len(runs) > 1 else []
            lines[LABELS[system]] = Line(range(len(means)), means, spread=spread)
    return lines


def recall_figure(confirmed: Sequence[Confirmation], data: Sequence[str]) -> Drawing | None:
    """Figure 5b: precision and recall of the maps as segmentations, a panel a data set; None without any model."""
    panels: dict[str, dict[str, Line]] = {_title(name): {} for name in data}
    chance = {}
    for each in sorted(confirmed, key=lambda each: list(LABELS).index(each.system) if each.system in LABELS else 0):
        if each.system in IN_FIGURES:
            panels[_title(each.data)][LABELS[each.system]] = _recall_line(each)
            chance[_title(each.data)] = each.scores.maps.baselines["uniform"].means()["true_positive_strength"]
    if not any(panels.values()):
        return None

    def draw(theme: Theme) -> Figure:
        figure, axes = line_panels(
            panels, xlabel="recall", ylabel="precision", percent="both", chance=chance, span=(0, 1),
            order=SERIES, empty="no model ships", theme=theme,
        )  # fmt: skip
        axes[0].set_ylim(bottom=0)
        return figure

    counted = ", ".join(f"{each.model} n = {each.n:,}" for each in confirmed if each.system in IN_FIGURES)
    return Drawing(
        "figure-5b",
        "Figure 5b. The map as a segmentation: precision and recall of its pixels, pooled over scenes, at every "
        f"threshold. MBG: {OTHER_PHOTOGRAPHS}.",
        f"shipped models, scored just now on the test split: {counted}",
        draw,
    )


def _recall_line(each: Confirmation) -> Line:
    """The curve at evenly spaced recalls: tens of thousands of thresholds would only make a large file."""
    curve = each.scores.maps.total.curve()
    at = torch.linspace(0, 1, CURVE_POINTS, dtype=torch.float64)
    places = torch.searchsorted(curve.recall.contiguous(), at).clamp(max=len(curve.recall) - 1)
    places = torch.unique_consecutive(places)
    return Line(curve.recall[places].tolist(), curve.precision[places].tolist(), marked=False)


def penalty_figure(points: Sequence[PenaltyPoint]) -> Drawing | None:
    """What sparse gates cost and bring; None with fewer than two prices."""
    plain = next((point.accuracy.mean for point in points if point.penalty == 0), None)
    if len(points) < 2 or plain is None:
        return None
    words = [f"{point.penalty:g}" for point in points]
    lost = [plain - point.accuracy.mean for point in points]
    panels = {
        "for a map on the target": {"spread penalty": Line([point.strength.mean for point in points], lost, words)},
        "for a selective map": {"spread penalty": Line([point.selectivity.mean for point in points], lost, words)},
    }

    def draw(theme: Theme) -> Figure:
        named = ("true-positive strength", "selectivity")
        return line_panels(panels, xlabel=named, ylabel="accuracy lost", percent="both", theme=theme)[0]

    runs = sum(len(point.accuracy.seeds) for point in points)
    return Drawing(
        "sparse-gates",
        "Sparse gates: accuracy that HAttNet-CTX loses on MREF (unlimited) for the strength and the selectivity of its "
        "map; the number at each point is the price of gates that are open where nothing is.",
        f"{runs} recorded runs, n = 10,000 each",
        draw,
    )


@torch.no_grad()
def scenes_figure(confirmed: Sequence[Confirmation], data: str, device: str) -> Drawing | None:
    """Figure 6 or 7: SOFT, HARD and HAttNet-CTX look by look on the same scenes; None when none of them is shipped."""
    number = FIGURE_OF[data]
    names = {each.system: each.model for each in confirmed if each.data == data and each.system in COMPARED}
    predictors = {system: load(names[system], device) for system in COMPARED if system in names}
    if not predictors:
        return None
    split = SceneData(SceneDataConfig(data), "test", allow_pack=True)
    batch = split.take(split.one_per_scene(SCENES))
    answers = {}
    for system, predictor in predictors.items():
        given = batch.images.to(predictor.device), batch.query.to(predictor.device)
        logits = query_model(predictor).forward_raw(*given)
        answers[system] = logits["logits"].argmax(-1).cpu()  # (B,)
    right = torch.stack([answer == batch.label for answer in answers.values()]).all(0)  # (B,)
    mixed = [*right.nonzero().flatten().tolist()[: EXAMPLES // 2], *(~right).nonzero().flatten().tolist()]
    chosen = (mixed + right.nonzero().flatten().tolist()[EXAMPLES // 2 :])[:EXAMPLES]
    masks = batch.evidence()
    examples = []
    for row in chosen:
        asked = split.queries[int(batch.query[row])]
        seen = {system: predictor.look(batch.images[row], ask=asked) for system, predictor in predictors.items()}
        notes = [f"query {asked}: {split.answers[int(batch.label[row])]}"]
        notes += [f"{LABELS[system]}: {each.answer}" for system, each in seen.items()]
        shown = [Shown(LABELS[system], each.trace, COMPARED[system]) for system, each in seen.items()]
        examples.append(Example(batch.images[row], notes, shown, Mask(masks[row])))
    warning = f" MBG: {OTHER_PHOTOGRAPHS}." if data == "mbg" else ""
    return Drawing(
        f"figure-{number}-{data}",
        f"Figure {number}. {', '.join(LABELS[system] for system in predictors)} on {data.upper()}. Upper rows: the "
        "picture times all maps so far; lower rows: the map of this look, white at its peak. The digit asked for is "
        f"outlined.{warning}",
        f"{', '.join(names[system] for system in predictors)}; the first test scenes: up to two that all models answer "
        "rightly, then those that one answers wrongly",
        comparison_grid(examples),
    )


def _title(data: str) -> str:
    return f"{data.upper()} (other photographs)" if data == "mbg" else data.upper()
