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

A probe of labels has one question, the same for every picture, whose one-hot vector is a constant 1. A probe of
questions knows A of them:

==================  ============================================================================================
``linear``          a linear layer for each question (a bilinear form of pooled feature and one-hot question)
``soft hard cross`` the one-hot question is the query of the attention, as in Seo et al. 2016; one classifier for all
``queries pyramid`` each question has queries of its own; one classifier for all
==================  ============================================================================================

The heads with one classifier add a term of the question alone to the logits (``QueryPrior``), because the linear head
has a bias for each question.

Deviations from the papers: the values are the features themselves, so ``queries`` has no value matrix and each query
pools all channels. ``pyramid`` is no HAttNet: no later stage sees its maps. It reads them folded into one
(:mod:`saccade.backbones.stages`).

:meth:`ProbeHead.stacked` computes many heads of one kind: their weights have a leading axis M, and the features are
read once for all of them.

Axes: M heads, B pictures, R questions about them, C channels, D hidden units, K classes, A questions that are known,
Q queries of a question, H and W cells, N = H·W.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.hard import HardAttention, log_marginal
from saccade.attention.scores import spatial_softmax
from saccade.attention.soft import CrossAttention, SoftAttention, attend_uniformly, attend_with_scores
from saccade.backbones.stages import Level, unfolded
from saccade.models.base import Given
from saccade.models.picture_query import QueryPrior
from saccade.trace import MIXTURE, SOFT, Act, LookSpec


class ExampleQueries(NamedTuple):
    """Questions (R,) about the pictures of a batch, and the place of each one's picture: several may share one."""

    query: Tensor
    picture: Tensor


Weights = Mapping[str, Tensor]  # of many heads by name, each (M,…)


def _tokens(features: Tensor) -> Tensor:
    """The cells in a row: (B,C,H,W) → (B,N,C), without a copy where channels lie together."""
    return features.permute(0, 2, 3, 1).flatten(1, 2)


def products(features: Tensor, weight: Tensor) -> Tensor:
    """Every cell times the matrices (M,D,C) of all members: (B,N,M,D)."""
    tokens = _tokens(features)
    return (tokens @ weight.flatten(0, 1).T).reshape(*tokens.shape[:2], *weight.shape[:2])


def additive(weights: Weights, features: Tensor, pairs: ExampleQueries | None) -> Tensor:
    """The scores (M,R,N) of :class:`saccade.attention.scores.AdditiveScorer` for one-hot questions."""
    scorer = "attention.scorer"
    keys = products(features, weights[f"{scorer}.from_features.weight"].flatten(2))  # (B,N,M,D)
    vectors = weights[f"{scorer}.from_features.bias"][..., None] + weights[f"{scorer}.from_query.weight"]  # (M,D,A)
    read = weights[f"{scorer}.to_score.weight"].flatten(1)  # (M,D)
    if pairs is None:
        met = keys + vectors[..., 0]  # (B,N,M,D)
    else:
        met = keys[pairs.picture] + vectors[..., pairs.query].permute(2, 0, 1)[:, None]  # (R,N,M,D)
    scores = (met.relu() * read).sum(-1) + weights[f"{scorer}.to_score.bias"][:, 0]  # (R,N,M)
    return scores.permute(2, 0, 1)


def for_each(products: Tensor, pairs: ExampleQueries | None) -> Tensor:
    """The products (B,N,M,A) that belong to the asked questions: (M,R,N)."""
    if pairs is None:
        return products[..., 0].permute(2, 0, 1)
    return products[pairs.picture, :, :, pairs.query].permute(2, 0, 1)


def for_question(values: Tensor, query: Tensor | None) -> Tensor:
    """The values (B,A,…) that belong to the asked question (B,), or to the first: (B,…)."""
    if query is None:
        return values[:, 0]
    where = query.reshape(-1, *[1] * (values.dim() - 1)).expand(-1, 1, *values.shape[2:])
    return values.gather(1, where).squeeze(1)


def pool(scores: Tensor, features: Tensor, pairs: ExampleQueries | None) -> Tensor:
    """Eq. (3) and (4) for all members: scores (M,R,N) and features (B,C,H,W) → contexts (M,R,C)."""
    tokens = _tokens(features)  # (B,N,C)
    if pairs is not None:
        tokens = tokens[pairs.picture]  # (R,N,C)
    return (scores.softmax(-1).transpose(0, 1) @ tokens).transpose(0, 1)


def classified(weights: Weights, contexts: Tensor) -> Tensor:
    """The linear layer of each member: (M,B,C) → (M,B,K)."""
    return torch.baddbmm(weights["classify.bias"][:, None], contexts, weights["classify.weight"].transpose(1, 2))


