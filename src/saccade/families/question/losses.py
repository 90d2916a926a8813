"""The losses of questions: one dataclass for each, by the name that a recipe uses."""

from __future__ import annotations

from dataclasses import dataclass

from saccade.config import Weight

ENTROPY_WEIGHT = 0.002
"""λ of Xu et al. (2015), from their released code: keeps drawn locations from settling early."""


@dataclass(frozen=True)
class Default:
    """Cross-entropy of the answer; REINFORCE where the model draws locations in training."""

    entropy: Weight = ENTROPY_WEIGHT
    """λ of the entropy bonus of REINFORCE."""
    evidence_weight: Weight = 0.0
    """Weight of the loss that trains the map to lie on the evidence, :mod:`saccade.losses.maps`; 0: no such
    loss."""
    overlap_weight: Weight = 0.0
    """Weight of the loss on what maps of different questions about one picture share, :mod:`saccade.losses.maps`."""


@dataclass(frozen=True)
class Reinforce(Default):
    """REINFORCE on the locations that the model draws in training; a model that draws none is refused."""


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the answer, whether or not the model draws locations."""

    evidence_weight: Weight = 0.0
    """As in :class:`Default`."""
    overlap_weight: Weight = 0.0
    """As in :class:`Default`."""


Loss = Default | Reinforce | CrossEntropy
LOSSES: dict[str, type] = {"default": Default, "cross_entropy": CrossEntropy, "reinforce": Reinforce}
