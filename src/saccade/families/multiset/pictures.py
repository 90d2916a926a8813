"""Pictures of multisets as a model reads them: at the size it was built for, with a trace that knows the original."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade import geometry
from saccade.models.base import PictureModel, Raw
from saccade.models.multiset_reader import MultisetModel
from saccade.tasks.forward_passes import at_once, in_parts
from saccade.trace import AttentionTrace


def at_size(images: Tensor, size: geometry.Size) -> Tensor:
    """Pictures (B,3,H,W) at ``size``, as they are if they have it; the paper enlarges 100 × 100 to 224 × 224."""
    if tuple(images.shape[-2:]) == tuple(size):
        return images
    return F.interpolate(images, size, mode="bilinear", align_corners=False, antialias=True).clamp(0, 1)


def boxes_at_size(boxes: Tensor, images: Tensor, size: geometry.Size) -> Tensor:
    """Boxes (B,M,4) of pictures (B,3,H,W) where :func:`at_size` puts them."""
    height, width = images.shape[-2:]
    x, y = boxes.view(*boxes.shape[:-1], 2, 2).unbind(-1)  # (B,M,2) each
    return torch.stack([x * (size[1] / width), y * (size[0] / height)], dim=-1).flatten(-2)  # (B,M,4)


def read_all(model: PictureModel, images: Tensor, size: geometry.Size) -> tuple[Raw, AttentionTrace]:
    """What ``model`` says of pictures (B,3,H,W), and a trace whose maps lie on them at their own size."""
    raw = in_parts(model, at_size(images, size))
    height, width = images.shape[-2:]
    canvas = geometry.scale_shift((width / size[1], height / size[0]), (0.0, 0.0))  # network input → picture
    trace = model.wrap(raw, size).trace
    shape = torch.tensor([height, width], device=images.device).expand(len(images), 2)
    return raw, trace.placed(canvas.to(images.device).expand(len(images), 2, 3), shape)


def read_objects(model: MultisetModel, images: Tensor, boxes: Tensor, size: geometry.Size) -> Raw:
    """What the classifier of single objects says of pictures (B,3,H,W), and of each box (B,M,4) on them alone."""
    network_boxes, network_images = boxes_at_size(boxes, images, size), at_size(images, size)
    together = at_once(network_images)
    parts = [
        model.forward_raw(some, single=True, boxes=theirs)
        for some, theirs in zip(torch.split(network_images, together), torch.split(network_boxes, together))
    ]
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