HeadOutput = tuple[Tensor, dict[str, Act]]  # logits (B,K), and each act by the name of its look
HeadName = Literal["linear", "soft", "hard", "cross", "queries", "pyramid"]
HEADS: tuple[HeadName, ...] = get_args(HeadName)
LINEAR: HeadName = "linear"  # the rival that every other head is compared with
PYRAMID: HeadName = "pyramid"  # the head on several stages
TITLES: dict[str, str] = {
    "linear": "linear",
    "soft": "soft attention",
    "hard": "hard attention",
    "cross": "cross attention",
    "queries": "attentive probe",
    "pyramid": "pyramid of attention",
}
"""Names in sentences."""


class ProbeHead(nn.Module, ABC):
    """Standardised features (B,C,H,W) and questions (B,) → logits (B,K) and the acts of attention.

    Of the A ``questions`` that it knows, each adds a term to the logits if ``prior`` (with one, that is the bias).
    """

    look_names: tuple[str, ...] = ("cells",)
    spec: LookSpec = SOFT

    def __init__(self, answers: int, questions: int, *, prior: bool = True) -> None:
        super().__init__()
        self.questions = questions
        self.prior = QueryPrior(questions, answers) if prior and questions > 1 else None

    @abstractmethod
    def forward(self, features: Tensor, given: Given | None = None, query: Tensor | None = None) -> HeadOutput:
        """Logits and acts; ``given`` weights (B,H,W) by look replace its own, ``query`` (B,) are question numbers."""

    @abstractmethod
    def stacked(self, weights: Weights, features: Any, pairs: ExampleQueries | None = None) -> Tensor:
        """Logits (M,R,K) of many such heads; without ``pairs`` every picture is asked the first question, R = B.

        ``features`` are one map (B,C,H,W); of a pyramid a list of those of its levels.
        """

    def scores(self, weights: Weights, features: Tensor, pairs: ExampleQueries | None) -> Tensor | None:
        """Scores of cells (M,R,N), or (M,Q,R,N), of such heads; None without a place, or with several grids."""
        return None

    def stacked_maps(self, weights: Weights, features: Any, pairs: ExampleQueries | None) -> Tensor | None:
        """Eq. (3) for all members: total maps (M,R,H,W), each of sum 1; None without scores."""
        scores = self.scores(weights, features, pairs)
        if scores is None:
            return None
        maps = scores.softmax(-1).reshape(*scores.shape[:-1], *features.shape[2:])  # (M,R,H,W) or (M,Q,R,H,W)
        return maps if scores.dim() == 3 else maps.mean(1)

    @abstractmethod
    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Numbers that a training step keeps for one question, beside the features: the memory of a stack."""

    def _one_hot(self, features: Tensor, query: Tensor | None) -> Tensor:
        if query is None:
            return torch.eye(1, self.questions).to(features).expand(features.shape[0], -1)
        return F.one_hot(query, self.questions).to(features.dtype)

    def _with_prior(self, logits: Tensor, features: Tensor, query: Tensor | None) -> Tensor:
        """Logits (B,K), and what the question alone adds to them."""
        return logits if self.prior is None else logits + self.prior(self._one_hot(features, query))

    def _stacked_prior(self, weights: Weights, pairs: ExampleQueries | None) -> Tensor | float:
        """The same for all members, to be added: (M,R,K); 0 where there is none."""
        if self.prior is None:
            return 0.0
        return weights["prior.weight"][:, 0, None] if pairs is None else weights["prior.weight"][:, pairs.query]


class LinearHead(ProbeHead):
    """The mean of all cells, then one linear layer for each question."""

    def __init__(self, channels: int, answers: int, *, questions: int = 1, **sizes: Any) -> None:
        super().__init__(answers, questions, prior=False)
        self.classify = nn.Linear(channels, questions * answers)

    def forward(self, features: Tensor, given: Given | None = None, query: Tensor | None = None) -> HeadOutput:
        """The mean of all cells, classified."""
        attended = attend_uniformly(features, (given or {}).get("cells"))
        logits = self.classify(attended.context).unflatten(1, (self.questions, -1))  # (B,A,K)
        return for_question(logits, query), {"cells": attended}

    def stacked(self, weights: Weights, features: Tensor, pairs: ExampleQueries | None = None) -> Tensor:
        """(M,R,K)."""
        pooled = features.flatten(2).mean(-1)  # (B,C)
        logits = classified(weights, pooled.expand(len(weights["classify.weight"]), -1, -1))  # (M,B,AK)
        if pairs is None:
            return logits[..., : logits.shape[-1] // self.questions]
        return logits.reshape(*logits.shape[:2], self.questions, -1)[:, pairs.picture, pairs.query]

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """The mean and the logits."""
        return channels + 2 * self.questions * answers


class SoftHead(ProbeHead):
    """Additive soft attention, then one linear layer."""

    mechanism: ClassVar[type[SoftAttention] | type[CrossAttention]] = SoftAttention

    def __init__(self, channels: int, answers: int, *, hidden: int, questions: int = 1, **sizes: Any) -> None:
        super().__init__(answers, questions)
        self.hidden = hidden
        self.attention = self.mechanism(channels, questions, hidden=hidden)
        self.classify = nn.Linear(channels, answers)

    def forward(self, features: Tensor, given: Given | None = None, query: Tensor | None = None) -> HeadOutput:
        """What was attended, classified."""
        attended = self.attention.attend(features, self._one_hot(features, query), weights=(given or {}).get("cells"))
        return self._with_prior(self.classify(attended.context), features, query), {"cells": attended}

    def stacked(self, weights: Weights, features: Tensor, pairs: ExampleQueries | None = None) -> Tensor:
        """(M,R,K)."""
        contexts = pool(self.scores(weights, features, pairs), features, pairs)  # (M,R,C)
        return classified(weights, contexts) + self._stacked_prior(weights, pairs)

    def scores(self, weights: Weights, features: Tensor, pairs: ExampleQueries | None) -> Tensor:
        """(M,R,N)."""
        return additive(weights, features, pairs)

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Hidden units of each cell, the context and the logits."""
        return 3 * self.hidden * cells + 2 * channels + 2 * answers


