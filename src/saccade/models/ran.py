"""RAN, the residual attention network: residual units, and attention modules whose masks can only add.

Paper: Wang et al., "Residual Attention Network for Image Classification", 2017 (arXiv:1704.06904), Section 3, Figures 2
and 3, Table 2.

=================  ===========================================================================================
Eq. (1), (3)-(6)    the mask and what it does: :mod:`saccade.attention.residual`
Section 3, Fig. 2   a module, :class:`AttentionModule`: p units, the trunk (t units) beside the mask branch, p units
Table 2             stem, a unit, modules, a unit, modules, a unit, modules, three units, mean, one layer
=================  ===========================================================================================

p = 1, t = 2, r = 1 as in the paper. With m modules in each stage the trunk has 36·m + 20 layers: ``modules: [1, 1, 1]``
is Attention-56, ``[2, 2, 2]`` is Attention-92 for 32 × 32. For 224 × 224 Attention-92 is ``[1, 2, 3]``, the stem is
``large`` and the widths are 256, 512, 1024, 2048.

Deviations from the paper: it does not say the widths for 32 × 32. 64, 128, 256, 256 with a stem of 16 give the 1.9 M
weights that it reports for Attention-92 (convolutions and the last layer: 1,931,696).

**Control** (:class:`ResidualNetModel`): a residual network (He et al. 2016, arXiv:1603.05027) of the same stem, stages
and last units, with plain units instead of attention modules, as many as match in weights and multiplications: ``units:
[5, 5, 10]`` has 1.1 M weights as Attention-56, ``[11, 9, 20]`` has 1.9 M as Attention-92. Its look is a plain mean of
the last map.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor, nn

from saccade import geometry
from saccade.attention.residual import MaskType, ResidualAttention
from saccade.attention.scores import grid_of
from saccade.attention.soft import attend_uniformly
from saccade.backbones import Stages
from saccade.backbones.convnets import BOTTLENECK, PreActivationUnit, Stem, stem, strides
from saccade.backbones.stages import start_weights
from saccade.config import Within
from saccade.models.base import LAST, MAX_STAGES, MAX_UNITS, Depth, Given, LabelModel, Words
from saccade.trace import SOFT, Act, LabelOutput, LookSpec

MAX_POOLS = 8


@dataclass(frozen=True)
class UnitsConfig:
    """Settings of both networks of residual units."""

    answers: Words = 10
    """Number of labels."""
    stem: Stem = "small"
    """For which pictures: ``small`` for about 32 × 32, ``large`` for about 224 × 224."""
    widths: Annotated[tuple[int, int, int, int], Within(BOTTLENECK, MAX_UNITS)] = (64, 128, 256, 256)
    """Channels of the three stages and of the last units; a step to more channels halves the grid."""
    last: Depth = 3
    """Units behind the last stage."""


@dataclass(frozen=True)
class RanConfig(UnitsConfig):
    """Sizes; the defaults are those of Attention-56 for 32 × 32."""

    modules: Annotated[tuple[int, int, int], Within(0, MAX_STAGES)] = (1, 1, 1)
    """Attention modules of each stage."""
    pools: Annotated[tuple[int, int, int], Within(1, MAX_POOLS)] = (3, 2, 1)
    """How often the mask branch of each stage goes down by half."""
    mask_type: MaskType = "mixed"
    """mixed (f1), channel (f2) or spatial (f3)."""
    residual: bool = True
    """(1 + M)·F; else M·F, naive attention learning."""

    def __post_init__(self) -> None:
        if not any(self.modules):
            raise ValueError("modules: a stage or more needs one; the model 'resnet' has none")


class AttentionModule(nn.Module):
    """Figure 2: a unit; two units of trunk beside the mask branch; a unit. (B,C,H,W) → the same."""

    def __init__(self, channels: int, pools: int, mask_type: MaskType, *, residual: bool) -> None:
        super().__init__()
        self.before = unit(channels)
        self.trunk = nn.Sequential(unit(channels), unit(channels))
        self.mask = ResidualAttention(channels, pools, unit, mask_type=mask_type, residual=residual)
        self.after = unit(channels)

    def forward(self, features: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Act]:
        """The output and the act of the mask on the trunk; given ``weights`` replace the mask."""
        before = self.before(features)
        act = self.mask.attend(before, self.trunk(before), weights=weights)
        return self.after(act.context), act


def unit(channels: int) -> PreActivationUnit:
    """A residual unit that keeps channels and size."""
    return PreActivationUnit(channels, channels)


class RanModel(LabelModel):
    """Pictures (B,3,H,W) → logits (B,K), and one gate for each attention module."""

    Config = RanConfig
    config: RanConfig
    total = "product"

    def __init__(self, config: RanConfig) -> None:
        super().__init__(config)
        first, *_ = widths = config.widths
        self.stem = stem(config.stem, first // BOTTLENECK)
        self.entry = nn.ModuleList()  # the first unit of each stage
        self.attention = nn.ModuleDict()  # the modules by the names of their looks
        self.stages: list[tuple[str, ...]] = []  # these names, by stage
        self.look_specs: dict[str, LookSpec] = {}
        frame, incoming = geometry.frame_through(self.stem), first // BOTTLENECK
        for number, (width, stride) in enumerate(zip(widths, strides(widths))):
            self.entry.append(PreActivationUnit(incoming, width, stride))
            frame, incoming = geometry.frame_through(self.entry[number], frame), width
            names = _names(number + 1, config.modules[number]) if number < len(config.modules) else ()
            for name in names:
                pools, kind = config.pools[number], config.mask_type
                module = self.attention[name] = AttentionModule(width, pools, kind, residual=config.residual)
                self.look_specs[name] = module.mask.spec(frame)
            self.stages.append(names)
        self.last_frame = frame
        self.last = nn.Sequential(*(unit(incoming) for _ in range(config.last - 1)))
        self.norm = nn.BatchNorm2d(incoming)
        self.head = nn.Linear(incoming, config.answers)
        start_weights(self)

    def encode(self, images: Tensor) -> Tensor:
        """What comes before the first mask: (B,3,H,W) → (B,C,h,w)."""
        features: Tensor = self.entry[0](self.stem(images))
        return features

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> LabelOutput:
        """All modules, then the classifier."""
        here = encoding
        acts: dict[str, Act] = {}
        for number, names in enumerate(self.stages):
            here = self.entry[number](here) if number else here
            for name in names:
                here, acts[name] = self.attention[name](here, self._given_mask(attention, name, here))
        here = self.norm(self.last(here)).relu_()  # (B,C,h,w)
        return LabelOutput(self.head(here.mean((2, 3))), acts | {LAST: Act(values=here)})

    def _given_mask(self, attention: Given | None, name: str, features: Tensor) -> Tensor | None:
        """The mask given for a module, whole (B,C,h,w) or in its short form."""
        shape: tuple[int, ...] = tuple(features.shape)
        if attention is not None and name in attention and attention[name].dim() < len(shape):
            by_channel = self.config.mask_type == "channel"
            shape = shape[:2] if by_channel and attention[name].dim() == 2 else (shape[0], *shape[2:])
        return self.given(attention, name, shape, signed=self.config.mask_type == "channel")


def _names(stage: int, modules: int) -> tuple[str, ...]:
    """What the looks of a stage are called: ``stage1``; of several modules ``stage1-1``, ``stage1-2``."""
    return (f"stage{stage}",) if modules == 1 else tuple(f"stage{stage}-{place + 1}" for place in range(modules))


@dataclass(frozen=True)
class ResidualNetConfig(UnitsConfig):
    """Sizes; the defaults match Attention-56 for 32 × 32."""

    units: Annotated[tuple[int, int, int], Within(0, MAX_STAGES)] = (5, 5, 10)
    """Plain units of each stage, behind the one that changes its channels."""


class ResidualNetModel(LabelModel):
    """Pictures (B,3,H,W) → logits (B,K), and one look that prefers nothing."""

    Config = ResidualNetConfig
    config: ResidualNetConfig

    def __init__(self, config: ResidualNetConfig) -> None:
        super().__init__(config)
        first, *_ = widths = config.widths
        stages: OrderedDict[str, nn.Module] = OrderedDict(stem=stem(config.stem, first // BOTTLENECK))
        channels, incoming = {"stem": first // BOTTLENECK}, first // BOTTLENECK
        plain = (*config.units, config.last - 1)
        for number, (width, stride, more) in enumerate(zip(widths, strides(widths), plain), start=1):
            units = [PreActivationUnit(incoming, width, stride), *(unit(width) for _ in range(more))]
            stages[f"stage{number}"], channels[f"stage{number}"] = nn.Sequential(*units), width
            incoming = width
        self.backbone = Stages(stages, channels)
        self.last_frame = self.backbone.frames[self.backbone.names[-1]]
        self.look_specs = {LAST: SOFT.at(self.last_frame)}
        self.norm = nn.BatchNorm2d(incoming)
        self.head = nn.Linear(incoming, config.answers)
        start_weights(self)

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> LabelOutput:
        """Average the cells of the last map, then classify."""
        values = self.norm(encoding).relu()  # (B,C,h,w)
        attended = attend_uniformly(values, self.given(attention, LAST, grid_of(values)))
        return LabelOutput(self.head(attended.context), {LAST: attended})
