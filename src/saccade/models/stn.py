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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from saccade.attention.spatial_transformer import SpatialTransformer, crop_look
from saccade.geometry import Size
from saccade.models.answer_head import AnswerHead
from saccade.models.base import Raw
from saccade.models.one_size import check_pictures, check_size
from saccade.models.picture_query import PictureQueryConfig, PictureQueryModel
from saccade.models.quadrants import quadrant_batch
from saccade.trace import Look

LOOK = "crop"


@dataclass(frozen=True)
class StnConfig(PictureQueryConfig):
    """Sizes of STN; where the paper has them the defaults are the paper's."""

    hidden: int = 32
    """Units in which localisation feature and query meet."""
    picture: tuple[int, int] = (100, 100)
    """(height, width) of every picture."""
    crop: tuple[int, int] = (100, 100)
    """(height, width) at which the window is read."""
    bounded: bool = True
    """Whether windows stay inside the picture; False: any affine map."""
    smallest: float = 0.1
    """Extent of the smallest bounded window, as a share of the picture."""
    pace: float = 0.1
    """How fast windows leave their start, see :mod:`saccade.attention.spatial_transformer`."""
    query_to_classifier: bool = False
    """Whether the classifier sees the query too."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backbone != "small":
            raise ValueError(
                f"backbone: stn flattens the last map of the small stack, found '{self.backbone}'; choose small, or "
                "another model for that backbone"
            )


class StnModel(PictureQueryModel):
    """One crop of the picture; ``backbone`` is the localisation network, ``reader`` sees the crop."""

    Config = StnConfig

    def __init__(self, config: StnConfig) -> None:
        super().__init__(config)
        self.look_name = LOOK
        self.reader = self.new_backbone()
        height, width = self.backbone.grid(config.picture)[self.backbone.names[-1]]
        self.reader.grid(config.crop)  # refuses a crop that is too small for the stages
        self.located = self.channels * height * width
        self.transformer = SpatialTransformer(
            self.located,
            config.queries,
            crop=config.crop,
            hidden=config.hidden,
            bounded=config.bounded,
            smallest=config.smallest,
            pace=config.pace,
        )
        asked = config.queries if config.query_to_classifier else 0
        self.head = AnswerHead(self.channels + asked, config.answers, dropout=config.dropout)

    @classmethod
    def tiny(cls) -> Any:
        """A size for tests."""
        return StnConfig(
            queries=4, answers=3, channels=8, depth=2, hidden=8, dropout=0.0, picture=(31, 34), crop=(15, 16)
        )

    @classmethod
    def example_batch(cls, count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs and labels that fit :meth:`tiny`: every picture is asked for the colour of each quadrant."""
        return quadrant_batch(count, seed, each=True)

    def check_input(self, size: Size) -> None:
        """Refuse a network input of another ``size`` (height, width) than the one this model was built for."""
        check_size(self.config.picture, size, "picture")

    def encode(self, images: Tensor) -> Tensor:
        """What does not depend on the query: the picture, to cut from, and where things are, side by side in a row.

        (B,3,H,W) → (B, 3·H·W + F); the size is known, so that :meth:`ask` can take them apart.
        """
        check_pictures(images, self.config.picture)
        located = self.backbone(images).flatten(1)  # (B,F)
        return torch.cat([images.flatten(1), located], dim=1)

    def ask(self, encoding: Tensor, query: Tensor) -> Raw:
        """Locate, cut out, read."""
        flat, located = encoding.tensor_split([encoding.shape[1] - self.located], dim=1)
        images = flat.reshape(-1, 3, *self.config.picture)  # (B,3,H,W)
        asked = self.asked(encoding, query)  # (B,Q)
        cropped = self.transformer.attend(images, located, asked)
        read = self.reader(cropped.crop).mean((2, 3))  # (B,C)
        feature = torch.cat([read, asked], dim=1) if self.config.query_to_classifier else read  # (B,C[+Q])
        return {
            "logits": self.classified(feature, asked),  # (B,K)
            f"{LOOK}.theta": cropped.theta,  # (B,2,3)
            f"{LOOK}.values": images,  # (B,3,H,W)
            f"{LOOK}.context": cropped.crop,  # (B,3,h,w)
        }

    def looks(self, raw: Raw) -> tuple[Look, ...]:
        """One crop of the picture."""
        return (crop_look(LOOK, raw[f"{LOOK}.theta"], self.config.crop, self.config.picture),)