class CrossHead(SoftHead):
    """One dot-product query, then one linear layer."""

    mechanism = CrossAttention

    def scores(self, weights: Weights, features: Tensor, pairs: ExampleQueries | None) -> Tensor:
        """q·(W f) = (q·W)·f: one product with a vector for each question in place of D, (M,R,N)."""
        to_query, to_key = weights["attention.to_query.weight"], weights["attention.to_key.weight"].flatten(2)
        vectors = torch.einsum("mda,mdc->mac", to_query, to_key) * to_query.shape[1] ** -0.5  # (M,A,C)
        return for_each(products(features, vectors), pairs)

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Weights of each cell, the context and the logits."""
        return (2 + self.questions) * cells + 2 * channels + 2 * answers


class HardHead(ProbeHead):
    """Every cell answers; attention is the prior over cells, and the logits are the log of the mixture."""

    spec = MIXTURE
    scores = SoftHead.scores

    def __init__(self, channels: int, answers: int, *, hidden: int, questions: int = 1, **sizes: Any) -> None:
        super().__init__(answers, questions)
        self.hidden = hidden
        self.attention = HardAttention(channels, questions, hidden=hidden)
        self.classify = nn.Conv2d(channels, answers, 1)

    def forward(self, features: Tensor, given: Given | None = None, query: Tensor | None = None) -> HeadOutput:
        """The mixture of what all cells answer."""
        one_hot = self._one_hot(features, query)  # (B,A)
        weights, scores = self.attention.prior(features, one_hot, weights=(given or {}).get("cells"))
        cells = self.classify(features)  # (B,K,H,W)
        if self.prior is not None:
            cells = cells + self.prior(one_hot)[:, :, None, None]
        context = attend_with_scores(scores, features, weights).context  # (B,C), for those who read the trace
        return log_marginal(weights, cells.log_softmax(1)), {"cells": Act(context, weights, scores, features)}

    def stacked(self, weights: Weights, features: Tensor, pairs: ExampleQueries | None = None) -> Tensor:
        """(M,R,K)."""
        prior = additive(weights, features, pairs).log_softmax(-1)  # (M,R,N)
        cells = products(features, weights["classify.weight"].flatten(2)) + weights["classify.bias"]  # (B,N,M,K)
        if pairs is not None:
            cells = cells[pairs.picture]  # (R,N,M,K)
        alone = self._stacked_prior(weights, pairs)  # (M,R,K)
        if isinstance(alone, Tensor):
            cells = cells + alone.transpose(0, 1)[:, None]
        joint = cells.log_softmax(-1) + prior.permute(1, 2, 0).unsqueeze(-1)  # log α p(y|cell): (R,N,M,K)
        return joint.logsumexp(1).transpose(0, 1)  # (M,R,K)

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Hidden units and logits of each cell."""
        return 3 * (self.hidden + answers) * cells + 2 * channels


