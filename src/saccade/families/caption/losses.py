"""The losses of captions: one dataclass for each, by the name that a recipe uses.

Papers: Xu et al. 2015, arXiv:1502.03044 (soft and hard attention), and Rennie et al. 2017, arXiv:1612.00563
(self-critical).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from saccade.config import Portion, Weight
from saccade.losses.captions import ENTROPY_WEIGHT


@dataclass(frozen=True)
class Default:
    """`Soft` or `Hard`, as the model is; `SelfCritical` where the model learns from its own words."""


@dataclass(frozen=True)
class Soft:
    """Eq. (14): cross-entropy of the words, and the doubly stochastic penalty."""

    penalty: Weight = 1.0
    """λ, the weight of the penalty."""
    smoothing: Portion = 0.0
    """ε, the share of each word that goes to all words alike (smoothed labels)."""


@dataclass(frozen=True)
class Hard:
    """Eq. (10-12): cross-entropy, REINFORCE on the cells that were drawn, and an entropy bonus."""

    entropy: Weight = ENTROPY_WEIGHT
    """λ_e, the weight of the bonus; by default that of the released code."""
    smoothing: Portion = 0.0
    """ε, the share of each word that goes to all words alike (smoothed labels)."""
    judged: ClassVar[dict[str, Any]] = {}
    """How a draw is judged: options of :func:`~saccade.losses.hard_attention_loss`."""


@dataclass(frozen=True)
class HardToGo(Hard):
    """As `Hard`, a draw judged by the words from it on: the same gradient on average, with less noise."""

    judged: ClassVar[dict[str, Any]] = {"to_go": True}


@dataclass(frozen=True)
class HardCode(Hard):
    """As `Hard`, judged as the released code does: by a tenth of the mean of the words."""

    judged: ClassVar[dict[str, Any]] = {"reward_weight": 0.1, "per_word": True}


@dataclass(frozen=True)
class SelfCritical:
    """The model draws five captions of each picture; each is judged beside the other four. For ``data: own_words``.

    The reward is a tenth of CIDEr-D + ``bleu`` × BLEU-4 + ``meteor`` × METEOR
    (:mod:`saccade.metrics.text.meteor`).
    """

    bleu: Weight = 0.0
    """Weight of BLEU-4."""
    meteor: Weight = 0.0
    """Weight of METEOR."""


Loss = Soft | Hard | SelfCritical
"""What a phase is taught by, once `Default` is resolved."""
LOSSES: dict[str, type] = {
    "default": Default,
    "soft": Soft,
    "hard": Hard,
    "hard_to_go": HardToGo,
    "hard_code": HardCode,
    "self_critical": SelfCritical,
}
