"""Many heads of one kind, trained side by side as one model with a leading axis.

The members of a stack have weights, a learning rate and a weight decay of their own. They see the same batches of
features: the large product of a step, features times weights, is one product for all of them. Each member counts only
the examples that it may learn from. A member comes out as it does alone, but for rounding. Where several questions are
asked about a picture (:mod:`saccade.probing.data`), a batch has pictures with all their questions, so that this
product is made once for a picture.

The optimiser is AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with torch's usual constants; the learning rate
rises for a tenth of the steps and falls to 0 along a cosine.

Axes: M members, B pictures of a batch, R examples about them, N examples, K classes. Without questions an example is a
picture.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.losses.maps import evidence_loss
from saccade.models.probe_heads import ProbeHead
from saccade.probing.data import Examples, Questions
from saccade.probing.features import Batch

BETAS, EPSILON = (0.9, 0.999), 1e-8
BUDGET = 64 << 20
"""Numbers that a step of a stack may keep at most; larger stacks are trained in parts."""


class Setting(NamedTuple):
    """How a head is trained."""

    rate: float
    decay: float
    """Of the weights."""


@dataclass(frozen=True)
class Places:
    """Where labels can be seen, on the cells of the features; see :mod:`saccade.losses.maps`."""

    on_evidence: Tensor
    """(N,H,W): how much of the evidence each cell covers, nᵢ; 0 for an example without evidence."""
    everywhere: Tensor
    """(1,H,W): how much each cell covers, dᵢ."""
    weight: float

    def missed(self, maps: Tensor, numbers: Tensor, counts: Tensor) -> Tensor:
        """What the maps (M,R,H,W) of the examples ``numbers`` (R,) miss, for each member: (M,).

        Only examples that a member learns from count, as ``counts`` (M,R) says.
        """
        on_evidence = self.on_evidence[numbers] * counts[..., None, None]  # (M,R,H,W)
        return torch.stack([evidence_loss(own, on, self.everywhere) for own, on in zip(maps, on_evidence)])


def stacked(heads: Sequence[ProbeHead]) -> dict[str, Tensor]:
    """The weights of heads of one kind and size side by side: name → (M,…); the heads stay as they are."""
    states = [dict(head.named_parameters()) for head in heads]
    return {name: torch.stack([state[name].detach() for state in states]).requires_grad_() for name in states[0]}


def train_heads(
    heads: Sequence[ProbeHead],
    batch: Batch,
    examples: Examples,
    learns: Tensor,
    settings: Sequence[Setting],
    *,
    steps: int,
    batch_size: int,
    seed: int = 0,
    at_once: int | None = None,
    places: Places | None = None,
) -> list[ProbeHead]:
    """The heads, trained; those that come in stay as they are.

    Args:
        heads: fresh heads of one kind, M of them.
        batch: gives the features of pictures by number.
        examples: N of them.
        learns: (M,N) bool: which examples each member may learn from. Pictures that no member learns from are never
            asked for.
        settings: how each member is trained.
        steps: batches to learn from.
        batch_size: pictures in a batch at most.
        seed: of the order of the pictures, which is the same for all members.
        at_once: members in one stack at most; None: as memory allows.
        places: where labels can be seen, and how much it counts that maps lie there; None: nobody says.
    """
    at_once = at_once or len(heads)
    trained: list[ProbeHead] = []
    for first in range(0, len(heads), at_once):
        part = slice(first, first + at_once)
        weights, own = stacked(heads[part]), learns[part]
        optimiser = StackedAdamW(weights, settings[part])
        pictures = examples.questions.pictures_of(own.any(0).nonzero()[:, 0])  # (n,)
        for step, numbers in enumerate(batches_of(pictures, batch_size, steps, seed)):
            features = batch(numbers)  # (B,C,H,W)
            about, asked = examples.questions.about(numbers)  # (R,)
            logits = heads[0].stacked(weights, features, asked)  # (M,R,K)
            counts = own[:, about].to(logits.dtype)  # (M,R)
            truth = examples.labels[about].expand(len(own), -1)  # (M,R)
            surprise = F.cross_entropy(logits.flatten(0, 1), truth.flatten(), reduction="none").view_as(counts)  # (M,R)
            losses = (surprise * counts).sum(1) / counts.sum(1).clamp_min(1)  # (M,)
            if places is not None and (maps := heads[0].stacked_maps(weights, features, asked)) is not None:
                losses = losses + places.weight * places.missed(maps, about, counts)
            gradients = torch.autograd.grad(losses.sum(), [*weights.values()])
            optimiser.step(gradients, rate_factor(step, steps))
        for number in range(len(own)):
            trained.append(copy.deepcopy(heads[0]))
            trained[-1].load_state_dict({name: tensor[number].detach() for name, tensor in weights.items()})
    return trained


def members_at_once(head: ProbeHead, shape: Sequence[int], answers: int, examples: float) -> int:
    """How many members of this kind fit into one stack, for features of ``shape`` (C,H,W) and batches of examples."""
    return max(1, int(BUDGET // (head.numbers(shape[0], math.prod(shape[1:]), answers) * examples)))


def rate_factor(step: int, steps: int) -> float:
    """The share of the learning rate at ``step``.

    >>> [round(rate_factor(step, 20), 2) for step in (0, 1, 2, 11, 19)]
    [0.5, 1.0, 1.0, 0.5, 0.01]
    """
    rising = max(1, steps // 10)
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / (steps - rising)))


def batches_of(pictures: Tensor, batch_size: int, steps: int, seed: int) -> list[Tensor]:
    """The numbers of the pictures of every step: epoch after epoch in a new order, each in batches of equal size."""
    generator = torch.Generator().manual_seed(seed)
    parts = max(1, math.ceil(len(pictures) / batch_size))
    batches: list[Tensor] = []
    while len(batches) < steps:
        order = pictures[torch.randperm(len(pictures), generator=generator)]
        batches += torch.tensor_split(order, parts)
    return batches[:steps]


class StackedAdamW:
    """AdamW with a learning rate and a weight decay for each member of the leading axis."""

    def __init__(self, parameters: dict[str, Tensor], settings: Sequence[Setting]) -> None:
        self._parameters = [*parameters.values()]
        self._rates, self._decays = torch.tensor(settings, dtype=torch.float64).unbind(1)  # (M,)
        self._means = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], factor: float) -> None:
        """One step along ``gradients``, with the learning rates times ``factor``."""
        self._steps += 1
        first, second = (1 - beta**self._steps for beta in BETAS)
        torch._foreach_lerp_(self._means, [*gradients], 1 - BETAS[0])
        torch._foreach_mul_(self._squares, BETAS[1])
        torch._foreach_addcmul_(self._squares, [*gradients], [*gradients], 1 - BETAS[1])
        for parameter, mean, square in zip(self._parameters, self._means, self._squares):
            shape = (-1, *[1] * (parameter.dim() - 1))
            rate = (self._rates * factor).to(parameter).view(shape)  # (M,1,…)
            parameter.mul_(1 - rate * self._decays.to(parameter).view(shape))
            parameter.sub_(rate / first * mean / ((square / second).sqrt() + EPSILON))


def fresh_heads(make: Callable[[], ProbeHead], seeds: Sequence[int]) -> list[ProbeHead]:
    """A head for each seed; the same seed gives the same weights."""
    heads: list[ProbeHead] = []
    for seed in seeds:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            heads.append(make())
    return heads


@torch.no_grad()
def logits_of(
    heads: Sequence[ProbeHead], batch: Batch, examples: Tensor, batch_size: int, at_once: int, questions: Questions
) -> Tensor:
    """The logits (M,n,K) of trained heads on the ``examples`` (n,)."""
    stacks = [stacked(heads[first : first + at_once]) for first in range(0, len(heads), at_once)]
    parts = [*questions.parts(examples, batch_size)]
    order = torch.cat([part.places for part in parts]).argsort()
    return torch.cat(
        [
            torch.cat([heads[0].stacked(weights, batch(part.pictures), part.asked) for part in parts], 1)[:, order]
            for weights in stacks
        ]
    )
