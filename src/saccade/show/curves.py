"""Curves of training. Drawn with matplotlib (extra ``plots``), here alone.

Figures are built from objects on the Agg canvas; no display, no global state. Every drawing comes in a light and a
dark theme, so that a report can carry both.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from saccade.errors import MissingExtraError
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


def figure_svg(figure: Figure) -> str:
    """The figure as SVG text, the same text for the same figure."""
    buffer = io.StringIO()
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "saccade", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


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
    axes.set_title(name.replace("_", " "), loc="left", fontsize=10.5, color=look.ink, fontweight="bold")
    axes.set_xlabel("step", fontsize=9)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    _dress(axes, look)
    if drawn > 1:
        _legend(axes, look)


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


def _legend(axes: Axes, look: _Palette) -> None:
    """Above the axes, in one line, where it can hide nothing; the title stands on the left."""
    entries = len(axes.get_legend_handles_labels()[1])
    axes.legend(
        frameon=False, fontsize=8.5, labelcolor=look.ink, loc="lower right", bbox_to_anchor=(1, 1),
        ncols=min(4, entries), borderaxespad=0.3, handlelength=1.4,
    )  # fmt: skip
