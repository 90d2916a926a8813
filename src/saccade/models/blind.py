"""Blind: the stack and head of SOFT without the query, to see how often the answer can be guessed.

A control of the attribute table of Seo et al. (2016, arXiv:1606.02393): on MREF the most frequent colour of a picture
is the answer to about four questions in ten. A model that does no better has not used its query.

=========  ====================================================
Eq. (1)    f = CNN(I)                          :meth:`BlindModel.encode`
Eq. (4)    with α_ij = 1/HW, whatever is asked :func:`saccade.attention.soft.attend_uniformly`
=========  ====================================================

Deviations from the paper: it has no such row.
"""

from __future__ import annotations

from torch import Tensor

from saccade.attention.scores import grid_of
from saccade.attention.soft import attend_uniformly
from saccade.models.base import Given
from saccade.models.picture_query import PictureQueryConfig, PictureQueryModel
from saccade.outputs import QuestionOutput


class BlindModel(PictureQueryModel):
    """Mean pooling of the last map; the query is checked and then left alone (but for ``prior``, where asked for)."""

    Config = PictureQueryConfig

    def __init__(self, config: PictureQueryConfig) -> None:
        super().__init__(config)
        self.head = self.new_head()

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """The classifier on the mean of all cells."""
        asked = self.one_hot_query(encoding, query)  # (B,Q)
        weights = self.given(attention, self.look_name, grid_of(encoding))  # (B,h,w)
        return self.classify_attended(attend_uniformly(encoding, weights), asked)
