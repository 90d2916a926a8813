"""Control for residual attention: a residual network of the same units, and no mask anywhere.

Paper: He et al., "Identity Mappings in Deep Residual Networks", 2016 (arXiv:1603.05027), as the comparison of Wang et
al., "Residual Attention Network for Image Classification", 2017 (arXiv:1704.06904).

Stem, stages and last units are those of :mod:`saccade.models.ran`, with plain units where that has attention modules.
How many there are is chosen so that weights and multiplications match: ``units: [5, 5, 10]`` has 1.1 M weights as
Attention-56, ``[11, 9, 20]`` has 1.9 M as Attention-92; ``tests/models/test_models_ran.py`` counts both.

Its look is a plain mean of the last map, which is what a global average pooling is.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from saccade.attention.scores import grid_of
from saccade.attention.soft import attend_uniformly
from saccade.backbones import Stages
from saccade.backbones.plain import start_weights
from saccade.backbones.resnet import BOTTLENECK, PreActivationUnit, Stem, stem, strides
from saccade.config import Within
from saccade.models.base import LAST, Given, LabelModel
from saccade.models.quadrants import square_batch
from saccade.models.ranges import MAX_STAGES, MAX_UNITS, Depth, Words
from saccade.outputs import SOFT, LabelOutput


@dataclass(frozen=True)
class ResidualNetConfig:
    """Sizes; the defaults match Attention-56 for 32 × 32."""

    answers: Words = 10
    """How many labels there are."""
    stem: Stem = "small"
    """For which pictures: ``small`` for about 32 × 32, ``large`` for about 224 × 224."""
    widths: Annotated[tuple[int, int, int, int], Within(BOTTLENECK, MAX_UNITS)] = (64, 128, 256, 256)
    """Channels of the three stages and of the last units; a step to more channels halves the grid."""
    units: Annotated[tuple[int, int, int], Within(0, MAX_STAGES)] = (5, 5, 10)
    """Plain units of each stage, behind the one that changes its channels."""
    last: Depth = 3
    """Units behind the last stage."""


class ResidualNetModel(LabelModel):
    """Pictures (B,3,H,W) → logits (B,K), and one look that prefers nothing."""

    Config = ResidualNetConfig
    config: ResidualNetConfig

    def __init__(self, config: ResidualNetConfig) -> None:
        super().__init__()
        self.config = config
        first, *_ = widths = config.widths
        stages: OrderedDict[str, nn.Module] = OrderedDict(stem=stem(config.stem, first // BOTTLENECK))
        channels, incoming = {"stem": first // BOTTLENECK}, first // BOTTLENECK
        plain = (*config.units, config.last - 1)
        for number, (width, stride, more) in enumerate(zip(widths, strides(widths), plain), start=1):
            units = [
                PreActivationUnit(incoming, width, stride),
                *(PreActivationUnit(width, width) for _ in range(more)),
            ]
            stages[f"stage{number}"], channels[f"stage{number}"] = nn.Sequential(*units), width
            incoming = width
        self.backbone = Stages(stages, channels)
        self.last_frame = self.backbone.frames[self.backbone.names[-1]]
        self.look_specs = {LAST: SOFT.at(self.last_frame)}
        self.norm = nn.BatchNorm2d(incoming)
        self.head = nn.Linear(incoming, config.answers)
        start_weights(self)

    @classmethod
    def tiny(cls) -> ResidualNetConfig:
        """A size for tests."""
        return ResidualNetConfig(answers=3, stem="large", widths=(8, 8, 16, 16), units=(1, 0, 0), last=1)

    @classmethod
    def example_batch(cls, count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs and labels that fit :meth:`tiny`: a square, labelled by its colour."""
        return square_batch(count, seed)

    @property
    def encoder(self) -> Stages:
        """The backbone."""
        return self.backbone

    def encode(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → features (B,C,h,w)."""
        features: Tensor = self.backbone(images)
        return features

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> LabelOutput:
        """Average the cells of the last map, then classify."""
        values = self.norm(encoding).relu()  # (B,C,h,w)
        attended = attend_uniformly(values, self.given(attention, LAST, grid_of(values)))
        return LabelOutput(self.head(attended.context), {LAST: attended})
