"""STN, tuned: the spatial transformer of Table 1, changed until it uses its query.

Paper: the baseline STN of Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), which ends at the
level of a model without a query. What is new against :mod:`saccade.models.stn`:

* the window is a square around the point that attention over the localisation map names, and never larger than half
  of the picture (:class:`saccade.attention.PointingTransformer`);
* in training the localisation has to answer the question itself, by a head of its own on what it attended
  (``helper_logits``, whose cross-entropy the task adds). The gradient of a crop compares a window with its neighbours a
  pixel away; that of attention compares all cells at once. The helper is taught nothing but the answer: no place;
* the crop teaches the extent of the window, not its place: what points is then taught as SOFT is, and by nothing that
  pulls it elsewhere while it has not learned to point.

The answer is still read from the crop alone: the helper's is thrown away, and not computed outside of training.

Deviations from the paper: all of the above; it has no such row.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from saccade.attention.spatial_transformer import PointingTransformer
from saccade.models.base import Given
from saccade.models.cropping import LOOK, CroppingConfig, CroppingModel
from saccade.models.ranges import Pixels
from saccade.outputs import Act, QuestionOutput


@dataclass(frozen=True)
class StnTunedConfig(CroppingConfig):
    """Sizes of the tuned STN."""

    crop: Pixels = (50, 50)
    """(height, width) at which the window is read: as fine as the picture where the window is largest."""
    largest: float = 0.5
    """Extent of the largest window, as a share of the picture."""


class StnTunedModel(CroppingModel):
    """The window lies where attention over the localisation map points."""

    Config = StnTunedConfig
    config: StnTunedConfig

    def __init__(self, config: StnTunedConfig) -> None:
        super().__init__(config)
        self.transformer = PointingTransformer(
            self.channels,
            config.queries,
            crop=config.crop,
            hidden=config.hidden,
            smallest=config.smallest,
            largest=config.largest,
            steered=False,
        )
        self.head = self.new_head()
        self.helper = self.new_head()

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """Locate, cut out, read."""
        images, located = self.unpack_encoding(encoding)  # (B,3,H,W), (B,C,h,w)
        asked = self.one_hot_query(encoding, query)  # (B,Q)
        frame = self.given(attention, LOOK, (images.shape[0], 2, 3), signed=True)
        pointed = self.transformer.attend(images, located, asked, frame=frame)
        crop = Act(pointed.crop, values=images, theta=pointed.theta)
        output = QuestionOutput(self.classify(self.read(pointed.crop), asked), {LOOK: crop})
        if self.training:
            output.helper_logits = self.helper(pointed.attended.context)  # (B,K)
        return output
