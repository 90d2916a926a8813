"""Given attention: weights that a caller supplies instead of those that the mechanism would compute.

Every mechanism takes ``weights`` of the shape of its own and computes with them: context = Σ weights · features, for a
gate weights ⊙ features. They are used and returned as they are, not normalised again. Scores are still computed and
returned: they say where the mechanism would have looked. A crop has no weights; it takes the ``frame`` of its look.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.errors import DataError, ShapeError


def given_or_own(given: Tensor | None, own: Tensor) -> Tensor:
    """``given`` in the type and on the device of ``own``, or ``own`` where nothing is given.

    >>> import torch
    >>> given_or_own(torch.tensor([[0, 1]]), torch.tensor([[0.25, 0.75]])).tolist()
    [[0.0, 1.0]]
    """
    if given is None:
        return own
    check_given(given, own.shape, "weights")
    return given.to(own)


def grid_of(features: Tensor) -> tuple[int, ...]:
    """The shape (B,H,W) of weights over the cells of features (B,C,H,W)."""
    return (features.shape[0], *features.shape[2:])


def check_given(given: Tensor, shape: Sequence[int], name: str) -> None:
    """Refuse given attention of another shape; ``name`` says in the message what was given."""
    if tuple(given.shape) != tuple(shape):
        raise ShapeError(name, f"({','.join(map(str, shape))})", given.shape)


def check_not_negative(given: Tensor, name: str) -> None:
    """Refuse given attention with a weight below 0 or NaN; while torch compiles or exports, values are not known."""
    if torch.compiler.is_compiling() or bool((given >= 0).all()):
        return
    found = "NaN" if bool(given.isnan().any()) else f"{given.min().item():.3g}"
    raise DataError(f"{name}: weights are 0 or more, found {found}; clip them or take absolute values")
