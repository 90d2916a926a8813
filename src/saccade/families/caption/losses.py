"""What a phase of captions may be taught by: losses by name, with their numbers behind colons.

Xu et al. 2015, arXiv:1502.03044, and Rennie et al. 2017, arXiv:1612.00563:

==================== ==============================================================================================
``soft[:λ[:ε]]``     Eq. (14): cross-entropy of the words + λ × the doubly stochastic penalty; λ is 1 unless given. Of
                     each word a share ε goes to all words alike (smoothed labels); ε is 0 unless given
``hard[:λ_e[:ε]]``   Eq. (10-12): cross-entropy, REINFORCE on the cells that were drawn, and an entropy bonus; λ_e is
                     that of the released code, 0.002, unless given
``hard_to_go[:…]``   the same, a draw judged by the words from it on: the same gradient on average, and less noise
``hard_code[:…]``    as the released code has it: judged by the mean of the words, a tenth of it
``self_critical``    five captions of each picture that the model draws, each judged by CIDEr-D beside the other four;
                     for a last phase, which has this name too. ``self_critical[:w[:m]]``: by a tenth of CIDEr-D + w ×
                     BLEU-4 + m × METEOR (:mod:`saccade.metrics.text.meteor_ids`); w and m are 0 unless given
``default``          soft or hard, as the model is; in the phase ``self_critical`` the loss of that name
==================== ==============================================================================================
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from saccade.errors import ConfigError, nearest

SELF_CRITICAL = "self_critical"
"""The loss that learns from captions of the model's own, and its phase."""
HARD: dict[str, dict[str, Any]] = {
    "hard": {},
    "hard_to_go": {"to_go": True},
    "hard_code": {"reward_weight": 0.1, "per_word": True},
}
"""How draws are judged: options of :func:`~saccade.losses.hard_attention_loss`."""
LOSSES = ("default", "soft", *HARD, SELF_CRITICAL)


class AskedLoss(NamedTuple):
    """A loss as a phase names it."""

    kind: str
    weight: float | None = None
    """λ, λ_e or w; None: the usual."""
    smoothing: float = 0.0
    """ε"""
    meteor: float = 0.0
    """m"""


def asked_loss(phase_loss: str, *, draws: bool, own_words: bool = False) -> AskedLoss:
    """The name of a loss and the numbers behind its colons, checked against what the model does and the phase is.

    >>> asked_loss("soft:0.5:0.1", draws=False)
    AskedLoss(kind='soft', weight=0.5, smoothing=0.1, meteor=0.0)
    >>> asked_loss("self_critical:0.2:0.3", draws=True, own_words=True)
    AskedLoss(kind='self_critical', weight=0.2, smoothing=0.0, meteor=0.3)
    """
    kind, *numbers = phase_loss.split(":")
    if kind not in LOSSES:
        raise ConfigError(f"loss '{phase_loss}': {nearest(kind, LOSSES)}")
    if kind == "default":
        kind = SELF_CRITICAL if own_words else "hard" if draws else "soft"
    if (kind == SELF_CRITICAL) != own_words:
        raise ConfigError(f"loss '{phase_loss}': the loss '{SELF_CRITICAL}' and a phase of that name go together")
    if kind in HARD and not draws:
        raise ConfigError(f"loss '{phase_loss}': this model draws no cells; take model 'sat-hard', or loss 'soft'")
    names = ("weight", "meteor" if kind == SELF_CRITICAL else "smoothing")
    if len(numbers) > len(names):
        raise ConfigError(f"loss '{phase_loss}': '{kind}' takes at most {len(names)}, found {len(numbers)} numbers")
    try:
        asked = AskedLoss(kind, **dict(zip(names, map(float, numbers))))
    except ValueError as error:
        raise ConfigError(f"loss '{phase_loss}': what stands after ':' are numbers, found {numbers}") from error
    for weight in (asked.weight or 0.0, asked.meteor):
        if not 0 <= weight < math.inf:
            raise ConfigError(f"loss '{phase_loss}': a weight is 0 or more, found {weight:g}")
    if not 0 <= asked.smoothing < 1:
        raise ConfigError(f"loss '{phase_loss}': ε is a share, 0 or more and below 1, found {asked.smoothing:g}")
    return asked
