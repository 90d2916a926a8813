"""What a phase of questions may be taught by: one dataclass for each loss, by its name in a recipe."""

from __future__ import annotations

from dataclasses import dataclass

from saccade.tasks.losses import check_weight

ENTROPY_WEIGHT = 0.002
"""λ of Xu et al. (2015), from their released code: keeps drawn locations from settling early."""


@dataclass(frozen=True)
class Default:
    """Cross-entropy of the answer; REINFORCE where the model draws locations in training."""

    entropy: float = ENTROPY_WEIGHT
    """λ of the entropy bonus of REINFORCE."""

    def __post_init__(self) -> None:
        check_weight("entropy", self.entropy)


@dataclass(frozen=True)
class Reinforce(Default):
    """REINFORCE on the locations that the model draws in training; a model that draws none is refused."""


@dataclass(frozen=True)
class CrossEntropy:
    """Cross-entropy of the answer, whether or not the model draws locations."""


Loss = Default | Reinforce | CrossEntropy
LOSSES: dict[str, type] = {"default": Default, "cross_entropy": CrossEntropy, "reinforce": Reinforce}
