"""The losses of multisets: one dataclass for each, by the name that a recipe uses.

The paper is Welleck et al. 2017, arXiv:1711.05165.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from saccade.config import Weight, Within


@dataclass(frozen=True)
class SingleObject:
    """Cross-entropy of the one object, or of one label of the picture, drawn anew each time (Section 4.2)."""


@dataclass(frozen=True)
class EachObject:
    """As `SingleObject`, and cross-entropy of each label from the cells under its box alone (not in the paper)."""


@dataclass(frozen=True)
class Reinforce:
    """Myopic REINFORCE with a learned baseline, and cross-entropy of the stop: the paper's loss."""

    entropy: Weight = 0.0
    """Weight of an entropy bonus; the paper mentions none."""
    elsewhere: Annotated[float, Within(-1, 1)] = 1.0
    """Reward of naming a label that is there but not looked at, and factor on the reward of a glimpse beside the label
    that is then named. 1: as published. Below 1 it needs boxes."""


@dataclass(frozen=True)
class ReinforceToGo(Reinforce):
    """As `Reinforce`, with the rewards of later actions too."""


@dataclass(frozen=True)
class ReinforceExpected(Reinforce):
    """As `Reinforce`, by the mean over what could have been drawn instead of what was; needs no baseline."""

    log_glimpses: bool = False
    """Whether the log of a glimpse's mean reward is climbed, not the mean: where to look is then learned even where the
    right cells have become unlikely."""


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the labels in a random order: the paper's baseline."""


@dataclass(frozen=True)
class CrossEntropyOrdered:
    """Cross-entropy of the labels in reading order."""


@dataclass(frozen=True)
class MultisetLoss:
    """The authors' later loss (Welleck et al. 2018, arXiv:1711.05246)."""


@dataclass(frozen=True)
class Counts:
    """Cross-entropy of how often each label occurs, for the model ``multiset-counts``."""


Loss = SingleObject | EachObject | Reinforce | CrossEntropy | CrossEntropyOrdered | MultisetLoss | Counts
LOSSES: dict[str, type] = {
    "single_object": SingleObject,
    "each_object": EachObject,
    "reinforce": Reinforce,
    "reinforce_to_go": ReinforceToGo,
    "reinforce_expected": ReinforceExpected,
    "cross_entropy": CrossEntropy,
    "cross_entropy_ordered": CrossEntropyOrdered,
    "multiset_loss": MultisetLoss,
    "counts": Counts,
}
OF_OBJECTS = ("single_object", "each_object")
"""Losses that single objects teach by."""
