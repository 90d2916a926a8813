"""Glimpses: where to look next, by a saliency map that each look updates, and covert attention by a few spotlights.

Paper: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165).

==============================  ====================================================  ===========================
Section 3, "Saliency Model"     S_ij = Σ_c |V_cij|²                                   :class:`SaliencyMap`
Appendix A                      S and P have minimum 0 and maximum 1                  :func:`min_max`
Section 3, "Interface"          P = M ⊙ S                                             :func:`priority_map`
Section 3, "Update Mechanism"   S' = 0 at glimpsed cells, elsewhere max(S − M, 0)     :class:`InhibitionOfReturn`
==============================  ====================================================  ===========================

A saliency model is a function from an activation volume (B,C,H,W) to a map (B,H,W), with a name in :data:`SALIENCY`.

Deviation from the paper: S is normalised once, at the start: after updates this would amplify small remainders.

**Gaussian mixture attention**, spotlights on a grid placed by a state vector: Section 3, "Gaussian Attention Mechanism"
and "Interface", after the one-dimensional window of Graves 2013.

=============  =====================================================================================
Section 3      α = softmax, κ1 = σ·m, κ2 = σ·n, β                     :meth:`GaussianMixtureAttention.mask`
Section 3      M_ij = Σ_k α_k exp(−β_k [(κ1_k − i)² + (κ2_k − j)²])   :meth:`GaussianMixtureAttention.mask`
Section 3      g_0 = Σ_ij M_ij V_ij, not divided by Σ M               :meth:`GaussianMixtureAttention.attend`
Appendix A     K = 5, each β in [1.5, 2.0]                            ``components``, ``sharpness``
=============  =====================================================================================

M lies between 0 and 1. Cells count from 1, as in the paper, while κ begins at 0: the first row is in the middle of a
spotlight at κ1 = 1.

Deviations from the paper: its β = exp(·) "constrained to [1.5, 2.0]" does not say how; here β = 1.5 + 0.5·σ(·), which
has a gradient everywhere.

Axes: B examples, K spotlights, H and W cells (m and n of the paper).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.attention.scores import Mechanism, given_or_own
from saccade.errors import ConfigError, nearest
from saccade.trace import Act, LookSpec

COVERT = LookSpec("soft", "multiplier", "sigmoid")
"""The look of a mask M that multiplied the features. Of the norms, sigmoid promises 0..1 for each cell alone."""

Reduction = Callable[[Tensor], Tensor]


def energy(volume: Tensor) -> Tensor:
    """The paper's F(V) = Σ_c |V_c|²."""
    return volume.square().sum(1)


def absolute(volume: Tensor) -> Tensor:
    """Σ_c |V_c|; this and the next are the other two of Zagoruyko and Komodakis 2017, Section 3.1."""
    return volume.abs().sum(1)


def strongest(volume: Tensor) -> Tensor:
    """max_c |V_c|."""
    return volume.abs().amax(1)


# functions with names, not lambdas: a model that has one goes to other processes by it
SALIENCY: dict[str, Reduction] = {"energy": energy, "absolute": absolute, "strongest": strongest}
"""Saliency models by name: (B,C,H,W) → (B,H,W), larger where it stands out more."""

NOTHING = 1e-12  # ranges below this count as none
ROUNDING = 1e-5  # rounding of sums of a few hundred numbers, as a share of the largest value


class SaliencyMap(nn.Module):
    """Activations (B,C,H,W) → the saliency map (B,H,W), unnormalised.

    >>> import torch
    >>> SaliencyMap()(torch.tensor([[[[1.0, 2.0]], [[3.0, 0.0]]]])).tolist()
    [[[10.0, 4.0]]]
    """

    def __init__(self, model: str = "energy") -> None:
        super().__init__()
        if model not in SALIENCY:
            raise ConfigError(f"no saliency model '{model}': {nearest(model, SALIENCY)}")
        self.reduce = SALIENCY[model]

    def forward(self, volume: Tensor) -> Tensor:
        """S as the saliency model has it."""
        return self.reduce(volume)


