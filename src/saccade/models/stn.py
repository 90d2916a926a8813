"""STN: one network finds where to look and cuts it out, another reads the answer from the crop.

Paper: the baseline STN of Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 5.1, after
Jaderberg et al. 2015 (arXiv:1506.02025).

==========  =============================================================
Sec. 5.1    localisation network: the four stages of SOFT, flattened    :meth:`StnModel.encode`
J. 3.1-3.3  θ from it and the query, bilinear crop                      :class:`saccade.attention.SpatialTransformer`
Sec. 5.1    "a single fc layer" behind a stack of its own on the crop   :meth:`StnModel.ask`
==========  =============================================================

The query goes to the localisation alone: only by cutting out the right thing can it change the answer. With
``query_to_classifier`` the classifier sees it too, which is no longer a test of attention.

Deviations from the paper: it says no more than the above, so the hidden layer in which feature and query meet, the
size of the crop (the picture's), the pooling of the last map (the mean), the pace and the bounds of the window
(:mod:`saccade.attention.spatial_transformer`) are choices made here; besides, those of
:mod:`saccade.models.picture_query`. Flattening ties a model to pictures of one size.

It ends near the level of a model that is not told the query, here as in the paper: a window that shows everything
already holds the most frequent colour, and nothing near it is better. :mod:`saccade.models.stn_tuned` does better.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.attention.spatial_transformer import SpatialTransformer
from saccade.models.base import Given
from saccade.models.cropping import LOOK, CroppingConfig, CroppingModel
from saccade.models.picture_query import AnswerHead
from saccade.outputs import Act, QuestionOutput


@dataclass(frozen=True)
class StnConfig(CroppingConfig):
    """Sizes of STN; where the paper has them the defaults are the paper's."""

    bounded: bool = True
    """Whether windows stay inside the picture; False: any affine map."""
    pace: float = 0.1
    """How fast windows leave their start, see :mod:`saccade.attention.spatial_transformer`."""
    query_to_classifier: bool = False
    """Whether the classifier sees the query too."""


class StnModel(CroppingModel):
    """The window is any affine map that a layer on the flattened localisation map chooses."""

    Config = StnConfig
    config: StnConfig

    def __init__(self, config: StnConfig) -> None:
        super().__init__(config)
        channels, height, width = self.located
        self.transformer = SpatialTransformer(
            channels * height * width,
            config.queries,
            crop=config.crop,
            hidden=config.hidden,
            bounded=config.bounded,
            smallest=config.smallest,
            pace=config.pace,
        )
        asked = config.queries if config.query_to_classifier else 0
        self.head = AnswerHead(self.channels + asked, config.answers, dropout=config.dropout)

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """Locate, cut out, read."""
        images, located = self.unpack_encoding(encoding)  # (B,3,H,W), (B,C,h,w)
        asked = self.one_hot_query(encoding, query)  # (B,Q)
        frame = self.given(attention, LOOK, (images.shape[0], 2, 3), signed=True)
        cropped = self.transformer.attend(images, located.flatten(1), asked, frame=frame)
        feature = self.read(cropped.crop)  # (B,C)
        if self.config.query_to_classifier:
            feature = torch.cat([feature, asked], dim=1)  # (B,C+Q)
        crop = Act(cropped.crop, values=images, theta=cropped.theta)
        return QuestionOutput(self.classify(feature, asked), {LOOK: crop})
