"""The two recurrent networks of HSAL: the meta-controller, which places a mask, and the controller, which looks there.

Paper: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165),
Section 3 and Appendix A.

=================  ==============================================================  =======================
"Meta-Controller"  x_t = [S_t, ŷ_t-1], e_t = W x_t, h_t = GRU(e_t), M_t = attn(h)  :class:`MetaController`
"Controller"       x_i = [P_t, ŷ_t-1, a_i-1, g_i-1], e_i = W x_i, h_i = GRU(e_i)   :meth:`Controller.step`
"Controller"       i ≤ k: where to look, a_i ~ softmax(W_location h_i)             :meth:`Controller.step`
"Controller"       i = k+1: what it is, a_i ~ softmax(W_class h_i)                 :meth:`Controller.step`
Appendix A         locations by an MLP with 64 hidden units, classes linear        ``locate``, ``classify``
Section 4.2        V(s_t,i), linear in the controller's state                      ``value``
Appendix A         location and value heads do not reach the state                 :meth:`Controller.judge`
=================  ==============================================================  =======================

W x_i is linear, so the part that a glimpse decides, W_a a + W_g g, is computed once for all cells
(:meth:`Controller.project`). Scores for drawing are computed step by step, those that are learned from for a whole
rollout at once (:meth:`Controller.judge`).

Axes: B examples, N cells, k glimpses, D units of state, C channels of the volume, Y classes with "nothing more".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.glimpse import GaussianMixtureAttention
from saccade.attention.hard import gumbel_max
from saccade.geometry import Size
from saccade.models.base import Glimpses, Units
from saccade.models.multiset_reader import MultisetConfig

FOLLOW = 5.0  # initial factor of P in the scores of glimpses: the highest priority is e^5 times as likely as none


@dataclass(frozen=True)
class HsalConfig(MultisetConfig):
    """Sizes of HSAL; the paper's, but for the compact controller (``hidden: 512`` there) and backbone."""

    glimpses: Glimpses = 2
    """k before each class."""
    gaussians: Units = 5
    """Spotlights of the covert mask."""
    sharpness: tuple[float, float] = (1.5, 2.0)
    """Least and largest β of a spotlight; the paper's are for 7×7 cells, finer ones need smaller numbers."""
    meta_hidden: Units = 128
    """Units of the meta-controller."""
    hidden: Units = 256
    """Units of the controller."""
    location_hidden: Units = 64
    """Hidden units of the layer that chooses glimpses."""
    carry_state: bool = True
    """Whether the controller's state goes on from one meta step to the next."""
    follow_priority: bool = False
    """Whether a learned factor times P_t is added to the scores of glimpses; the paper scores by the state alone."""
    saliency: str = "energy"
    """The saliency model by name; see :data:`saccade.attention.glimpse.SALIENCY`."""
    fine_stage: str | None = None
    """An earlier stage whose finer activations glimpses see too; None: none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.sharpness[0] <= self.sharpness[1] < math.inf:
            raise ValueError(f"sharpness is two numbers above 0, the smaller first, found {self.sharpness}")


class MetaController(nn.Module):
    """What is still salient and the last label → where to attend."""

    def __init__(self, config: HsalConfig, grid: Size) -> None:
        super().__init__()
        self.grid, hidden = grid, config.meta_hidden
        self.encode = nn.Linear(grid[0] * grid[1] + config.classes + 1, hidden)
        self.remember = nn.GRUCell(hidden, hidden)
        self.attention = GaussianMixtureAttention(hidden, components=config.gaussians, sharpness=config.sharpness)

    def forward(self, saliency: Tensor, label: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """S_t (B,h,w), ŷ_t-1 one-hot (B,Y) and the state (B,D) → the mask M_t (B,h,w) and the new state."""
        inputs = torch.cat([saliency.flatten(1), label], dim=1)  # x_t: (B,N+Y)
        state = self.remember(self.encode(inputs), state)  # h_t: (B,D)
        return self.attention.mask(state, self.grid), state


class Projected(NamedTuple):
    """W_encode, applied to what every cell can contribute to it."""

    covert: Tensor  # (B,N,D): W_g V of each cell, to be summed with the weights of a mask
    overt: Tensor  # (B,N,D): W_g V + W_a of each cell, to be picked up when it is glimpsed
    inputs: Tensor  # (D,N+Y): W_P and W_y, for the inputs from the meta-controller


class Glimpsed(NamedTuple):
    """One meta step of the controller."""

    cells: Tensor  # (B,k), numbered row by row
    label: Tensor  # (B,)
    states: tuple[Tensor, ...]  # h_1 … h_k+1, (B,D) each


class Controller(nn.Module):
    """A priority map and a first covert glimpse → k overt glimpses, then a class."""

    def __init__(self, config: HsalConfig, cells: int, channels: int) -> None:
        super().__init__()
        self.glimpses, classes, hidden = config.glimpses, config.classes + 1, config.hidden
        self.follow = nn.Parameter(torch.tensor(FOLLOW)) if config.follow_priority else None  # factor of P
        self.parts = [cells + classes, cells, channels]  # how W_encode divides: [P, ŷ], a and g
        self.encode = nn.Linear(sum(self.parts), hidden)
        self.remember = nn.GRUCell(hidden, hidden)
        self.locate = nn.Sequential(
            nn.Linear(hidden, config.location_hidden), nn.ReLU(), nn.Linear(config.location_hidden, cells)
        )
        self.classify = nn.Linear(hidden, classes)
        self.value = nn.Linear(hidden, 1)

    def project(self, volume: Tensor) -> Projected:
        """What of W_encode does not depend on the steps, for a volume (B,C,h,w)."""
        inputs, where, what = torch.split(self.encode.weight, self.parts, dim=1)  # (D,N+Y), (D,N), (D,C)
        covert = volume.flatten(2).transpose(1, 2) @ what.T  # (B,N,D)
        return Projected(covert, covert + where.T, inputs)

    def step(
        self,
        projected: Projected,
        priority: Tensor,
        mask: Tensor,
        label: Tensor,
        state: Tensor,
        *,
        location_noise: Tensor | None = None,
        class_noise: Tensor | None = None,
        cells: Tensor | None = None,
    ) -> Glimpsed:
        """One meta step: k glimpses and a class, drawn with the noise (B,k,N) and (B,Y), or the likeliest without.

        From P_t and M_t (B,h,w), which makes the first glimpse g_0, ŷ_t-1 one-hot (B,Y) and h_0 (B,D). ``cells`` (B,j)
        are given in place of the first j ≤ k glimpses of its own.
        """
        inputs = torch.cat([priority.flatten(1), label], dim=1)  # (B,N+Y)
        inputs = F.linear(inputs, projected.inputs, self.encode.bias)  # (B,D)
        glimpse = (mask.flatten(1).unsqueeze(1) @ projected.covert).squeeze(1)  # W_g g_0, and a_0 is nothing: (B,D)
        states, glimpsed = [], []
        for number in range(self.glimpses):
            state = self.remember(inputs + glimpse, state)  # h_i: (B,D)
            if cells is None or number >= cells.shape[1]:
                scores = self._scores(state, priority.flatten(1))  # (B,N)
                cell = gumbel_max(scores, None if location_noise is None else location_noise[:, number])  # a_i: (B,)
            else:
                cell = cells[:, number]  # a_i: (B,)
            picked = cell[:, None, None].expand(-1, 1, projected.overt.shape[2])  # (B,1,D)
            glimpse = projected.overt.gather(1, picked).squeeze(1)  # W_a a_i + W_g g_i: (B,D)
            states.append(state)
            glimpsed.append(cell)
        state = self.remember(inputs + glimpse, state)  # h_k+1: (B,D)
        label = gumbel_max(self.classify(state), class_noise)  # ŷ_t: (B,)
        return Glimpsed(torch.stack(glimpsed, dim=1), label, (*states, state))

    def judge(self, steps: Sequence[Glimpsed], priorities: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Scores (B,T,k,N) and values (B,T,k) of the glimpses of T meta steps, those of the classes (B,T,Y) and (B,T).

        The reward of a glimpse teaches where to look, and only that, as the error of a value teaches the value.
        """
        priority = priorities.detach().flatten(2).repeat_interleave(self.glimpses, dim=1)  # (B,T·k,N)
        looking = torch.stack([state.detach() for step in steps for state in step.states[:-1]], dim=1)  # (B,T·k,D)
        naming = torch.stack([step.states[-1] for step in steps], dim=1)  # (B,T,D)
        by_glimpse = (len(steps), self.glimpses)
        return (
            self._scores(looking, priority).view(priority.shape[0], *by_glimpse, -1),
            self.value(looking).squeeze(-1).unflatten(1, by_glimpse),
            self.classify(naming),
            self.value(naming.detach()).squeeze(-1),
        )

    def _scores(self, state: Tensor, priority: Tensor) -> Tensor:
        """How much each cell is worth a glimpse, from states (…,D) and priorities (…,N): (…,N)."""
        scores: Tensor = self.locate(state)  # (…,N)
        return scores if self.follow is None else scores + self.follow * priority
