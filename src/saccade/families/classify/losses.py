"""The losses of classification: one dataclass for each, by the name that a recipe uses.

``scales``, ``proposals`` and ``rank`` are for a model that zooms (:mod:`saccade.losses.zoom`); the others for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from saccade.config import Portion, Weight, Within
from saccade.losses.zoom import MARGIN
from saccade.tasks.label_task import CrossEntropy

USUAL_SIDE = 0.5
"""Side of the regions that proposals learn first, as a share of the parent's side, as in the paper."""
Scale = Literal["scale1", "scale2", "scale3"]


@dataclass(frozen=True)
class Scales:
    """Cross-entropy of every scale up to ``last``; with the finest one also of all scales together."""

    last: Scale = "scale3"


@dataclass(frozen=True)
class Proposals:
    """Smooth L1 between proposals and regions that the responses of a network ask for."""

    of: Literal["scale2", "scale3", "both"] = "both"
    """Whose proposals are taught."""
    target: Literal["strongest", "responses"] = "strongest"
    """``strongest``: a region of ``side`` round the strongest response, as in the paper. ``responses``: the square in
    which the network of the taught scale responds more than on average, ``grow`` times as wide."""
    side: Portion = USUAL_SIDE
    """Side of the region round the strongest response, as a share of its parent's."""
    grow: Annotated[float, Within(0, above=True)] = 1.0
    """Side of the region of ``responses``, as a multiple of the square's."""

    def __post_init__(self) -> None:
        if self.target == "strongest" and self.grow != 1:
            raise ValueError("grow: belongs to 'target: responses'; leave it out, or change target")
        if self.target == "responses" and self.side != USUAL_SIDE:
            raise ValueError("side: belongs to 'target: strongest'; give grow instead, or change target")


@dataclass(frozen=True)
class Rank:
    """Each scale is to be surer of the true class than the one before it, by ``margin``."""

    margin: Weight = MARGIN


ZoomLoss = Scales | Proposals | Rank
LOSSES: dict[str, type] = {
    "default": CrossEntropy,
    "cross_entropy": CrossEntropy,
    "scales": Scales,
    "proposals": Proposals,
    "rank": Rank,
}