class InhibitionOfReturn(nn.Module):
    """Where attention has been it does not soon return: a map, a mask and glimpsed cells → the map that is left.

    >>> import torch
    >>> saliency, mask = torch.tensor([[[1.0, 0.5]]]), torch.tensor([[[0.25, 0.75]]])
    >>> InhibitionOfReturn()(saliency, mask, torch.tensor([[1]])).tolist()
    [[[0.75, 0.0]]]
    """

    def forward(self, saliency: Tensor, mask: Tensor, cells: Tensor) -> Tensor:
        """S (B,H,W), M (B,H,W) and cells (B,k) numbered row by row → S' (B,H,W), cut from the graph."""
        left = (saliency.detach() - mask.detach()).clamp_min(0)  # (B,H,W)
        return left.flatten(1).scatter(1, cells, 0.0).view_as(saliency)  # (B,H,W)


def min_max(maps: Tensor) -> Tensor:
    """Each map of (B,H,W) shifted and scaled to the range 0 to 1; one whose range is rounding alone becomes 0."""
    flat = maps.flatten(1)  # (B,N)
    low, high = flat.amin(1, keepdim=True), flat.amax(1, keepdim=True)  # (B,1); aminmax: no gradient before torch 2.13
    is_even = high - low <= ROUNDING * torch.maximum(high.abs(), low.abs())  # (B,1)
    scaled = (flat - low) / (high - low).clamp_min(NOTHING)  # (B,N)
    return torch.where(is_even, torch.zeros_like(scaled), scaled).view_as(maps)  # (B,H,W)


def priority_map(mask: Tensor, saliency: Tensor) -> Tensor:
    """P = M ⊙ S, from 0 to 1: what top-down attention leaves of bottom-up saliency; all (B,H,W)."""
    return min_max(mask * saliency)


class GaussianMixtureAttention(Mechanism):
    """Features (B,C,H,W) and a state (B,D) → context (B,C) and the :class:`~saccade.trace.Look`.

    It has ``components`` K spotlights. ``sharpness`` are the least and the largest β; at 1.75 a spotlight falls to 0.17
    one cell from its centre.

    >>> attention = GaussianMixtureAttention(16)
    >>> context, look = attention(torch.randn(2, 8, 7, 7), torch.randn(2, 16))
    >>> context.shape, look.weights.shape, bool((look.weights <= 1).all())
    (torch.Size([2, 8]), torch.Size([2, 7, 7]), True)
    """

    look_name = "covert"
    constants = COVERT

    def __init__(self, state_size: int, *, components: int = 5, sharpness: tuple[float, float] = (1.5, 2.0)) -> None:
        super().__init__()
        self.components, self.sharpness = components, sharpness
        self.parameters_of = nn.Linear(state_size, 4 * components)

    def mask(self, state: Tensor, grid: geometry.Size) -> Tensor:
        """M, from the 4K numbers of a state (B,D), on a ``grid`` of (H, W) cells: (B,H,W)."""
        alpha, rest = self.parameters_of(state).split([self.components, 3 * self.components], dim=-1)  # (B,K), (B,3K)
        beta, row, column = rest.sigmoid().chunk(3, dim=-1)  # (B,K) each
        least, largest = self.sharpness
        beta, row, column = least + (largest - least) * beta, row * grid[0], column * grid[1]
        i = torch.arange(1, grid[0] + 1, dtype=row.dtype, device=row.device)  # (H,)
        j = torch.arange(1, grid[1] + 1, dtype=row.dtype, device=row.device)  # (W,)
        below = (row.unsqueeze(-1) - i).square()  # (B,K,H)
        beside = (column.unsqueeze(-1) - j).square()  # (B,K,W)
        distance = below.unsqueeze(-1) + beside.unsqueeze(-2)  # (B,K,H,W)
        spots = torch.exp(-beta[..., None, None] * distance)  # (B,K,H,W)
        mask: Tensor = alpha.softmax(-1).unsqueeze(-2) @ spots.flatten(2)  # (B,1,N)
        return mask.reshape(-1, *grid)  # (B,H,W)

    def attend(self, features: Tensor, state: Tensor, /, *, weights: Tensor | None = None) -> Act:
        """The act of a state (B,D): context g_0 (B,C), weights M (B,H,W), and as its scores log M."""
        mask = self.mask(state, (features.shape[-2], features.shape[-1]))  # (B,H,W)
        weights = given_or_own(weights, mask)  # (B,H,W)
        context = torch.einsum("bhw,bchw->bc", weights, features)  # (B,C)
        return Act(context, weights, mask.clamp_min(torch.finfo(mask.dtype).tiny).log(), features)
