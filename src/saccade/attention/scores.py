"""Scores: how well each cell of a feature map fits a query; and attention that is given instead of computed.

**Given attention.** Every mechanism takes ``weights`` of the shape of its own and computes with them as they are, not
normalised: context = Σ weights · features, for a gate weights ⊙ features. Scores stay the mechanism's own. A crop takes
the ``frame`` of its look instead.

**Scores.** Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393); layer sizes from its authors' code.

=========  ==============================================================
Eq. (2)    s_ij = g_att(f_ij, q): :class:`AdditiveScorer` with context 1
Eq. (9)    s_ij = g_att(f_ij, F_ij, q), F the (2δ+1)² neighbourhood: context 2δ+1; 4 is the text's footprint
=========  ==============================================================

Deviations from the paper: none. It leaves g_att open; here features and query are mapped to ``hidden`` channels,
**added**, rectified and read out by one linear unit, as in the released code. Other papers take another ``activation``.

For several queries of one feature map, call ``from_features`` once and ``from_query`` with all queries;
:meth:`AdditiveScorer.score_all` takes both.

Axes: B examples, K queries of each, C channels, D hidden, H and W cells.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.errors import DataError, ShapeError
from saccade.trace import Act, Look, LookSpec


def given_or_own(given: Tensor | None, computed: Tensor) -> Tensor:
    """``given`` in the type and on the device of ``computed``, or ``computed`` where nothing is given.

    >>> import torch
    >>> given_or_own(torch.tensor([[0, 1]]), torch.tensor([[0.25, 0.75]])).tolist()
    [[0.0, 1.0]]
    """
    if given is None:
        return computed
    check_given(given, computed.shape, "weights")
    return given.to(computed)


def grid_of(features: Tensor) -> tuple[int, ...]:
    """The shape (B,H,W) of weights on features (B,C,H,W)."""
    return (features.shape[0], *features.shape[2:])


def check_given(given: Tensor, shape: Sequence[int], name: str, *, signed: bool = True) -> None:
    """Refuse given attention of another shape, or unless ``signed`` with a weight below 0 or NaN.

    ``name`` says in the message what was given. While torch compiles or exports, values are not known.
    """
    if tuple(given.shape) != tuple(shape):
        raise ShapeError(name, f"({','.join(map(str, shape))})", given.shape)
    if not (signed or torch.compiler.is_compiling() or bool((given >= 0).all())):
        least = "NaN" if bool(given.isnan().any()) else f"{given.min().item():.3g}"
        raise DataError(f"{name}: weights are 0 or more, found {least}; clip them or take absolute values")


class Mechanism(nn.Module, ABC):
    """A mechanism with one act: :meth:`attend` returns it as plain tensors, to compile and export."""

    look_name: ClassVar[str] = "attention"
    constants: ClassVar[LookSpec]
    """What is constant about its look, wherever its cells lie."""

    @abstractmethod
    def attend(self, features: Tensor, other: Tensor, /, *, weights: Tensor | None = None) -> Act:
        """The act on features (B,C,H,W); given ``weights`` take the place of its own, and scores stay its own."""

    def spec(self, frame: Tensor | None) -> LookSpec:
        """What is constant about its look; ``frame`` (2,3) tells where the cells lie."""
        return self.constants.at(frame)

    def forward(
        self,
        features: Tensor,
        other: Tensor,
        /,
        *,
        frame: Tensor | None = None,
        name: str | None = None,
        weights: Tensor | None = None,
    ) -> tuple[Tensor, Look]:
        """Context and look of the act; ``other`` is the query, or what else :meth:`attend` takes.

        :mod:`saccade.attention.frames` finds the frame. Without one the look cannot be drawn on a picture.
        """
        act = self.attend(features, other, weights=weights)
        return act.context, self.spec(frame).look(name or self.look_name, act)


class EvenConv2d(nn.Conv2d):
    """A convolution of even side that keeps the grid: one zero more behind than before."""

    behind = 1

    def forward(self, features: Tensor) -> Tensor:
        """(B,C,H,W) → (B,D,H,W)."""
        return super().forward(F.pad(features, (0, self.behind, 0, self.behind)))


class AdditiveScorer(nn.Module):
    """g_att: features (B,C,H,W) and a query vector (B,Q) → scores (B,H,W).

    They meet in ``hidden`` D units, whose ``activation`` may change its input in place. ``context`` is the side of the
    neighbourhood that each cell may see. An even side begins one cell less before than it ends behind: 4 is the cells
    from −1 to +2.

    >>> scorer = AdditiveScorer(8, 4, hidden=16, context=3)
    >>> scorer(torch.randn(2, 8, 5, 7), torch.randn(2, 4)).shape
    torch.Size([2, 5, 7])
    """

    def __init__(
        self,
        channels: int,
        query_size: int,
        *,
        hidden: int = 32,
        context: int = 1,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> None:
        super().__init__()
        self.activation = activation
        convolve = nn.Conv2d if context % 2 else EvenConv2d
        self.from_features = convolve(channels, hidden, context, padding=(context - 1) // 2)
        self.from_query = nn.Linear(query_size, hidden, bias=False)
        self.to_score = nn.Conv2d(hidden, 1, 1)

    def forward(self, features: Tensor, query: Tensor) -> Tensor:
        """Scores (B,H,W), one for each cell."""
        return self.score_projected(self.from_features(features), query)  # from_features: (B,D,H,W)

    def score_projected(self, projected: Tensor, query: Tensor) -> Tensor:
        """The scores (B,H,W) of what ``from_features`` made of the features (B,D,H,W), which knows no query yet."""
        projected_query = self.from_query(query)[:, :, None, None]  # (B,D,1,1)
        scores: Tensor = self.to_score(self.activation(projected + projected_query))  # (B,1,H,W)
        return scores.squeeze(1)  # (B,H,W)

    def score_all(self, projected: Tensor, queries: Tensor) -> Tensor:
        """The scores of what was seen (B,H,W,D) for several queries that were asked (B,K,D): (B,K,H,W)."""
        bent = self.activation(projected.unsqueeze(1) + queries[:, :, None, None])  # (B,K,H,W,D)
        # the last axis lies together in memory, where a product with one vector beats a convolution with one channel
        scores = F.linear(bent.flatten(0, 3), self.to_score.weight.flatten(1), self.to_score.bias)  # (BKHW,1)
        return scores.reshape(bent.shape[:-1])  # (B,K,H,W)


def spatial_softmax(scores: Tensor) -> Tensor:
    """Eq. (3): α_ij = softmax over all cells; scores (…,H,W) → weights (…,H,W)."""
    return torch.softmax(scores.flatten(-2), dim=-1).reshape(scores.shape)
