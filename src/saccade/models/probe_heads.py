"""The heads of a probe: small readers of the maps of a frozen backbone.

Every head reads standardised features and ends in one linear layer. They differ in how cells are pooled:

==========  ====================================================================================================
``linear``  the mean of all cells: the usual linear probe
``soft``    soft attention with an additive score (Seo et al. 2016, Eq. 2-4), :class:`saccade.attention.SoftAttention`
``hard``    each cell answers, and attention mixes the answers, :class:`saccade.attention.HardAttention`
``cross``   one dot-product query (Vaswani et al. 2017, Eq. 1), :class:`saccade.attention.CrossAttention`
``queries`` several dot-product queries, each with its own map and its own part of the classifier, after the attentive
            probes of Psomas et al. 2025 (arXiv:2506.10178)
``pyramid`` one dot-product query on each of several stages; the classifier reads what they pooled, side by side
==========  ====================================================================================================

Nothing is asked, so the query of an attention is a constant 1: its weights are the query.

Deviations from the papers: the values are the features themselves, without a projection. ``queries`` therefore has no
value matrix and no blocks of channels; each query pools all channels. ``pyramid`` is no HAttNet: its maps change
nothing that a later stage sees.

A pyramid reads its maps as one (:mod:`saccade.backbones.levels`): finer ones lie folded onto the cells of the last.

Many heads of one kind can be computed side by side (:meth:`ProbeHead.stacked`): their weights have a leading axis M,
and the features are read once for all of them.

Axes: M heads, B pictures, C channels, D hidden units, K classes, Q queries, H and W cells, N = H·W.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from saccade.attention.cross import CrossAttention
from saccade.attention.hard import HardAttention, hard_look, log_marginal
from saccade.attention.soft import Attended, SoftAttention, attend_alike, attend_by, soft_look
from saccade.backbones.levels import Level, unfolded
from saccade.models.base import Given
from saccade.trace import Look

HeadName = Literal["linear", "soft", "hard", "cross", "queries", "pyramid"]
HEADS: tuple[HeadName, ...] = get_args(HeadName)
LINEAR: HeadName = "linear"
"""The rival that every other head is compared with."""
PYRAMID: HeadName = "pyramid"
"""The head on several stages."""
TITLES: dict[str, str] = {
    "linear": "linear",
    "soft": "soft attention",
    "hard": "hard attention",
    "cross": "cross attention",
    "queries": "attentive probe",
    "pyramid": "pyramid of attention",
}
"""What the heads are called in sentences."""


class ProbeHead(nn.Module, ABC):
    """Standardised features (B,C,H,W) → logits (B,K) and the acts of attention."""

    look_names: tuple[str, ...] = ("cells",)

    @abstractmethod
    def forward(self, features: Tensor, given: Given | None = None) -> tuple[Tensor, dict[str, Attended]]:
        """Logits (B,K), and each act by the name of its look; ``given`` weights (B,H,W) take the place of its own."""

    @abstractmethod
    def stacked(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """Logits (M,B,K) of many heads of this kind and size; ``weights`` are theirs by name, each (M,…)."""

    def stacked_maps(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor | None:
        """The total maps (M,B,H,W) of such heads, each of sum 1; None without a place, or with several grids."""
        return None

    @abstractmethod
    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """How many numbers a step keeps for one picture, beside the features: what a stack costs in memory."""

    def look(self, name: str, weights: Tensor, scores: Tensor, frame: Tensor) -> Look:
        """One act as a look."""
        return soft_look(name, weights, scores, frame)


class LinearHead(ProbeHead):
    """The mean of all cells, then one linear layer."""

    def __init__(self, channels: int, answers: int, **sizes: Any) -> None:
        super().__init__()
        self.classify = nn.Linear(channels, answers)

    def forward(self, features: Tensor, given: Given | None = None) -> tuple[Tensor, dict[str, Attended]]:
        """The mean of all cells, classified."""
        attended = attend_alike(features, _of(given, "cells"))
        return self.classify(attended.context), {"cells": attended}

    def stacked(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """(M,B,K)."""
        pooled = features.flatten(2).mean(-1)  # (B,C)
        return _classified(weights, pooled.expand(len(weights["classify.weight"]), -1, -1))

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """The mean and the logits."""
        return channels + 2 * answers


class SoftHead(ProbeHead):
    """Additive soft attention, then one linear layer."""

    attention: SoftAttention | CrossAttention

    def __init__(self, channels: int, answers: int, *, hidden: int, **sizes: Any) -> None:
        super().__init__()
        self.hidden = hidden
        self.attention = SoftAttention(channels, 1, hidden=hidden)
        self.classify = nn.Linear(channels, answers)

    def forward(self, features: Tensor, given: Given | None = None) -> tuple[Tensor, dict[str, Attended]]:
        """What was attended, classified."""
        attended = self.attention.attend(features, _constant(features), weights=_of(given, "cells"))
        return self.classify(attended.context), {"cells": attended}

    def stacked(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """(M,B,K)."""
        return _classified(weights, _pooled(self._scores(weights, features), features))

    def stacked_maps(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """(M,B,H,W)."""
        return _maps(self._scores(weights, features), features)

    def _scores(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """(M,B,N)."""
        return _additive(weights, features)

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Hidden units of each cell, the context and the logits."""
        return 3 * self.hidden * cells + 2 * channels + 2 * answers


