"""Shared by the query models: a backbone, an answer head, and one look on the last stage.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393): all compared models have the same
backbone (Eq. 1: f = CNN(I)) and one linear layer for the answer. They differ in what happens between. Section 5.1 has
the small stack, trained from nothing; Section 5.2 a VGG-16 with ImageNet weights, many labels at once, and a prior.

Deviations from the paper: BatchNorm and dropout before the classifier, as in the authors' released code, the BatchNorm
with torch's constants instead of the code's eps 0.01 and averaging 0.5 (``norm_eps``, ``norm_momentum``);
Glorot-uniform initial weights of the small stack, as in the code, and torch's elsewhere unless ``initial`` says
otherwise. The query is a one-hot vector. The paper leaves open how several labels are answered (here each by a sigmoid)
and what its prior is (here a term of the logits, :class:`QueryPrior`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.scores import grid_of
from saccade.backbones import Stages, build_backbone
from saccade.config import Portion, Share, Within
from saccade.models.base import BackboneConfig, Depth, Given, QueryModel, Units, Words
from saccade.trace import SOFT, Act, QuestionOutput


@dataclass(frozen=True)
class PictureQueryConfig(BackboneConfig):
    """Settings of all query models; the defaults are the paper's, the dropout is that of its released code."""

    queries: Words = 10
    """Number of different queries."""
    answers: Words = 5
    """Number of different answers."""
    channels: Units = 32
    """Channels of every convolution of the small stack."""
    depth: Depth = 4
    """Stages of the small stack."""
    dropout: Portion = 0.5
    """Share of the attended feature that is dropped in training."""
    multi_label: bool = False
    """Whether several answers may hold at once; the sigmoid of a logit is then the probability of that answer."""
    prior: bool = False
    """Whether the query adds a learned term of its own to the logits."""
    norm_eps: Annotated[float, Within(0, 1, above=True)] = 1e-5
    """ε of the BatchNorms behind gates and before the classifier."""
    norm_momentum: Share = 0.1
    """Share of the newest batch in their running statistics."""


@dataclass(frozen=True)
class AttendingConfig(PictureQueryConfig):
    """Settings of those in which features and query meet in an additive scorer."""

    hidden: Units = 32
    """Units in which feature and query meet, in each attention."""
    initial: Literal["torch", "glorot"] = "torch"
    """How weights outside the backbone start: as torch starts them, or Glorot-uniform with biases of zero."""


class AnswerHead(nn.Module):
    """Attended feature (B,C) → logits (B,K): BatchNorm, dropout, one linear layer."""

    def __init__(
        self, channels: int, answers: int, *, dropout: float = 0.5, eps: float = 1e-5, momentum: float = 0.1
    ) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(channels, eps, momentum)
        self.drop = nn.Dropout(dropout)
        self.classify = nn.Linear(channels, answers)

    def forward(self, feature: Tensor) -> Tensor:
        """Logits (B,K)."""
        logits: Tensor = self.classify(self.drop(self.norm(feature)))
        return logits


class QueryPrior(nn.Module):
    """What the query alone says about the answer ("a banana is yellow"), Section 5.2.

    One-hot queries (B,Q) → a term of the logits (B,K), zero before training.

    >>> QueryPrior(4, 3)(torch.eye(4)[:2]).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """

    def __init__(self, queries: int, answers: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(queries, answers))  # W; no random number is drawn for it

    def forward(self, query: Tensor) -> Tensor:
        """W·q: (B,K)."""
        return query @ self.weight


class PictureQueryModel(QueryModel):
    """Pictures (B,3,H,W) and query ids (B,) → logits (B,K) and one look on the last stage.

    A model adds its ``attention`` and its head (:meth:`new_head`), in this order. One without a soft attention on the
    last stage overrides :meth:`ask`.
    """

    config: PictureQueryConfig
    attention: nn.Module
    head: AnswerHead

    def __init__(self, config: PictureQueryConfig) -> None:
        super().__init__(config)
        self.multi_label = config.multi_label
        self.backbone = self.new_backbone()
        self.look_name = self.backbone.names[-1]
        self.channels = self.backbone.channels[self.look_name]
        self.look_specs = {self.look_name: SOFT.at(self.backbone.frames[self.look_name])}
        self.prior = QueryPrior(config.queries, config.answers) if config.prior else None

    def new_backbone(self) -> Stages:
        """The network that sees the picture, with random weights."""
        config = self.config
        return build_backbone(config.backbone, channels=config.channels, depth=config.depth, through=config.through)

    def new_head(self, channels: int | None = None) -> AnswerHead:
        """The head on an attended feature, of as many channels as the last stage by default."""
        config = self.config
        constants = {"dropout": config.dropout, "eps": config.norm_eps, "momentum": config.norm_momentum}
        return AnswerHead(channels or self.channels, config.answers, **constants)

    def one_hot_query(self, encoding: Tensor, query: Tensor) -> Tensor:
        """The query ids (B,) as one-hot vectors (B,Q), of the type of the encoding."""
        return F.one_hot(query, self.config.queries).to(encoding.dtype)

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """Eq. (2)-(4): a soft look at the last stage, then the classifier."""
        query = self.one_hot_query(encoding, query)  # (B,Q)
        weights = self.given(attention, self.look_name, grid_of(encoding))  # (B,h,w)
        attended = self.attention.attend(encoding, query, weights=weights)  # type: ignore[operator]  # a CellAttention
        return self.classify_attended(attended, query)

    def classify(self, feature: Tensor, query: Tensor) -> Tensor:
        """Logits (B,K) of an attended feature (B,C), with the prior of the query (B,Q)."""
        logits: Tensor = self.head(feature)  # (B,K)
        return logits if self.prior is None else logits + self.prior(query)

    def classify_attended(self, attended: Act, query: Tensor) -> QuestionOutput:
        """The classifier on an attended last stage."""
        return QuestionOutput(self.classify(attended.context, query), {self.look_name: attended})


def start_glorot(*parts: nn.Module) -> None:
    """Glorot-uniform weights, ±√(6 / (fan in + fan out)), and zero biases of all convolutions and linear layers."""
    for part in parts:
        for layer in part.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.xavier_uniform_(layer.weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)


def resolution_ends(backbone: Stages) -> tuple[str, ...]:
    """The stages behind which the grid becomes coarser, in order, and the last stage.

    >>> from saccade.backbones import build_backbone
    >>> resolution_ends(build_backbone("vgg16"))
    ('pool1', 'pool2', 'pool3', 'pool4', 'pool5')
    >>> resolution_ends(build_backbone("resnet18", through="layer3"))
    ('layer1', 'layer2', 'layer3')
    """
    spacing = {name: frame[:, :2] for name, frame in backbone.frames.items()}  # (2,2): pixels from cell to cell
    learns = {name for name, stage in backbone.stages.items() if next(stage.parameters(), None) is not None}
    whole = [name for name, after in itertools.pairwise(backbone.names) if after in learns]  # not before a pooling
    whole.append(backbone.names[-1])
    ends = [name for name, after in itertools.pairwise(whole) if not torch.equal(spacing[name], spacing[after])]
    return (*ends, backbone.names[-1])
