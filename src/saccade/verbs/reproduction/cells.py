"""One cell of a reproduced table: measured, published, the difference between them; and their words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from saccade.recorded import Difference, Gain, Measured

NO_RUN = "no run"
GAIN_NOTE = (
    "Differences are over the seeds that both have, with a 95 % interval: of one seed by the test pictures, the two "
    "runs taken as independent; of more by Student's t over the seeds. Without a bracket no interval was recorded."
)
"""What the brackets of :func:`gain_text` mean."""


@dataclass(frozen=True)
class Setting:
    """How the runs of a column were trained."""

    protocol: str
    glyphs: str = ""
    """``disjoint`` between training and test, or ``merged``; empty for data that is not made of glyphs."""
    compared: bool = False
    """Whether the paper's cells were made in this setting."""
    drawing: str = "blend"
    """How scenes are drawn, see :attr:`saccade.recorded.RecordedRun.drawing`."""

    @property
    def label(self) -> str:
        """``authors merged``; ``unlimited`` alone, because unlimited training always has disjoint glyphs."""
        return self.protocol if self.protocol == "unlimited" else f"{self.protocol} {self.glyphs}".strip()


@dataclass(frozen=True)
class TableCell:
    """One score of one system on one data set in one setting, beside the published one."""

    metric: str
    system: str
    data: str
    setting: Setting
    measured: Measured | None
    """None: no run is recorded."""
    published: float | None = None
    difference: Difference | None = None
    """Measured − published, if both exist and the paper's cell was made in this setting."""
    not_comparable: str = ""
    drawn: str = ""
    """The drawing of its runs, if it is not that of the setting."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; all scores are fractions."""
        held, apart = self.measured, self.difference
        return {
            "metric": self.metric,
            "system": self.system,
            "data": self.data,
            "protocol": self.setting.protocol,
            "glyphs": self.setting.glyphs,
            "drawing": self.drawn or self.setting.drawing,
            "mean": held and held.mean,
            "std": held and held.std,
            "interval": [held.low, held.high] if held else None,
            "seeds": list(held.seeds) if held else [],
            "n": held.n if held else 0,
            "published": self.published,
            "difference": apart and apart.value,
            "difference_interval": [apart.low, apart.high] if apart else None,
            "not_comparable": self.not_comparable,
        }


def measured_text(measured: Measured | None, *, beside: float | None = None, where: str = "", drawn: str = "") -> str:
    """``84.29±0.21 (82.94)`` over ``3 × 10,000``; a cell without a run says so.

    Args:
        measured: None if no run is recorded.
        beside: the published value, in brackets.
        where: on which data the published value was measured, if on other data.
        drawn: how the scenes of its runs were drawn, if otherwise than the table says.
    """
    published = "" if beside is None else f" ({100 * beside:.2f}{where})"
    if measured is None:
        return NO_RUN + published
    return f"{mean_text(measured)}{published}\n{seeds_text(measured)}" + (f", {drawn}" if drawn else "")


def mean_text(measured: Measured | None) -> str:
    """The mean in percent, with its standard deviation if there are several seeds."""
    if measured is None:
        return "–"
    spread = "" if measured.std is None else f"±{100 * measured.std:.2f}"
    return f"{100 * measured.mean:.2f}{spread}"


def seeds_text(measured: Measured) -> str:
    """Number of seeds × test examples of each."""
    return f"{len(measured.seeds)} × {measured.n:,}"


def gain_text(found: Gain | None) -> str:
    """What one system gains over another; without a seed that both have, there is nothing to compare."""
    return NO_RUN if found is None else str(found)


def difference_text(apart: Difference | None, not_comparable: str = "") -> str:
    """``+1.35 [+0.69, +2.05]`` points, and whether the two can be compared at all."""
    if apart is None:
        return "–"
    lines = [f"{100 * apart.value:+.2f}"]
    if apart.low is not None and apart.high is not None:
        lines.append(f"[{100 * apart.low:+.2f}, {100 * apart.high:+.2f}]")
    return "\n".join([*lines, *(["not comparable"] if not_comparable else [])])
