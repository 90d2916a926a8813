"""Cross-attention: the stack of SOFT under one dot-product head, as a transformer would read it.

A control of the attribute table: does the additive scorer of Seo et al. (2016, arXiv:1606.02393) matter, or would any
attention do? Everything but the scorer is that of :mod:`saccade.models.soft`.

=====================  ====================================================
Seo, Eq. (1)           f = CNN(I)                          :meth:`CrossModel.encode`
Vaswani 2017, Eq. (1)  softmax(q·k/√d), weighted mean      :class:`saccade.attention.CrossAttention`
=====================  ====================================================

Deviations from the papers: those of :mod:`saccade.models.picture_query` and :mod:`saccade.attention.soft`.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from saccade.attention.scores import grid_of
from saccade.attention.soft import CrossAttention
from saccade.models.base import Given
from saccade.models.picture_query import PictureQueryConfig, PictureQueryModel
from saccade.models.ranges import Units
from saccade.outputs import QuestionOutput


@dataclass(frozen=True)
class CrossConfig(PictureQueryConfig):
    """Sizes of the cross-attention model; the defaults are those of SOFT."""

    hidden: Units = 32
    """Width of queries and keys."""


class CrossModel(PictureQueryModel):
    """One dot-product attention on the last map."""

    Config = CrossConfig
    config: CrossConfig

    def __init__(self, config: CrossConfig) -> None:
        super().__init__(config)
        self.attention = CrossAttention(self.channels, config.queries, hidden=config.hidden)
        self.head = self.new_head()

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """The query against every cell, then the classifier."""
        asked = self.one_hot_query(encoding, query)  # (B,Q)
        weights = self.given(attention, self.look_name, grid_of(encoding))  # (B,h,w)
        return self.classify_attended(self.attention.attend(encoding, asked, weights=weights), asked)
