"""Shared by the models that read a multiset of labels, and a control that counts without attention.

Paper: Welleck et al., "Saliency-based Sequential Image Attention with Multiset Prediction", 2017 (arXiv:1711.05165),
Section 5, "Implementation Details": the backbone is fine-tuned as a classifier of single objects, then frozen. That
classifier stays in the model (``single_logits`` (B,C)). The last class of all other logits means "nothing more" (the
paper's "stop").

Deviations from the paper: the compact backbone starts from nothing; ``backbone: resnet34``, ``pretrained: true`` and
``input_size: [224, 224]`` are the paper's.

**Control** (:class:`MultisetCountsModel`): one hidden layer on each cell, a mean over cells, and one linear layer for
the probability of 0, 1, … ``most`` objects of every class (``count_logits`` (B,C,most+1)). At each step it names the
class that is likeliest to have one more object, until none is likelier than not. ``logits`` (B,T,C+1) are these
log-odds, and 0 for "nothing more".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.attention.scores import grid_of
from saccade.attention.soft import attend_uniformly
from saccade.backbones import build_backbone
from saccade.models.base import BackboneConfig, Given, ImageOnlyModel, Pixels, Steps, Units, Words, attention_kwargs
from saccade.trace import SOFT, ModelOutput, MultisetOutput

MIN_BOX_CELLS = 1e-6  # cells; a box that covers less than this covers nothing


@dataclass(frozen=True)
class MultisetConfig(BackboneConfig):
    """Settings of all readers; the defaults are those of the compact models."""

    classes: Words = 10
    """Number of different labels."""
    most: Steps = 4
    """Labels in the fullest picture; a model says at most one more."""
    backbone: str = "compact"
    """compact, compact-fine, compact-deep, resnet34, vgg16, timm:NAME …"""
    input_size: Pixels = (100, 100)
    """(height, width) of every picture."""


class LabelReader(ImageOnlyModel):
    """Base of models that name labels one after the other: ``logits`` (B,T,C+1), and ``said`` (B,T), what was named."""

    def logits_and_answer(self, output: Any) -> tuple[Tensor, Tensor]:
        """Logits (B,T,C+1), and what was named at each step (B,T)."""
        return output.logits, output.said

    def answer_format(self) -> dict[str, object]:
        """Where the reading ends."""
        return {"stop": "an answer whose id is the number of answers ends the reading"}


class MultisetModel(LabelReader):
    """Pictures (B,3,H,W) of one size → the labels in them, as many of each as there are objects."""

    config: MultisetConfig
    total = "mean"
    sized_by = "input_size"

    to_cells: Tensor  # pixels of the network's input → cells of the look
    from_cells: Tensor  # cells of the look → pixels of the network's input

    def __init__(self, config: MultisetConfig) -> None:
        super().__init__(config)
        self.backbone = build_backbone(config.backbone, through=config.through)
        self.look_stage = self.backbone.names[-1]  # the stage whose cells are attended
        self.channels = self.backbone.channels[self.look_stage]
        self.grid = self.backbone.grid(config.input_size)[self.look_stage]
        self.stop = config.classes  # the class that says "nothing more"
        self.steps = config.most + 1  # classes that are named, with the last "nothing more"
        self.single = nn.Linear(self.channels, config.classes)
        from_cells = self.backbone.frames[self.look_stage]  # (2,3)
        self.register_buffer("to_cells", geometry.invert(from_cells).float(), persistent=False)
        self.register_buffer("from_cells", from_cells.float(), persistent=False)

    def forward_raw(
        self,
        images: Tensor,
        *,
        single: bool = False,
        boxes: Tensor | None = None,
        attention: Given | None = None,
    ) -> ModelOutput:
        """Pictures (B,3,H,W) → plain tensors; with ``single`` of the classifier of single objects alone."""
        encoding = self.encode(images)  # (B,C…,h,w)
        if not single:
            return self.answer(encoding, **attention_kwargs(attention))
        output = MultisetOutput(single_logits=self.read_single(encoding))
        if boxes is not None:
            output.object_logits = self._read_boxes(encoding, boxes)
        return output

    def read_single(self, encoding: Tensor) -> Tensor:
        """Logits (B,C) of the classifier of single objects on encoded pictures (B,C…,h,w)."""
        logits: Tensor = self.single(encoding[:, : self.channels].mean((2, 3)))
        return logits

    def _read_boxes(self, encoding: Tensor, boxes: Tensor) -> Tensor:
        """Its logits on the cells under each of the boxes (B,M,4) alone: (B,C…,h,w) → (B,M,C)."""
        in_cells = geometry.apply_to_boxes(self.to_cells, boxes)  # (B,M,4)
        shares = geometry.box_shares(in_cells, self.grid).to(encoding.dtype)  # (B,M,h,w)
        shares = shares / shares.sum((-2, -1), keepdim=True).clamp(min=MIN_BOX_CELLS)
        logits: Tensor = self.single(torch.einsum("bmhw,bchw->bmc", shares, encoding[:, : self.channels]))  # (B,M,C)
        return logits

    def cells_in(self, boxes: Tensor) -> Tensor:
        """Which cells have their centre inside which of the boxes (B,M,4): (B,M,h,w) bool; none where one is NaN."""
        return geometry.cells_in_boxes(boxes, self.from_cells, self.grid)


CERTAIN = 1e-6  # probabilities are at least this far from 0 and 1


@dataclass(frozen=True)
class MultisetCountsConfig(MultisetConfig):
    """Sizes of the counting control."""

    hidden: Units = 256
    """Units in which each cell is looked at."""


class MultisetCountsModel(MultisetModel):
    """Counts every class; its look is a plain mean."""

    Config = MultisetCountsConfig
    config: MultisetCountsConfig

    def __init__(self, config: MultisetCountsConfig) -> None:
        super().__init__(config)
        self.look_specs = {self.look_stage: SOFT.at(self.backbone.frames[self.look_stage])}
        self.cell = nn.Conv2d(self.channels, config.hidden, 1)
        self.count = nn.Linear(config.hidden, config.classes * (config.most + 1))

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> MultisetOutput:
        """Count each class in the encoded pictures (B,C,h,w), and say the counts as a multiset."""
        cells = self.cell(encoding).relu()  # (B,D,h,w)
        attended = attend_uniformly(cells, self.given(attention, self.look_stage, grid_of(cells)))
        counts = self.count(attended.context).unflatten(1, (self.config.classes, self.config.most + 1))  # (B,C,most+1)
        logits, labels = self._labels(counts)
        return MultisetOutput(
            logits,
            {self.look_stage: attended},
            said=labels,
            single_logits=self.read_single(encoding),
            count_logits=counts,
        )

    def _labels(self, count_logits: Tensor) -> tuple[Tensor, Tensor]:
        """Counts (B,C,most+1) as a sequence of classes, the surest first, and nothing more behind them."""
        at_most = count_logits.softmax(-1).cumsum(-1)[..., :-1]  # P(n objects at most), n = 0 … most-1: (B,C,most)
        odds = torch.logit(1 - at_most, eps=CERTAIN)  # of one more than n: (B,C,most)
        none = torch.full_like(odds[..., :1], CERTAIN).logit()  # of more than ``most``: (B,C,1)
        odds = torch.cat([odds, none], dim=-1)  # (B,C,most+1)
        copies = torch.zeros_like(count_logits[..., :1], dtype=torch.long)  # said of each class so far: (B,C,1)
        logits, labels = [], []
        for _ in range(self.steps):
            more = odds.gather(-1, copies.clamp_max(self.config.most)).squeeze(-1)  # (B,C)
            logits.append(F.pad(more, (0, 1)))  # (B,C+1)
            labels.append(logits[-1].argmax(-1))  # (B,)
            copies = copies + F.one_hot(labels[-1], self.config.classes + 1)[:, :-1, None]  # (B,C,1)
        return torch.stack(logits, dim=1), torch.stack(labels, dim=1)  # (B,T,C+1), (B,T)
