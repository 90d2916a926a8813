"""A probe: one small head on the maps of a frozen backbone. Its accuracy shows what the features contain.

The heads are in :mod:`saccade.models.probe_heads`. :class:`ProbeModel` gives a picture one label,
:class:`AskedProbeModel` answers questions about it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.attention.scores import grid_of
from saccade.backbones import build_backbone
from saccade.backbones.stages import folded, folded_channels, levels_of, unfolded
from saccade.models.base import BackboneConfig, Given, Glimpses, ImageModel, ImageOnlyModel, QueryModel, Units, Words
from saccade.models.probe_heads import PYRAMID, HeadName, new_head
from saccade.trace import ModelOutput


@dataclass(frozen=True)
class ProbeConfig(BackboneConfig):
    """Settings of a probe."""

    answers: Words = 10
    """Number of labels."""
    backbone: str = "mobilenetv2"
    """mobilenetv2, efficientnet-lite0, compact, timm:NAME, hf:NAME …"""
    head: HeadName = "soft"
    """How the cells of the last map are pooled."""
    hidden: Units = 32
    """Units of the score of ``soft`` and ``hard``, width of the keys of ``cross``."""
    query_count: Glimpses = 4
    """How many queries ``queries`` has."""
    pyramid: tuple[str, ...] = ()
    """The stages that ``pyramid`` attends to, beside the last; the finest first."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.head == PYRAMID) != bool(self.pyramid):
            raise ValueError("pyramid: names the finer stages of head: pyramid, and of no other head")


@dataclass(frozen=True)
class AskedProbeConfig(ProbeConfig):
    """Settings of a probe that is asked."""

    queries: Words = 10
    """Number of different questions."""


class HeadOnBackbone(ImageModel):
    """A frozen backbone, the statistics of its features, and one head; what both probes have in common."""

    config: ProbeConfig
    total = "mean"

    centre: Tensor
    spread: Tensor

    keeps_features = True

    def __init__(self, config: ProbeConfig) -> None:
        super().__init__(config)
        self.backbone = build_backbone(config.backbone, through=config.through)
        self.stage = self.backbone.names[-1]
        self.levels = levels_of(self.backbone, config.pyramid)
        self.channels = folded_channels(self.levels)
        self.head = new_head(
            config.head,
            self.channels,
            config.answers,
            hidden=config.hidden,
            queries=config.query_count,
            levels=self.levels,
            questions=config.queries if isinstance(config, AskedProbeConfig) else 1,
        )
        frames = self.backbone.frames
        names = self.head.look_names
        self.look_specs = {name: self.head.spec.at(frames.get(name, frames[self.stage])) for name in names}
        self.register_buffer("centre", torch.zeros(self.channels))
        self.register_buffer("spread", torch.ones(self.channels))

    def encode(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → features (B,C,h,w); those of a pyramid folded."""
        return folded(self.backbone, images, self.levels) if self.config.pyramid else super().encode(images)

    def read(self, encoding: Tensor, query: Tensor | None, attention: Given | None) -> ModelOutput:
        """Standardise the features, attend, classify; ``query`` (B,) where questions are asked."""
        values = standardised(encoding, self.centre, self.spread)  # (B,C,h,w)
        if attention is not None:
            maps = unfolded(values, self.levels) if self.config.pyramid else [values] * len(self.look_names)
            for name, features in zip(self.look_names, maps):
                self.given(attention, name, grid_of(features))  # checked
        logits, acts = self.head(values, attention, query)
        return ModelOutput(logits, acts)


class ProbeModel(HeadOnBackbone, ImageOnlyModel):
    """Pictures (B,3,H,W) → logits (B,K); one look on the last map, or one for each query or stage."""

    Config = ProbeConfig

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> ModelOutput:
        """What the head says of the features."""
        return self.read(encoding, None, attention)


class AskedProbeModel(HeadOnBackbone, QueryModel):
    """Pictures (B,3,H,W) and query ids (B,) → logits (B,K); looks as those of :class:`ProbeModel`."""

    Config = AskedProbeConfig
    config: AskedProbeConfig

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> ModelOutput:
        """What the head says of the features, asked ``query`` (B,)."""
        return self.read(encoding, query, attention)


AnyProbe = ProbeModel | AskedProbeModel


def standardised(features: Tensor, centre: Tensor, spread: Tensor) -> Tensor:
    """Features (B,C,H,W), channel by channel less their mean and over their standard deviation (C,)."""
    return (features - centre[:, None, None]) / spread[:, None, None]
