"""``tour``: the shipped models on embedded data, in one page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.verbs.touring.page import TourResult


def tour(
    out: Path | str = "tour",
    quick: bool = False,
    device: str = "auto",
    on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
) -> TourResult:
    """Score the shipped models beside published numbers, in one page.

    Everything is computed on this machine, from weights and digits that come with the package.

    Args:
        out: folder for report.html. A page that is there already is replaced.
        quick: fewer models and scenes: hundreds instead of thousands.
        device: where to compute: auto, cpu, cuda, cuda:N or mps.
        on_progress: called with the name of a model, scenes done and scenes in all.

    Returns:
        Where the page is (``report``), its tables and how many seconds it took.

    Raises:
        CheckpointError: this copy of saccade ships no models.
        OutputError: ``out`` cannot be written.

    Example:
        >>> saccade.tour(quick=True).report  # doctest: +SKIP
    """
    from saccade.verbs.touring.page import make_tour

    return make_tour(out, quick, device, on_progress)
