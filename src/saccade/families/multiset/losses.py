"""What a phase of multisets may be taught by: losses by name, some with an entropy weight behind a colon.

Welleck et al. 2017, arXiv:1711.05165, where nothing else is said:

=========================  ========================================================================================
``single_object``          cross-entropy of the one object, or of one label of the picture, drawn anew each time
``each_object``            the same, and cross-entropy of each label from the cells under its box alone (ours)
``reinforce[:λ]``          the paper's: myopic REINFORCE with a learnt baseline, and cross-entropy of the stop; λ, an
                           entropy bonus, is 0 unless given
``reinforce_to_go[:λ]``    the same with the rewards of later actions too
``reinforce_expected[:λ]`` the same by the mean over what could have been drawn, not by what was; no baseline
``cross_entropy``          the paper's baseline: cross-entropy of the labels in a random order
``cross_entropy_ordered``  the same in reading order
``multiset_loss``          the authors' later loss (Welleck et al. 2018, arXiv:1711.05246)
``counts``                 cross-entropy of how often each label occurs, for ``multiset-counts``
=========================  ========================================================================================
"""

from __future__ import annotations

import math

from saccade.errors import ConfigError, nearest

OF_OBJECTS = ("single_object", "each_object")
"""What single objects teach."""
LOSSES = (
    *OF_OBJECTS,
    "reinforce",
    "reinforce_to_go",
    "reinforce_expected",
    "cross_entropy",
    "cross_entropy_ordered",
    "multiset_loss",
    "counts",
)


def asked_loss(phase_loss: str) -> tuple[str, float]:
    """The name of a loss and its entropy weight.

    >>> asked_loss("reinforce:0.01"), asked_loss("cross_entropy")
    (('reinforce', 0.01), ('cross_entropy', 0.0))
    """
    kind, sign, weight = phase_loss.partition(":")
    if kind not in LOSSES:
        raise ConfigError(f"loss '{phase_loss}': {nearest(kind, LOSSES)}")
    if not sign:
        return kind, 0.0
    if not kind.startswith("reinforce"):
        raise ConfigError(f"loss '{phase_loss}': only reinforce has an entropy bonus; leave out ':{weight}'")
    try:
        bonus = float(weight)
    except ValueError as error:
        raise ConfigError(f"loss '{phase_loss}': the entropy weight after ':' is a number, found '{weight}'") from error
    if not 0 <= bonus < math.inf:
        raise ConfigError(f"loss '{phase_loss}': the entropy weight after ':' is 0 or more, found {weight}")
    return kind, bonus
