"""Curves of training. Drawn with matplotlib (extra ``plots``), here alone.

Figures are built from objects on the Agg canvas; no display, no global state. Every drawing comes in a light and a
dark theme, so that a report can carry both.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from saccade.errors import MissingExtraError
from saccade.show.colours import SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Theme = Literal["light", "dark"]
Row = Mapping[str, Any]
"""A line of metrics.jsonl: {"step", "phase", "kind": "train" | "validation", "values": {...}}."""
COLUMNS = 3
_THEMES: dict[Theme, tuple[str, str, str, str, str]] = {
    "light": ("#16191f", "#5a6270", "#dfe3e8", SERIES[4], SERIES[0]),
    "dark": ("#e7eaef", "#9aa4b2", "#2a3038", "#a4adba", "#6ea1f5"),
}
"""Ink, soft ink, rules, the line of training, the line of validation."""


def training_curves(rows: Sequence[Row], *, names: Sequence[str] | None = None, theme: Theme = "light") -> Figure:
    """One panel a metric, training and validation in it, phases marked by dotted lines.

    Args:
        rows: of metrics.jsonl, in order; where a step was run again after a resume, the last row counts.
        names: metrics to draw; by default all that were measured at least twice, the loss first.
        theme: for a light or a dark page.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtraError("drawing curves", "plots") from error
    chosen = list(names) if names is not None else metrics_with_a_course(rows)
    ink, soft, rule, *colours = _THEMES[theme]
    starts: dict[str, int] = {}  # the first step of each phase
    for row in rows:
        starts.setdefault(str(row.get("phase", "")), int(row["step"]))
    columns = min(COLUMNS, len(chosen))
    lines = -(-len(chosen) // columns)
    style: Any = {  # matplotlib names every key in its type
        "axes.edgecolor": soft, "axes.labelcolor": soft, "xtick.color": soft, "ytick.color": soft,
        "axes.titlecolor": ink, "legend.labelcolor": ink, "grid.color": rule,
        "axes.grid": True, "axes.grid.axis": "y", "axes.axisbelow": True, "axes.facecolor": "none",
        "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.8, "grid.linewidth": 0.7,
        "axes.titlelocation": "left", "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.labelsize": 9,
        "xtick.labelsize": 8.5, "ytick.labelsize": 8.5, "lines.linewidth": 1.7, "lines.markersize": 3.5,
        "legend.frameon": False, "legend.fontsize": 8.5, "legend.borderaxespad": 0.3, "legend.handlelength": 1.4,
    }  # fmt: skip
    with rc_context(style):
        figure = Figure(figsize=(3.7 * columns, 2.7 * lines), layout="constrained")
        for number, name in enumerate(chosen):
            panel = figure.add_subplot(lines, columns, number + 1)
            _draw_metric(panel, rows, name, colours)
            for phase, start in [*starts.items()][1:]:
                panel.axvline(start, color=soft, linewidth=0.8, linestyle=":", gid=f"phase-{phase}")
    return figure


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
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.hashsalt": "saccade", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return buffer.getvalue()


def _draw_metric(axes: Axes, rows: Sequence[Row], name: str, colours: Sequence[str]) -> None:
    from matplotlib import ticker

    for kind, colour in zip(("train", "validation"), colours):
        points = course(rows, name, kind)
        if points:
            axes.plot(*zip(*points), color=colour, marker="o" if len(points) < 15 else "", label=kind)
    axes.set_title(name.replace("_", " "))
    axes.set_xlabel("step")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    if len(axes.lines) > 1:  # in one line above the axes, where it hides nothing; the title stands on the left
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2)
