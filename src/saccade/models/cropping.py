"""Shared by models that read the answer from one crop of the picture: two stacks, the first of which chooses the crop.

The first stack sees the whole picture, whatever is asked; the query decides what is cut out; the second stack sees the
crop and nothing else. So only by cutting out the right thing can the query change the answer.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.geometry import Size
from saccade.models.base import Given, check_pictures, check_size
from saccade.models.picture_query import PictureQueryConfig, PictureQueryModel
from saccade.models.quadrants import quadrant_batch
from saccade.models.ranges import Pixels, Units
from saccade.outputs import QuestionOutput, crop_spec

LOOK = "crop"


@dataclass(frozen=True)
class CroppingConfig(PictureQueryConfig):
    """Settings that all of them have."""

    hidden: Units = 32
    """Units in which localisation feature and query meet."""
    picture: Pixels = (100, 100)
    """(height, width) of every picture."""
    crop: Pixels = (100, 100)
    """(height, width) at which the window is read."""
    smallest: float = 0.1
    """Extent of the smallest window, as a share of the picture."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backbone != "small":
            raise ValueError(
                f"backbone: a model that cuts out flattens the last map of the small stack, found '{self.backbone}'; "
                "choose small, or another model for that backbone"
            )


class CroppingModel(PictureQueryModel):
    """One crop of the picture; ``backbone`` is the localisation network, ``reader`` sees the crop.

    A model adds what cuts and its head, in this order, and says how it cuts (:meth:`ask`).
    """

    Config = CroppingConfig
    config: CroppingConfig

    def __init__(self, config: CroppingConfig) -> None:
        super().__init__(config)
        self.look_name = LOOK
        self.look_specs = {LOOK: crop_spec(config.crop, config.picture)}
        self.reader = self.new_backbone()
        height, width = self.backbone.grid(config.picture)[self.backbone.names[-1]]
        self.reader.grid(config.crop)  # refuses a crop that is too small for the stages
        self.located = (self.channels, height, width)
        """Shape of the last map of the localisation network."""

    @classmethod
    def tiny(cls) -> CroppingConfig:
        """A size for tests."""
        made: CroppingConfig = cls.Config(
            queries=4, answers=3, channels=8, depth=2, hidden=8, dropout=0.0, picture=(31, 34), crop=(15, 16)
        )
        return made

    @classmethod
    def example_batch(cls, count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs and labels that fit :meth:`tiny`: every picture is asked for the colour of each quadrant."""
        return quadrant_batch(count, seed, each=True)

    def check_input(self, size: Size) -> None:
        """Refuse a network input of another ``size`` (height, width) than the one this model was built for."""
        check_size(self.config.picture, size, "picture")

    def encode(self, images: Tensor) -> Tensor:
        """What does not depend on the query: the picture, to cut from, and where things are, side by side in a row.

        (B,3,H,W) → (B, 3·H·W + C·h·w); the sizes are known, so that :meth:`unpack_encoding` can tell them apart.
        """
        check_pictures(images, self.config.picture)
        return torch.cat([images.flatten(1), self.backbone(images).flatten(1)], dim=1)

    def unpack_encoding(self, encoding: Tensor) -> tuple[Tensor, Tensor]:
        """The picture (B,3,H,W) and the localisation map (B,C,h,w) of an encoding."""
        pixels = 3 * self.config.picture[0] * self.config.picture[1]
        images, located = encoding.tensor_split([pixels], dim=1)
        return images.reshape(-1, 3, *self.config.picture), located.reshape(-1, *self.located)

    @abstractmethod
    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """Locate, cut out, read."""

    def read(self, crop: Tensor) -> Tensor:
        """The feature (B,C) of a crop (B,3,h,w)."""
        if crop.device.type == "cpu":  # whose convolutions and poolings are faster with the channels together
            crop = crop.contiguous(memory_format=torch.channels_last)
        feature: Tensor = self.reader(crop).mean((2, 3))
        return feature
