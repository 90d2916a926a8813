"""A batch of pictures and the labels of what is on them: what goes into a model, what should come out, and where.

A model reads pictures at the size it was built for; its trace is placed on the pictures at their own size.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.data.scenes.hashing import hash_u32
from saccade.data.scenes.layout import GlyphLayout
from saccade.geometry import Size, apply_to_boxes, invert, scale_shift, touched
from saccade.models.base import ImageOnlyModel
from saccade.models.multiset_reader import MultisetModel
from saccade.outputs import ModelOutput, joined
from saccade.tasks.forward_passes import at_once, in_parts
from saccade.trace import AttentionTrace

NO_LABEL = -1
"""Fills the columns of ``labels`` that a picture has no label for."""


@dataclass(frozen=True, eq=False)
class MultisetBatch:
    """Pictures with their labels, and where the evidence of each label is, in pixels of the pictures given."""

    images: Tensor
    """(B, 3, H, W) float32 in 0..1."""
    labels: Tensor
    """(B, M) numbers of classes, then −1."""
    picture: Tensor
    """(B,) number of the picture in its split."""
    boxes: Tensor = None  # type: ignore[assignment]  # NaN everywhere if not given
    """(B, M, 4) xyxy, NaN where a label has none and where there is no label."""
    layout: GlyphLayout | None = None
    """The scenes, where the pictures were generated."""
    slot: Tensor | None = None
    """(B, M) which object of its scene each label stands for."""

    def __post_init__(self) -> None:
        if self.boxes is None:
            nowhere = torch.full((*self.labels.shape, 4), float("nan"), device=self.labels.device)
            object.__setattr__(self, "boxes", nowhere)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def present(self) -> Tensor:
        """(B, M) bool: where there is a label."""
        return self.labels != NO_LABEL

    def counts(self, classes: int) -> Tensor:
        """(B, classes) int64: how often each class is on each picture."""
        counts = self.labels.new_zeros(len(self), classes + 1)
        return counts.scatter_add_(1, self.labels + 1, torch.ones_like(self.labels))[:, 1:]

    def masks(self) -> Tensor:
        """(B, M, H, W) bool: the pixels of each label's object, or those its box touches; none where none is known."""
        if self.layout is None or self.slot is None:
            return touched(self.boxes, (self.images.shape[-2], self.images.shape[-1]))
        rows = torch.arange(len(self), device=self.labels.device)[:, None]
        return self.layout.masks()[rows, self.slot] & self.present[..., None, None]

    def shuffled(self, order_seed: int) -> MultisetBatch:
        """The same pictures with the labels of each, and what belongs to them, in an order drawn from the seed."""
        column = torch.arange(self.labels.shape[1], device=self.labels.device)
        key = hash_u32(order_seed, self.picture[:, None], column)  # (B, M)
        order = torch.argsort(key.masked_fill(~self.present, 1 << 32), dim=1, stable=True)
        return replace(
            self,
            labels=self.labels.gather(1, order),
            boxes=self.boxes.gather(1, order[..., None].expand(-1, -1, 4)),
            slot=None if self.slot is None else self.slot.gather(1, order),
        )

    def framed(self, images: Tensor, frames: Tensor) -> MultisetBatch:
        """Other pictures of the same, where ``frames`` (B,2,3) lead from their pixels back to these; boxes follow."""
        boxes = apply_to_boxes(invert(frames)[:, None], self.boxes.double())  # (B,M,4)
        return replace(self, images=images, boxes=boxes.to(self.boxes.dtype), layout=None, slot=None)

    def to(self, device: torch.device | str) -> MultisetBatch:
        """The same pictures on another device."""
        present = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return MultisetBatch(**{name: value.to(device) for name, value in present.items()})


def at_size(images: Tensor, size: Size) -> Tensor:
    """Pictures (B,3,H,W) at ``size``, as they are if they have it; the paper enlarges 100 × 100 to 224 × 224."""
    if tuple(images.shape[-2:]) == tuple(size):
        return images
    return F.interpolate(images, size, mode="bilinear", align_corners=False, antialias=True).clamp(0, 1)


def boxes_at_size(boxes: Tensor, images: Tensor, size: Size) -> Tensor:
    """Boxes (B,M,4) of pictures (B,3,H,W) where :func:`at_size` puts them."""
    height, width = images.shape[-2:]
    x, y = boxes.view(*boxes.shape[:-1], 2, 2).unbind(-1)  # (B,M,2) each
    return torch.stack([x * (size[1] / width), y * (size[0] / height)], dim=-1).flatten(-2)  # (B,M,4)


def read_all(model: ImageOnlyModel, images: Tensor, size: Size) -> tuple[ModelOutput, AttentionTrace]:
    """What ``model`` says of pictures (B,3,H,W), and a trace whose maps lie on them at their own size."""
    raw = in_parts(model, at_size(images, size))
    height, width = images.shape[-2:]
    canvas = scale_shift((width / size[1], height / size[0]), (0.0, 0.0))  # network input → picture
    trace = model.wrap(raw, size).trace
    shape = torch.tensor([height, width], device=images.device).expand(len(images), 2)
    return raw, trace.placed(canvas.to(images.device).expand(len(images), 2, 3), shape)


def read_objects(model: MultisetModel, images: Tensor, boxes: Tensor, size: Size) -> ModelOutput:
    """What the classifier of single objects says of pictures (B,3,H,W), and of each box (B,M,4) on them alone."""
    network_boxes, network_images = boxes_at_size(boxes, images, size), at_size(images, size)
    together = at_once(network_images)
    parts = [
        model.forward_raw(some, single=True, boxes=theirs)
        for some, theirs in zip(torch.split(network_images, together), torch.split(network_boxes, together))
    ]
    return joined(parts)
