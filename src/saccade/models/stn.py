"""STN and STN-tuned: one network finds where to look and cuts it out, another reads the answer from the crop.

The query decides what the first stack cuts out of the picture; the second stack sees the crop alone. So the query can
change the answer only by cutting out the right thing.

Paper: the baseline STN of Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 5.1, after
Jaderberg et al. 2015 (arXiv:1506.02025).

==========  =============================================================
Sec. 5.1    localisation network: the four stages of SOFT, flattened    :meth:`StnModel.encode`
J. 3.1-3.3  θ from it and the query, bilinear crop                      :class:`saccade.attention.SpatialTransformer`
Sec. 5.1    "a single fc layer" behind a stack of its own on the crop   :meth:`StnModel.ask`
==========  =============================================================

With ``query_to_classifier`` the classifier sees the query too, which is no longer a test of attention.

Deviations from the paper: those of :mod:`saccade.models.picture_query`, and what it leaves open: the hidden layer in
which feature and query meet, the size of the crop (the picture's), the pooling of the last map (the mean), and the pace
and bounds of the window (:mod:`saccade.attention.spatial_transformer`).

**STN-tuned**, which the paper does not have, uses its query:

* the window is a square around the point that attention over the localisation map names, and at most half of the
  picture (:class:`saccade.attention.PointingTransformer`);
* in training a head of its own answers from what the localisation attended (``helper_logits``, whose cross-entropy the
  task adds): the gradient of a crop compares a window with its neighbours a pixel away, that of attention all cells;
* the crop teaches the extent of the window, not its place, so the pointing is taught as SOFT is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from saccade.attention.spatial_transformer import START, CropMechanism, PointingTransformer, SpatialTransformer
from saccade.config import Within
from saccade.models.base import Given, Pixels, Units, laid_out
from saccade.models.picture_query import AnswerHead, PictureQueryConfig, PictureQueryModel
from saccade.trace import Act, QuestionOutput, crop_spec

LOOK = "crop"


@dataclass(frozen=True)
class CroppingConfig(PictureQueryConfig):
    """Settings of both."""

    hidden: Units = 32
    """Units in which localisation feature and query meet."""
    picture: Pixels = (100, 100)
    """(height, width) of every picture."""
    crop: Pixels = (100, 100)
    """(height, width) at which the window is read."""
    smallest: Annotated[float, Within(0, START, above=True, below=True)] = 0.1
    """Extent of the smallest window, as a share of the picture."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backbone != "small":
            raise ValueError(
                f"backbone: a model that crops flattens the last map of the small stack, found '{self.backbone}'; "
                "choose small, or another model for that backbone"
            )


class CroppingModel(PictureQueryModel):
    """One crop of the picture: ``backbone`` localises, ``reader`` sees the crop. A model adds transformer and heads."""

    Config = CroppingConfig
    config: CroppingConfig
    transformer: CropMechanism
    query_to_classifier: bool = False
    sized_by = "picture"

    def __init__(self, config: CroppingConfig) -> None:
        super().__init__(config)
        self.look_name = LOOK
        self.helper: AnswerHead | None = None  # answers in training from what the localisation attended
        self.look_specs = {LOOK: crop_spec(config.crop, config.picture)}
        self.reader = self.new_backbone()
        height, width = self.backbone.grid(config.picture)[self.backbone.names[-1]]
        self.reader.grid(config.crop)  # refuses a crop that is too small for the stages
        self.located = (self.channels, height, width)  # shape of the last map of the localisation network

    def encode(self, images: Tensor) -> Tensor:
        """The picture and the localisation map in a row: (B,3,H,W) → (B, 3·H·W + C·h·w)."""
        return torch.cat([images.flatten(1), super().encode(images).flatten(1)], dim=1)

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """Locate, cut out, read."""
        picture = (3, *self.config.picture)
        images, located = encoding.tensor_split([math.prod(picture)], dim=1)
        images, located = images.reshape(-1, *picture), located.reshape(-1, *self.located)  # (B,3,H,W), (B,C,h,w)
        query = self.one_hot_query(encoding, query)  # (B,Q)
        frame = self.given(attention, LOOK, (images.shape[0], 2, 3), signed=True)
        cropped = self.transformer.attend(images, located, query, frame=frame)
        feature = self.reader(laid_out(cropped.crop)).mean((2, 3))  # (B,C)
        if self.query_to_classifier:
            feature = torch.cat([feature, query], dim=1)  # (B,C+Q)
        crop = Act(cropped.crop, values=images, theta=cropped.theta)
        output = QuestionOutput(self.classify(feature, query), {LOOK: crop})
        if self.training and self.helper is not None and cropped.attended is not None:
            output.helper_logits = self.helper(cropped.attended.context)  # (B,K)
        return output


@dataclass(frozen=True)
class StnConfig(CroppingConfig):
    """Sizes of STN; where the paper has them the defaults are the paper's."""

    bounded: bool = True
    """Whether windows stay inside the picture; False: any affine map."""
    pace: Annotated[float, Within(0, 1, above=True)] = 0.1
    """How fast windows leave their start, see :mod:`saccade.attention.spatial_transformer`."""
    query_to_classifier: bool = False
    """Whether the classifier sees the query too."""


class StnModel(CroppingModel):
    """The window is any affine map that a layer on the flattened localisation map chooses."""

    Config = StnConfig

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
        self.query_to_classifier = config.query_to_classifier
        self.head = self.new_head(self.channels + (config.queries if config.query_to_classifier else 0))


@dataclass(frozen=True)
class StnTunedConfig(CroppingConfig):
    """Sizes of the tuned STN."""

    crop: Pixels = (50, 50)
    """(height, width) at which the window is read: as fine as the picture where the window is largest."""
    largest: Annotated[float, Within(0, 1, above=True)] = 0.5
    """Extent of the largest window, as a share of the picture."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.smallest >= self.largest:
            raise ValueError(f"largest: above the smallest window of {self.smallest}, found {self.largest}")


class StnTunedModel(CroppingModel):
    """The window lies where attention over the localisation map points."""

    Config = StnTunedConfig

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
