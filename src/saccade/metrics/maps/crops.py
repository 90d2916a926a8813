"""How a crop lies on the evidence: how much of it the crop covers, and how tightly.

A crop is a box xyxy in pixels (``crop_boxes`` reads it off a look). The evidence is a mask, or a box.

=====================  =========================================================================================
``covers_evidence``    share of the evidence's pixels that lie in the crop; 1 is all of it
``overlap``            area of crop and evidence box together over the area of either (intersection over union)
``inside_evidence``    share of the crop that lies in the evidence box
=====================  =========================================================================================

Beside them stand two controls of the same side: the centred square, and squares anywhere in the picture (their
expectation, nothing is drawn). A larger crop covers more and is less inside: read the three together.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade import geometry
from saccade.geometry import Size

_PLACES = 16  # squares anywhere: a lattice of 16 × 16 places


def crop_boxes(frame: Tensor, grid: Size) -> Tensor:
    """The upright box (B,4) xyxy round what a crop of ``grid`` cells shows, from its frame (B,2,3)."""
    whole = torch.tensor([0.0, 0.0, grid[1], grid[0]], dtype=frame.dtype, device=frame.device)
    return geometry.apply_to_boxes(frame, whole.expand(*frame.shape[:-2], 4))


def mask_boxes(masks: Tensor) -> Tensor:
    """The tight box (B,4) xyxy of each mask (B,H,W); NaN for an empty one."""
    rows, columns = masks.any(-1), masks.any(-2)  # (B,H), (B,W)
    first = torch.stack([columns.int().argmax(-1), rows.int().argmax(-1)], dim=-1)  # (B,2)
    behind = torch.stack([columns.flip(-1).int().argmax(-1), rows.flip(-1).int().argmax(-1)], dim=-1)  # (B,2)
    size = torch.tensor([masks.shape[-1], masks.shape[-2]], device=masks.device)
    boxes = torch.cat([first, size - behind], dim=-1).double()
    return torch.where(rows.any(-1, keepdim=True), boxes, torch.nan)


def covers_evidence(crops: Tensor, masks: Tensor) -> Tensor:
    """Share (B,) of the pixels of each mask (B,H,W) that lie in its crop (B,4); NaN for an empty mask."""
    height, width = masks.shape[-2:]
    shares = geometry.box_shares(crops.double(), (height, width))  # (B,H,W): part of each pixel in the crop
    total = masks.flatten(1).sum(1).double()
    found = (shares * masks).flatten(1).sum(1) / total.clamp(min=1)
    return torch.where(total > 0, found, torch.nan)


def overlap(crops: Tensor, boxes: Tensor) -> Tensor:
    """Intersection over union (…) of boxes (…,4) and (…,4)."""
    common = _area(_common(crops, boxes))
    return common / (_area(crops) + _area(boxes) - common)


def inside_evidence(crops: Tensor, boxes: Tensor) -> Tensor:
    """Share (…) of each crop (…,4) that lies in the box (…,4)."""
    return _area(_common(crops, boxes)) / _area(crops)


def crop_scores(crops: Tensor, masks: Tensor) -> dict[str, Tensor]:
    """All three scores (B,) of crops (B,4) against masks (B,H,W)."""
    boxes = mask_boxes(masks)
    return {
        "covers_evidence": covers_evidence(crops, masks),
        "overlap": overlap(crops.double(), boxes),
        "inside_evidence": inside_evidence(crops.double(), boxes),
    }


def centred(crops: Tensor, picture: Size) -> Tensor:
    """Boxes (B,4) of the same sides in the middle of a picture."""
    height, width = picture
    half = (crops[..., 2:] - crops[..., :2]) / 2  # (B,2)
    middle = torch.tensor([width / 2, height / 2], dtype=crops.dtype, device=crops.device)
    return torch.cat([middle - half, middle + half], dim=-1)


def anywhere_scores(crops: Tensor, masks: Tensor) -> dict[str, Tensor]:
    """The mean (B,) of each score over boxes of the same sides on an even lattice of places inside the picture."""
    height, width = masks.shape[-2:]
    side = (crops[..., 2:] - crops[..., :2]).double()  # (B,2)
    room = torch.tensor([width, height], dtype=torch.float64, device=crops.device) - side  # (B,2)
    step = (torch.arange(_PLACES, dtype=torch.float64, device=crops.device) + 0.5) / _PLACES  # (K,)
    boxes = mask_boxes(masks)  # (B,4)
    total = masks.flatten(1).sum(1).double()  # (B,)
    x0, y0 = room[:, :1] * step, room[:, 1:] * step  # (B,K) each
    tall = _spans(y0, side[:, 1:], height)  # (B,K,H): part of each row in the box
    wide = _spans(x0, side[:, :1], width)  # (B,K,W)
    mean = torch.einsum("bkh,bhw,blw->b", tall, masks.double(), wide) / (_PLACES**2 * total.clamp(min=1))
    corner = torch.stack([x0[:, :, None].expand(-1, -1, _PLACES), y0[:, None].expand(-1, _PLACES, -1)], dim=-1)
    placed = torch.cat([corner, corner + side[:, None, None]], dim=-1)  # (B,K,K,4)
    fixed = boxes[:, None, None]
    return {
        "covers_evidence": torch.where(total > 0, mean, torch.nan),
        "overlap": overlap(placed, fixed).flatten(1).mean(1),
        "inside_evidence": inside_evidence(placed, fixed).flatten(1).mean(1),
    }


def _spans(start: Tensor, length: Tensor, pixels: int) -> Tensor:
    """(B,K,P): the share of each of ``pixels`` in a row that lies in [start, start + length]."""
    left = torch.arange(pixels, dtype=torch.float64, device=start.device)
    low, high = start.unsqueeze(-1), (start + length).unsqueeze(-1)
    return (torch.minimum(left + 1, high) - torch.maximum(left, low)).clamp(0, 1)


def _common(first: Tensor, second: Tensor) -> Tensor:
    return torch.cat(
        [torch.maximum(first[..., :2], second[..., :2]), torch.minimum(first[..., 2:], second[..., 2:])], dim=-1
    )


def _area(boxes: Tensor) -> Tensor:
    return (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1)