class CrossHead(SoftHead):
    """One dot-product query, then one linear layer."""

    def __init__(self, channels: int, answers: int, *, hidden: int, **sizes: Any) -> None:
        super().__init__(channels, answers, hidden=hidden)
        self.attention = CrossAttention(channels, 1, hidden=hidden)

    def _scores(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """q·(W f) = (q·W)·f: one product with a vector in place of D, (M,B,N)."""
        asked, keys = weights["attention.to_query.weight"], weights["attention.to_key.weight"]  # (M,D,1), (M,D,C,1,1)
        vector = (asked * keys.flatten(2)).sum(1) * asked.shape[1] ** -0.5  # (M,C)
        return _products(features, vector[:, None])[..., 0].permute(2, 0, 1)  # (M,B,N)

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Weights of each cell, the context and the logits."""
        return 3 * cells + 2 * channels + 2 * answers


class HardHead(ProbeHead):
    """Every cell answers; attention is the prior over cells, and the logits are the log of the mixture."""

    def __init__(self, channels: int, answers: int, *, hidden: int, **sizes: Any) -> None:
        super().__init__()
        self.hidden = hidden
        self.attention = HardAttention(channels, 1, hidden=hidden)
        self.classify = nn.Conv2d(channels, answers, 1)

    def forward(self, features: Tensor, given: Given | None = None) -> tuple[Tensor, dict[str, Attended]]:
        """The mixture of what all cells answer."""
        weights, scores = self.attention.prior(features, _constant(features), weights=_of(given, "cells"))
        answers = self.classify(features).log_softmax(1)  # (B,K,H,W)
        context = attend_by(scores, features, weights).context  # (B,C), for those who read the trace
        return log_marginal(weights, answers), {"cells": Attended(context, weights, scores)}

    def stacked(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """(M,B,K)."""
        prior = _additive(weights, features).log_softmax(-1)  # (M,B,N)
        cells = _products(features, weights["classify.weight"].flatten(2)) + weights["classify.bias"]  # (B,N,M,K)
        joint = cells.log_softmax(-1) + prior.permute(1, 2, 0).unsqueeze(-1)  # log α p(y|cell): (B,N,M,K)
        return joint.logsumexp(1).transpose(0, 1)  # (M,B,K)

    def stacked_maps(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """(M,B,H,W)."""
        return _maps(_additive(weights, features), features)

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Hidden units and logits of each cell."""
        return 3 * (self.hidden + answers) * cells + 2 * channels

    def look(self, name: str, weights: Tensor, scores: Tensor, frame: Tensor) -> Look:
        """A mixture of answers."""
        return hard_look(name, weights, scores, frame)


class QueriesHead(ProbeHead):
    """Several dot-product queries; the classifier reads all that they pooled, side by side."""

    def __init__(self, channels: int, answers: int, *, queries: int, **sizes: Any) -> None:
        super().__init__()
        self.look_names = tuple(f"query{number}" for number in range(1, queries + 1))
        self.ask = nn.Conv2d(channels, queries, 1, bias=False)  # a bias would add the same to all cells
        self.scale = channels**-0.5
        self.classify = nn.Linear(queries * channels, answers)

    def forward(self, features: Tensor, given: Given | None = None) -> tuple[Tensor, dict[str, Attended]]:
        """What all queries pooled, classified."""
        scores = self.ask(features) * self.scale  # (B,Q,H,W)
        if given is None:
            contexts, weights, _ = attend_by(scores, features)  # (B,Q,C), (B,Q,H,W)
        else:
            each = [attend_by(scores[:, at], features, _of(given, name)) for at, name in enumerate(self.look_names)]
            contexts = torch.stack([act.context for act in each], 1)
            weights = torch.stack([act.weights for act in each], 1)
        acts = {
            name: Attended(contexts[:, at], weights[:, at], scores[:, at]) for at, name in enumerate(self.look_names)
        }
        return self.classify(contexts.flatten(1)), acts

    def stacked_maps(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """The mean of the maps of all queries, as the total is: (M,B,H,W)."""
        scores = _products(features, weights["ask.weight"].flatten(2)) * self.scale  # (B,N,M,Q)
        laid = _maps(scores.permute(2, 3, 0, 1).flatten(0, 1), features)  # (MQ,B,H,W)
        return laid.reshape(*scores.shape[2:], *laid.shape[1:]).mean(1)

    def stacked(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """(M,B,K)."""
        scores = _products(features, weights["ask.weight"].flatten(2)) * self.scale  # (B,N,M,Q)
        members, queries = scores.shape[2:]
        pooled = _pooled(scores.flatten(2).permute(2, 0, 1), features)  # (MQ,B,C)
        pooled = pooled.reshape(members, queries, *pooled.shape[1:]).transpose(1, 2)  # (M,B,Q,C)
        return _classified(weights, pooled.flatten(2))

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Weights and the context of each query, and the logits."""
        return len(self.look_names) * (3 * cells + 2 * channels) + 2 * answers


class PyramidHead(ProbeHead):
    """One dot-product query on each level; the classifier reads all that they pooled, side by side.

    Args:
        channels: of the folded map, all levels together.
        answers: how many labels there are.
        levels: the maps in it, the finest first; without them it is one map.
    """

    def __init__(self, channels: int, answers: int, *, levels: Sequence[Level] = (), **sizes: Any) -> None:
        super().__init__()
        self.levels = tuple(levels) or (Level("cells", channels, 1),)
        self.look_names = tuple(level.name for level in self.levels)
        self.ask = nn.ModuleList(nn.Conv2d(level.channels, 1, 1, bias=False) for level in self.levels)
        self.classify = nn.Linear(sum(level.channels for level in self.levels), answers)

    def forward(self, features: Tensor, given: Given | None = None) -> tuple[Tensor, dict[str, Attended]]:
        """What was attended on each level, classified."""
        acts = {}
        for level, ask, values in zip(self.levels, self.ask, unfolded(features, self.levels)):
            scores = ask(values).squeeze(1) * level.channels**-0.5  # (B,H,W)
            acts[level.name] = attend_by(scores, values, _of(given, level.name))
        return self.classify(torch.cat([act.context for act in acts.values()], 1)), acts

    def stacked(self, weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
        """(M,B,K)."""
        contexts = []
        for number, (level, values) in enumerate(zip(self.levels, unfolded(features, self.levels))):
            vector = weights[f"ask.{number}.weight"].flatten(2) * level.channels**-0.5  # (M,1,C)
            contexts.append(_pooled(_products(values, vector)[..., 0].permute(2, 0, 1), values))  # (M,B,C)
        return _classified(weights, torch.cat(contexts, -1))

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Weights and the context of each level, and the logits."""
        finest = cells * sum(level.factor**2 for level in self.levels)
        return 3 * finest + 2 * sum(level.channels for level in self.levels) + 2 * answers


_CLASSES: dict[str, type[ProbeHead]] = {
    "linear": LinearHead,
    "soft": SoftHead,
    "hard": HardHead,
    "cross": CrossHead,
    "queries": QueriesHead,
    "pyramid": PyramidHead,
}


def new_head(
    name: HeadName, channels: int, answers: int, *, hidden: int, queries: int, levels: Sequence[Level] = ()
) -> ProbeHead:
    """A fresh head; ``levels`` are those of a pyramid."""
    made: Any = _CLASSES[name]
    head: ProbeHead = made(channels, answers, hidden=hidden, queries=queries, levels=levels)
    return head


def _tokens(features: Tensor) -> Tensor:
    """The cells in a row: (B,C,H,W) → (B,N,C), without a copy where channels lie together."""
    return features.permute(0, 2, 3, 1).flatten(1, 2)


def _products(features: Tensor, weight: Tensor) -> Tensor:
    """Every cell times the matrices (M,D,C) of all members, in one product: (B,N,M,D)."""
    tokens = _tokens(features)
    return (tokens @ weight.flatten(0, 1).T).reshape(*tokens.shape[:2], *weight.shape[:2])


def _additive(weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
    """The scores (M,B,N) of :class:`saccade.attention.scores.AdditiveScorer` for the constant query."""
    scorer = "attention.scorer"
    seen = _products(features, weights[f"{scorer}.from_features.weight"].flatten(2))  # (B,N,M,D)
    asked = weights[f"{scorer}.from_features.bias"] + weights[f"{scorer}.from_query.weight"][..., 0]  # (M,D)
    read = weights[f"{scorer}.to_score.weight"].flatten(1)  # (M,D)
    scores = ((seen + asked).relu() * read).sum(-1) + weights[f"{scorer}.to_score.bias"][:, 0]  # (B,N,M)
    return scores.permute(2, 0, 1)


def _pooled(scores: Tensor, features: Tensor) -> Tensor:
    """Eq. (3) and (4) for all members: scores (M,B,N) and features (B,C,H,W) → contexts (M,B,C)."""
    return (scores.softmax(-1).transpose(0, 1) @ _tokens(features)).transpose(0, 1)


def _maps(scores: Tensor, features: Tensor) -> Tensor:
    """Eq. (3) for all members, on the grid: scores (M,B,N) of features (B,C,H,W) → (M,B,H,W)."""
    return scores.softmax(-1).reshape(*scores.shape[:2], *features.shape[2:])


def _classified(weights: Mapping[str, Tensor], contexts: Tensor) -> Tensor:
    """The linear layer of each member: (M,B,C) → (M,B,K)."""
    return torch.baddbmm(weights["classify.bias"][:, None], contexts, weights["classify.weight"].transpose(1, 2))


def _constant(features: Tensor) -> Tensor:
    """The query of every picture: 1, (B,1)."""
    return features.new_ones(features.shape[0], 1)


def _of(given: Given | None, name: str) -> Tensor | None:
    return None if given is None else given.get(name)
