"""SOFT and HARD: a backbone, one attention on its last map, one linear layer.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 3 and the baselines SOFT and HARD
of Section 5.1, after Xu et al. 2015.

**SOFT.** The query meets the features inside the scorer and nowhere else: the classifier never sees it.

=========  ==============================================================
Eq. (1)    f = CNN(I)                        :meth:`SoftModel.encode`
Eq. (2-4)  scores, weights, attended feature :class:`saccade.attention.SoftAttention`
=========  ==============================================================

Deviations from the paper: none besides those of :mod:`saccade.models.picture_query`.

**HARD.** The location is latent; every cell of the last map gives its own answer.

==============  ================================================================
Eq. (1)         f = CNN(I)                             :meth:`HardModel.encode`
Eq. (2-3)       α, the prior over locations            :class:`saccade.attention.HardAttention`
Section 5.1     log p(y) = log Σ_ij α_ij p(y|f_ij)     ``logits``: cross-entropy on them is the marginal loss
Section 5.2     p(a) = Σ_ij α_ij p(a|f_ij), label by   ``logits``: log p(a) − log (1 − p(a)), so that binary
                label, with ``multi_label``            cross-entropy on them is the marginal loss
==============  ================================================================

``estimator: marginal`` is the paper's HARD: with few locations the sum is exact. ``estimator: reinforce`` draws
locations in training, after Xu et al. (2015), and the likeliest one answers in eval mode; see
:mod:`saccade.losses.policy`.

Deviations from the paper: those of :mod:`saccade.models.picture_query`; the BatchNorm of the head sees all cells. The
paper does not say how several labels are summed out. With ``prior`` the query's own term is part of every cell's
answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch.nn.functional as F
from torch import Tensor

from saccade.attention import hard
from saccade.attention.scores import grid_of
from saccade.attention.soft import SoftAttention
from saccade.config import Within
from saccade.models.base import MAX_STEPS, Given
from saccade.models.picture_query import AttendingConfig, PictureQueryModel, start_glorot
from saccade.trace import MIXTURE, Act, QuestionOutput


@dataclass(frozen=True)
class SoftConfig(AttendingConfig):
    """Sizes of SOFT; the defaults are the paper's."""


class SoftModel(PictureQueryModel):
    """One soft attention on the last map."""

    Config = SoftConfig
    config: SoftConfig
    attention: SoftAttention

    def __init__(self, config: SoftConfig) -> None:
        super().__init__(config)
        self.attention = SoftAttention(self.channels, config.queries, hidden=config.hidden)
        self.head = self.new_head()
        if config.initial == "glorot":
            start_glorot(self.attention, self.head)


@dataclass(frozen=True)
class HardConfig(AttendingConfig):
    """Sizes of HARD; the defaults are the paper's."""

    estimator: Literal["marginal", "reinforce"] = "marginal"
    """Sum over all locations, or draw some."""
    samples: Annotated[int, Within(2, MAX_STEPS)] = 4
    """Locations drawn for each picture in training (reinforce); at least two, as each is judged by the others."""


class HardModel(PictureQueryModel):
    """One hard attention on the last map, summed out or sampled."""

    Config = HardConfig
    config: HardConfig
    attention: hard.HardAttention

    def __init__(self, config: HardConfig) -> None:
        super().__init__(config)
        self.look_specs = {self.look_name: MIXTURE.at(self.backbone.frames[self.look_name])}
        self.attention = hard.HardAttention(self.channels, config.queries, hidden=config.hidden)
        self.head = self.new_head()
        if config.initial == "glorot":
            start_glorot(self.attention, self.head)

    def cell_answers(self, features: Tensor, query: Tensor) -> Tensor:
        """The classifier on each cell alone: (B,C,h,w) and the query (B,Q) → (B,K,h,w).

        Log-probabilities log p(y|f_ij) of exclusive answers; of many labels the log-odds of each.
        """
        cells = features.permute(0, 2, 3, 1)  # (B,h,w,C)
        logits: Tensor = self.head(cells.flatten(0, 2)).unflatten(0, cells.shape[:3])  # (B,h,w,K)
        if self.prior is not None:
            logits = logits + self.prior(query)[:, None, None]  # (B,h,w,K)
        return (logits if self.multi_label else logits.log_softmax(-1)).permute(0, 3, 1, 2)  # (B,K,h,w)

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """The prior, the cells' answers, and what comes of both."""
        name = self.look_name
        query = self.one_hot_query(encoding, query)  # (B,Q)
        weights = self.given(attention, name, grid_of(encoding))  # (B,h,w), or None: its own
        weights, scores = self.attention.prior(encoding, query, weights=weights)  # (B,h,w) each
        answers = self.cell_answers(encoding, query)  # (B,K,h,w)
        act = Act(weights=weights, scores=scores, values=self._log_probability(answers).exp())  # values: (B,K,h,w)
        sums = self.config.estimator == "marginal"
        output = self._summed(weights, answers) if sums else self._sampled(act, answers)
        act.context = self._log_probability(output.logits).exp()  # (B,K)
        output.acts = {name: act}
        output.posterior = hard.posterior(weights, self._log_probability(answers), output.logits.argmax(-1))  # (B,h,w)
        return output

    def _log_probability(self, answers: Tensor) -> Tensor:
        return F.logsigmoid(answers) if self.multi_label else answers

    def _summed(self, weights: Tensor, answers: Tensor) -> QuestionOutput:
        logits = hard.log_marginal(weights, self._log_probability(answers))  # log p: (B,K)
        if self.multi_label:  # 1 − p is a mixture too, so that a label nearly certain keeps its digits
            logits = logits - hard.log_marginal(weights, self._log_probability(-answers))  # log p − log (1 − p): (B,K)
        return QuestionOutput(logits, argmax_logits=hard.at_cells(answers, hard.best_cell(weights))[:, 0])  # (B,K) each

    def _sampled(self, act: Act, answers: Tensor) -> QuestionOutput:
        """What one location answers: in training the first of those drawn, otherwise the likeliest."""
        weights = act.weights  # (B,h,w)
        cells = hard.sample_cells(weights, self.config.samples) if self.training else hard.best_cell(weights)  # (B,S|1)
        log_prob, logits = hard.log_prob_of(weights, cells), hard.at_cells(answers, cells)  # (B,S|1), (B,S|1,K)
        act.choice, act.log_prob = cells[:, 0], log_prob[:, 0]  # (B,) each
        output = QuestionOutput(logits[:, 0])  # (B,K)
        if self.training:
            output.sampled_logits, output.sampled_log_prob = logits, log_prob
            output.entropy = hard.cell_entropy(weights)
        return output