class QueriesHead(ProbeHead):
    """Several dot-product queries for each question; the classifier reads all that they pooled, side by side."""

    def __init__(self, channels: int, answers: int, *, queries: int, questions: int = 1, **sizes: Any) -> None:
        super().__init__(answers, questions)
        self.look_names = tuple(f"query{number}" for number in range(1, queries + 1))
        self.ask = nn.Conv2d(channels, questions * queries, 1, bias=False)  # a bias would add the same to all cells
        self.scale = channels**-0.5
        self.classify = nn.Linear(queries * channels, answers)

    def forward(self, features: Tensor, given: Given | None = None, query: Tensor | None = None) -> HeadOutput:
        """What all queries pooled, classified."""
        every = (self.ask(features) * self.scale).unflatten(1, (self.questions, -1))  # (B,A,Q,H,W)
        scores = for_question(every, query)  # (B,Q,H,W)
        weights = None
        if given:
            computed = spatial_softmax(scores)  # (B,Q,H,W)
            weights = torch.stack([given.get(name, computed[:, at]) for at, name in enumerate(self.look_names)], 1)
        read = attend_with_scores(scores, features, weights)  # contexts (B,Q,C)
        acts = {
            name: Act(read.context[:, at], read.weights[:, at], scores[:, at], features)
            for at, name in enumerate(self.look_names)
        }
        return self._with_prior(self.classify(read.context.flatten(1)), features, query), acts

    def stacked(self, weights: Weights, features: Tensor, pairs: ExampleQueries | None = None) -> Tensor:
        """(M,R,K)."""
        scores = self.scores(weights, features, pairs)  # (M,Q,R,N)
        pooled = pool(scores.flatten(0, 1), features, pairs)  # (MQ,R,C)
        pooled = pooled.reshape(*scores.shape[:2], *pooled.shape[1:]).transpose(1, 2)  # (M,R,Q,C)
        return classified(weights, pooled.flatten(2)) + self._stacked_prior(weights, pairs)

    def scores(self, weights: Weights, features: Tensor, pairs: ExampleQueries | None) -> Tensor:
        """(M,Q,R,N)."""
        members, queries = len(weights["ask.weight"]), len(self.look_names)
        vectors = weights["ask.weight"].reshape(members, self.questions, queries, -1)  # (M,A,Q,C)
        every = products(features, vectors.transpose(1, 2).flatten(0, 1)) * self.scale  # (B,N,MQ,A)
        scores = for_each(every, pairs)  # (MQ,R,N)
        return scores.reshape(members, queries, *scores.shape[1:])

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Weights and the context of each query, and the logits."""
        return len(self.look_names) * ((2 + self.questions) * cells + 2 * channels) + 2 * answers


class PyramidHead(ProbeHead):
    """One dot-product query on each level for each question; the classifier reads all that they pooled, side by side.

    ``levels`` are the maps in the folded one of all ``channels``, the finest first.
    """

    def __init__(
        self, channels: int, answers: int, *, levels: Sequence[Level], questions: int = 1, **sizes: Any
    ) -> None:
        super().__init__(answers, questions)
        self.levels = tuple(levels)
        self.look_names = tuple(level.name for level in self.levels)
        self.ask = nn.ModuleList(nn.Conv2d(level.channels, questions, 1, bias=False) for level in self.levels)
        self.classify = nn.Linear(sum(level.channels for level in self.levels), answers)

    def forward(self, features: Tensor, given: Given | None = None, query: Tensor | None = None) -> HeadOutput:
        """What was attended on each level, classified."""
        acts = {}
        for level, ask, values in zip(self.levels, self.ask, unfolded(features, self.levels)):
            scores = for_question(ask(values), query) * level.channels**-0.5  # (B,H,W)
            acts[level.name] = attend_with_scores(scores, values, (given or {}).get(level.name))
        contexts = torch.cat([act.context for act in acts.values()], 1)
        return self._with_prior(self.classify(contexts), features, query), acts

    def stacked(self, weights: Weights, features: Sequence[Tensor], pairs: ExampleQueries | None = None) -> Tensor:
        """(M,R,K)."""
        contexts = []
        for number, (level, values) in enumerate(zip(self.levels, features)):
            vectors = weights[f"ask.{number}.weight"].flatten(2) * level.channels**-0.5  # (M,A,C)
            contexts.append(pool(for_each(products(values, vectors), pairs), values, pairs))  # (M,R,C)
        return classified(weights, torch.cat(contexts, -1)) + self._stacked_prior(weights, pairs)

    def numbers(self, channels: int, cells: int, answers: int) -> int:
        """Weights and the context of each level, and the logits."""
        finest = cells * sum(level.factor**2 for level in self.levels)
        return (2 + self.questions) * finest + 2 * sum(level.channels for level in self.levels) + 2 * answers


_CLASSES: dict[str, Callable[..., ProbeHead]] = {
    "linear": LinearHead,
    "soft": SoftHead,
    "hard": HardHead,
    "cross": CrossHead,
    "queries": QueriesHead,
    "pyramid": PyramidHead,
}


def new_head(name: HeadName, channels: int, answers: int, **sizes: Any) -> ProbeHead:
    """A fresh head; sizes are ``hidden``, ``queries``, ``questions`` (how many), ``levels`` of a pyramid."""
    return _CLASSES[name](channels, answers, **sizes)
