"""Curves: training, precision and recall, accuracy by scale. Drawn with matplotlib (extra ``plots``), here alone.

Figures are built from objects on the Agg canvas; no display, no global state. Every drawing comes in a light and a
dark theme, so that a report can carry both.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from saccade.atomic import write_bytes
from saccade.errors import DataError, MissingExtraError, ShapeError
from saccade.show.colours import SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Theme = Literal["light", "dark"]
Row = Mapping[str, Any]
"""A line of metrics.jsonl: {"step", "phase", "kind": "train" | "validation", "values": {...}}."""


@dataclass(frozen=True)
class _Palette:
    paper: str
    ink: str
    soft: str
    rule: str
    series: Sequence[str]


_THEMES = {
    "light": _Palette("#ffffff", "#16191f", "#5a6270", "#dfe3e8", SERIES),
    "dark": _Palette(
        "#12151a", "#e7eaef", "#9aa4b2", "#2a3038", ("#6ea1f5", "#f0a35e", "#4cc3b2", "#dd86b4", "#a4adba", "#d8c64f")
    ),
}


def training_curves(
    rows: Sequence[Row], *, names: Sequence[str] | None = None, theme: Theme = "light"
) -> tuple[Figure, list[Axes]]:
    """One panel a metric, training and validation in it, phases marked by dotted lines.

    Args:
        rows: of metrics.jsonl, in order; where a step was run again after a resume, the last row counts.
        names: metrics to draw; by default all that were measured at least twice, the loss first.
        theme: for a light or a dark page.
    """
    chosen = list(names) if names is not None else metrics_with_a_course(rows)
    if not chosen:
        raise DataError("training curves: no metric was measured at two steps or more; there is no curve to draw")
    columns = min(3, len(chosen))
    lines = -(-len(chosen) // columns)
    figure = _figure(3.7 * columns, 2.7 * lines, _THEMES[theme])
    axes = []
    for number, name in enumerate(chosen):
        panel = figure.add_subplot(lines, columns, number + 1)
        _draw_metric(panel, rows, name, _THEMES[theme])
        axes.append(panel)
    for start, phase in _phase_starts(rows)[1:]:
        for panel in axes:
            panel.axvline(start, color=_THEMES[theme].soft, linewidth=0.8, linestyle=":", gid=f"phase-{phase}")
    return figure, axes


def metrics_with_a_course(rows: Sequence[Row]) -> list[str]:
    """Names measured at two steps or more in the same kind of row; the loss first, then as they appear."""
    names = dict.fromkeys(name for row in rows for name in row.get("values", {}))
    moving = [name for name in names if any(len(course(rows, name, kind)) > 1 for kind in ("train", "validation"))]
    return sorted(moving, key=lambda name: name != "loss")


def course(rows: Sequence[Row], name: str, kind: str) -> list[tuple[int, float]]:
    """(step, value) of a metric in order of the steps; values that are not finite numbers are left out."""
    points: dict[int, float] = {}
    for row in rows:
        value = row.get("values", {}).get(name)
        if row.get("kind") == kind and isinstance(value, (int, float)) and not isinstance(value, bool):
            points[int(row["step"])] = float(value)
    return sorted((step, value) for step, value in points.items() if math.isfinite(value))


def precision_recall_curves(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], *, theme: Theme = "light"
) -> tuple[Figure, Axes]:
    """Precision over recall.

    Args:
        curves: name → (recall, precision), both fractions of equal length.
        theme: for a light or a dark page.
    """
    look = _THEMES[theme]
    figure = _figure(5.4, 4.0, look)
    axes = figure.add_subplot()
    for number, (name, (recall, precision)) in enumerate(curves.items()):
        if len(recall) != len(precision):
            raise ShapeError(f"curve '{name}': precision", f"({len(recall)},), as long as recall", (len(precision),))
        axes.plot(recall, precision, color=look.series[number % len(look.series)], linewidth=1.8, label=name)
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    _dress(axes, look)
    _legend(axes, look)
    return figure, axes


def accuracy_by_scale(
    measured: Mapping[str, Sequence[float]], *, edges: Sequence[float], theme: Theme = "light"
) -> tuple[Figure, Axes]:
    """Accuracy in bins of object scale: a bar a model.

    Args:
        measured: model → accuracy (a fraction) per bin.
        edges: of the bins, one more than there are bins.
        theme: for a light or a dark page.
    """
    from matplotlib import ticker

    look, bins = _THEMES[theme], len(edges) - 1
    figure = _figure(max(5.4, 1.3 * bins), 3.6, look)
    axes = figure.add_subplot()
    width = 0.8 / max(1, len(measured))
    for number, (name, values) in enumerate(measured.items()):
        if len(values) != bins:
            raise ShapeError(f"accuracy of '{name}'", f"({bins},), one per bin", (len(values),))
        at = [place + (number - (len(measured) - 1) / 2) * width for place in range(bins)]
        axes.bar(at, values, width * 0.92, color=look.series[number % len(look.series)], label=name)
    axes.set_xticks(range(bins), [f"{low:g}–{high:g}" for low, high in pairwise(edges)])
    axes.set(xlabel="scale of the object", ylabel="accuracy", ylim=(0, 1.02))
    axes.yaxis.set_major_formatter(ticker.PercentFormatter(1.0))
    _dress(axes, look)
    _legend(axes, look)
    return figure, axes


@dataclass(frozen=True)
class Line:
    """One line of a panel."""

    x: Sequence[float]
    y: Sequence[float]
    labels: Sequence[str] = ()
    """A word beside each point, or none at all."""
    spread: Sequence[float] = ()
    """Half the height of the error bar of each point, or none at all."""
    marked: bool = True
    """Whether its points are dots: a curve of many thresholds needs none."""


def line_panels(
    panels: Mapping[str, Mapping[str, Line]],
    *,
    xlabel: str | Sequence[str],
    ylabel: str,
    ticks: Sequence[str] = (),
    percent: Literal["y", "both"] = "y",
    chance: Mapping[str, float] | None = None,
    span: tuple[float, float] | None = None,
    order: Sequence[str] = (),
    empty: str = "no run",
    theme: Theme = "light",
) -> tuple[Figure, list[Axes]]:
    """Panels side by side that share their y axis and their series: a name has the same colour in each.

    Args:
        panels: title → series → line.
        xlabel: of all panels, or one for each.
        ylabel: of the first.
        ticks: words for x = 0, 1, 2, …, where x is a category.
        percent: which axes hold fractions that are shown in percent.
        chance: title → the height of a dashed line for what needs no skill.
        span: of x; by default what the lines need.
        order: series in the order of their colours, so that figures agree; others come after them.
        empty: what a panel without a line says.
        theme: for a light or a dark page.
    """
    from matplotlib import ticker

    if not panels:
        raise DataError("line panels: no panel came; there is nothing to draw")
    look = _THEMES[theme]
    figure = _figure(1.1 + 3.3 * len(panels), 3.5, look)
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    names = list(dict.fromkeys([*order, *(name for lines in panels.values() for name in lines)]))
    xlabels = [xlabel] * len(panels) if isinstance(xlabel, str) else list(xlabel)
    axes: list[Axes] = []
    for panel, (title, lines), below in zip(drawn, panels.items(), xlabels):
        for name, line in lines.items():
            _draw_line(panel, name, line, look.series[names.index(name) % len(look.series)], look)
        if not lines:
            panel.text(0.5, 0.5, empty, transform=panel.transAxes, ha="center", color=look.soft, fontsize=11)
        if chance and title in chance:
            panel.axhline(chance[title], color=look.soft, linewidth=1, linestyle="--", label="chance")
        panel.set_title(title, loc="left", fontsize=10.5, color=look.ink, fontweight="bold")
        panel.set_xlabel(below, fontsize=9)
        if ticks:
            panel.set_xticks(range(len(ticks)), ticks)
            panel.set_xlim(-0.3, len(ticks) - 0.7)
        elif percent == "both":
            panel.xaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=None))
            panel.xaxis.set_major_locator(ticker.MaxNLocator(5))
        if span is not None:
            panel.set_xlim(*span)
        _dress(panel, look)
        axes.append(panel)
    axes[0].set_ylabel(ylabel, fontsize=9)
    axes[0].yaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=None))
    entries = {name: handle for panel in axes for handle, name in zip(*panel.get_legend_handles_labels())}
    if len(entries) > 1:
        figure.legend(
            entries.values(), entries.keys(), frameon=False, fontsize=8.5, labelcolor=look.ink,
            loc="outside upper left", ncols=len(entries), handlelength=1.6, columnspacing=1.4,
        )  # fmt: skip
    return figure, axes


def _draw_line(axes: Axes, name: str, line: Line, colour: str, look: _Palette) -> None:
    for what, given in (("y", line.y), ("labels", line.labels), ("spread", line.spread)):
        if (what == "y" or given) and len(given) != len(line.x):
            raise ShapeError(f"line '{name}': {what}", f"({len(line.x)},), one per point", (len(given),))
    marker = "o" if line.marked else ""
    axes.plot(line.x, line.y, color=colour, linewidth=1.7, marker=marker, markersize=4.5, label=name)
    if line.spread:
        axes.errorbar(line.x, line.y, yerr=line.spread, fmt="none", ecolor=colour, elinewidth=1, capsize=2.5)
    for x, y, word in zip(line.x, line.y, line.labels):
        axes.annotate(word, (x, y), (5, 5), textcoords="offset points", fontsize=8, color=look.soft)


def figure_svg(figure: Figure) -> str:
    """The figure as SVG text, the same text for the same figure."""
    buffer = io.StringIO()
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "saccade", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def write_figure(figure: Figure, path: str | Path) -> Path:
    """Write the figure as PNG or SVG, by the ending of ``path``."""
    path = Path(path)
    if path.suffix == ".svg":
        return write_bytes(path, figure_svg(figure).encode())
    if path.suffix != ".png":
        raise DataError(f"{path}: curves are written as .png or .svg")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160)
    return write_bytes(path, buffer.getvalue())


def _figure(width: float, height: float, look: _Palette) -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("drawing curves", "plots") from error
    figure = Figure(figsize=(width, height), layout="constrained", facecolor=look.paper)
    FigureCanvasAgg(figure)
    return figure


def _draw_metric(axes: Axes, rows: Sequence[Row], name: str, look: _Palette) -> None:
    from matplotlib import ticker

    drawn = 0
    for kind, colour in (("train", look.series[4]), ("validation", look.series[0])):
        points = course(rows, name, kind)
        if points:
            steps, values = zip(*points)
            marker = "o" if len(points) < 15 else ""
            axes.plot(steps, values, color=colour, linewidth=1.7, marker=marker, markersize=3.5, label=kind)
            drawn += 1
    if not drawn:
        raise DataError(f"training curves: no row holds the metric '{name}'")
    axes.set_title(name.replace("_", " "), loc="left", fontsize=10.5, color=look.ink, fontweight="bold")
    axes.set_xlabel("step", fontsize=9)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    _dress(axes, look)
    if drawn > 1:
        _legend(axes, look, side="right")  # the title stands on the left


def _phase_starts(rows: Sequence[Row]) -> list[tuple[int, str]]:
    """(first step, name) of each phase, in order."""
    starts: dict[str, int] = {}
    for row in rows:
        starts.setdefault(str(row.get("phase", "")), int(row["step"]))
    return [(step, name) for name, step in starts.items()]


def _dress(axes: Axes, look: _Palette) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(look.soft)
        axes.spines[side].set_linewidth(0.8)
    axes.tick_params(colors=look.soft, labelsize=8.5, width=0.8)
    axes.xaxis.label.set_color(look.soft)
    axes.yaxis.label.set_color(look.soft)
    axes.grid(axis="y", color=look.rule, linewidth=0.7)
    axes.set_axisbelow(True)
    axes.patch.set_alpha(0)


def _legend(axes: Axes, look: _Palette, *, side: Literal["left", "right"] = "left") -> None:
    """Above the axes, in one line, where it can hide nothing."""
    entries = len(axes.get_legend_handles_labels()[1])
    axes.legend(
        frameon=False, fontsize=8.5, labelcolor=look.ink, loc="lower left" if side == "left" else "lower right",
        bbox_to_anchor=(0 if side == "left" else 1, 1), ncols=min(4, entries), borderaxespad=0.3, handlelength=1.4,
    )  # fmt: skip
