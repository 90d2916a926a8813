"""``average``: several runs in, one run of their mean weights out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from saccade.models.io.facts import ModelFacts


def average(
    runs: Sequence[str | Path],
    *,
    out: Path | str,
    weights: Sequence[float] | None = None,
    stored: Literal["float32", "float16", "int8"] | None = None,
) -> ModelFacts:
    """Make one model of several runs: the mean of their weights.

    It costs no more at use than one of them. The runs must have begun with the same weights, as with ``start`` of
    ``train``.

    Args:
        runs: run folders, two or more. Their models are of one kind and began with the same weights.
        out: the run folder to write. It must be new or empty.
        weights: how much each run counts. One positive number for each run. None: all the same.
        stored: type of the weights in the model folder. None: the first run's.

    Returns:
        What the new model folder says of itself: its settings, and of which runs it is the mean.

    Raises:
        ConfigError: the runs have no mean, or ``weights`` does not fit them.
        CheckpointError: a folder is not a run, or holds no model yet.
        OutputError: ``out`` is not empty or cannot be written.

    Example:
        >>> saccade.average(["runs/a", "runs/b"], out="runs/mean")  # doctest: +SKIP
    """
    from saccade.verbs.mean_run import write_mean_run

    return write_mean_run(runs, out=out, weights=weights, stored=stored)
