"""A head on a frozen backbone that hears the question twice: where to look, and how to read what is there.

SOFT (:mod:`saccade.models.soft`) hears it in the scorer alone. Two questions about one object ("which species?",
"which breed?") must then look at different places to get different answers. Here the classifier hears the question
too, so both may look at the object. The scores may come from an earlier stage, whose cells still know little of what
lies around them; what is attended is always the last stage.

After Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 3:

=========  =====================================================================================
Eq. (2)    s_ij = g_att(k_ij, q)       k: the stage ``scored_at``, read at the cells of the last
Eq. (3-4)  α = softmax(s), c = Σ α v   v: the last stage, :func:`saccade.attention.soft.attend_with_scores`
ours       logits = (W + U_q) c + p_q  c after BatchNorm and dropout; U and p are zero at first
(5), ours  loss + γ Σ α log(α n)       n cells: the divergence of the map from an even one, in nats; γ: ``evenness``
=========  =====================================================================================

Deviations from the paper: U_q, p_q, and scores from another stage than that of the values; k has zero mean and unit
variance in each channel (a BatchNorm without weights).

Axes: B examples, Q queries, K answers, C channels of the last stage, D of the scored one, h and w cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.attention.scores import grid_of
from saccade.attention.soft import SoftAttention, attend_with_scores
from saccade.config import Weight
from saccade.geometry import Size
from saccade.models.base import Given
from saccade.models.picture_query import AttendingConfig, PictureQueryModel, resolution_ends
from saccade.trace import QuestionOutput

FINER = "finer"
MOST = 1 << 24
"""Numbers of U at most, 64 MB; with more U is left out: so many questions have few examples each."""


@dataclass(frozen=True)
class QuestionHeadConfig(AttendingConfig):
    """Sizes of the head."""

    prior: bool = True
    """Whether the query adds a learned term of its own to the logits."""
    scored_at: str | None = None
    """The stage whose features are scored, or ``finer``: the last one with smaller cells than the stage that is
    attended, which is always the last. None: the same stage."""
    even: bool = False
    """Whether every cell has the score 0 before training, so that the map is even."""
    evenness: Weight = 0.0
    """Weight of the penalty on maps that are not even, Eq. (5): few pictures teach no narrow map."""


class QuestionHeadModel(PictureQueryModel):
    """One soft attention on the last map, and a classifier with a term for each question."""

    Config = QuestionHeadConfig
    config: QuestionHeadConfig
    attention: SoftAttention
    keeps_features = True  # both of the maps

    def __init__(self, config: QuestionHeadConfig) -> None:
        super().__init__(config)
        stage = config.scored_at or self.look_name
        if stage == FINER:
            stage = resolution_ends(self.backbone)[-2:][0]
        self.scored = self.backbone.check_stage(stage)
        scored, attended = (self.backbone.frames[name] for name in (self.scored, self.look_name))
        self.to_scored = geometry.compose(geometry.invert(scored), attended)  # (2,3): cells of the last → of the scored
        self.step = max(1, round(float(self.to_scored[0, 0])))  # scored cells from one attended cell to the next
        channels = self.backbone.channels[self.scored]
        self.standardise = nn.BatchNorm2d(channels, affine=False)
        self.attention = SoftAttention(channels, config.queries, hidden=config.hidden)
        if config.even:
            nn.init.zeros_(self.attention.scorer.to_score.weight)
            nn.init.zeros_(cast(Tensor, self.attention.scorer.to_score.bias))
        self.head = self.new_head()
        shape = (config.queries, config.answers, self.channels)
        self.terms = nn.Parameter(torch.zeros(shape)) if math.prod(shape) <= MOST else None  # U

    @property
    def encoding_name(self) -> str:
        """Both stages."""
        return self.look_name if self.scored == self.look_name else f"{self.scored}+{self.look_name}"

    def encode(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → features (B,C,h,w); with a stage to score (B,D+C,h,w), its channels first."""
        if self.scored == self.look_name:
            return super().encode(images)
        scored = self.backbone.between(images, to=self.scored)  # (B,D,H',W')
        last = self.backbone.between(scored, after=self.scored)  # (B,C,h,w)
        return torch.cat([self.at_attended(scored, (last.shape[-2], last.shape[-1])), last], 1)

    def at_attended(self, scored: Tensor, grid: Size) -> Tensor:
        """Features (B,D,H',W') of the scored stage at the cells (h, w) of the last: (B,D,h,w).

        Each is the mean of the cells round it, nearer than one step of the last stage.
        """
        near = F.avg_pool2d(scored, 2 * self.step - 1, 1, self.step - 1, count_include_pad=False)  # (B,D,H',W')
        return geometry.sample(near, self.to_scored, grid)

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """Eq. (2)-(4), then the classifier of the query."""
        asked = self.one_hot_query(encoding, query)  # (B,Q)
        weights = self.given(attention, self.look_name, grid_of(encoding))  # (B,h,w)
        values = encoding[:, -self.channels :]  # (B,C,h,w)
        keys = self.standardise(encoding[:, : self.standardise.num_features])  # (B,D,h,w)
        attended = attend_with_scores(self.attention.score(keys, asked), values, weights)
        output = self.classify_attended(attended, asked)
        if self.training and self.config.evenness:
            log_share = attended.scores.flatten(1).log_softmax(1)  # (B,n)
            surplus = log_share.exp() * (log_share + math.log(log_share.shape[1]))
            output.penalty = self.config.evenness * surplus.sum(1)  # (B,)
        return output

    @torch.no_grad()
    def set_classifier(
        self, centre: Tensor, spread: Tensor, weight: Tensor, terms: Tensor | None, bias: Tensor
    ) -> None:
        """Classify by the weights (K,C) and terms (Q,K,C) of (c - centre) / spread, and the biases (Q,K)."""
        norm, linear = self.head.norm, self.head.classify
        norm.running_mean.copy_(centre)  # type: ignore[union-attr]
        norm.running_var.copy_(spread.square())  # type: ignore[union-attr]
        norm.weight.copy_((spread.square() + norm.eps).sqrt() / spread)
        norm.bias.zero_()
        linear.weight.copy_(weight)
        linear.bias.copy_(bias[0])
        if self.terms is not None:
            self.terms.zero_() if terms is None else self.terms.copy_(terms)
        if self.prior is not None:
            self.prior.weight.copy_(bias - bias[0])

    def classify(self, feature: Tensor, asked: Tensor) -> Tensor:
        """(W + U_q) c + p_q: logits (B,K) of an attended feature (B,C) and a query (B,Q)."""
        context = self.head.drop(self.head.norm(feature))  # (B,C)
        logits: Tensor = self.head.classify(context)  # (B,K)
        if self.terms is not None:
            every = F.linear(context, self.terms.flatten(0, 1)).view(-1, *self.terms.shape[:2])  # (B,Q,K)
            logits = logits + torch.einsum("bqk,bq->bk", every, asked)
        return logits if self.prior is None else logits + self.prior(asked)
