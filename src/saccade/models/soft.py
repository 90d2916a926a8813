"""SOFT: a backbone, one soft attention on its last map, one linear layer.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 3 and the baseline SOFT of
Section 5.1, after Xu et al. 2015.

=========  ==============================================================
Eq. (1)    f = CNN(I)                        :meth:`SoftModel.encode`
Eq. (2-4)  scores, weights, attended feature :class:`saccade.attention.SoftAttention`
=========  ==============================================================

Deviations from the paper: none besides those of :mod:`saccade.models.picture_query`.

The query meets the features inside the scorer and nowhere else: the classifier never sees it.
"""

from __future__ import annotations

from dataclasses import dataclass

from saccade.attention.soft import SoftAttention
from saccade.models.picture_query import AttendingConfig, PictureQueryModel, start_glorot


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
