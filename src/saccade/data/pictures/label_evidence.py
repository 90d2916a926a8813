"""Where labels can be seen: the boxes, points and masks of labelled pictures, in pixels of the network input.

A mask is the evidence where there is one, else a disc round the point, else the box. All go through the same canvas as
their picture. A box beside a mask or a point is that of the object they lie on.

Axes: N rows, P pictures, B rows of a batch, H and W pixels of the network input.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.data.pictures.prepared import ByteStore, PreparedPictures, prepared_mask
from saccade.data.tables.labelled import LabelRow
from saccade.geometry import Size, apply, apply_to_boxes, invert, touched

POINT_RADIUS = 1 / 14
"""Radius of the disc that stands for a point, in shorter sides of the network input: 16 of 224 pixels."""
_NO_BOX, _NO_POINT = (float("nan"),) * 4, (float("nan"),) * 2


def evidence_of(box: Tensor, point: Tensor, mask: Tensor | None, size: Size) -> Tensor:
    """(B, H, W) bool: the mask, else a disc round the point (B,2), else what the box (B,4) touches, else nothing."""
    height, width = size
    x = torch.arange(width, device=box.device)  # (W,) left edges
    y = torch.arange(height, device=box.device)[:, None]  # (H,1) upper edges
    inside = touched(box, size)  # (B,H,W)
    at_x, at_y = point[:, :, None, None].unbind(1)
    near = (x + 0.5 - at_x) ** 2 + (y + 0.5 - at_y) ** 2 <= (POINT_RADIUS * min(height, width)) ** 2  # (B,H,W)
    found = torch.where(at_x.isfinite(), near, inside)
    return found if mask is None else torch.where(mask.flatten(1).any(-1)[:, None, None], mask, found)


class LabelEvidence:
    """The evidence of labelled pictures, by the number of the row.

    Args:
        rows: N labelled pictures.
        pictures: the same pictures, decoded.
        device: where batches are made.
        limit: bytes of decoded masks kept at most.
        picture_of: the number of each row's picture, where several rows may be about one; None: row i has picture i.
    """

    def __init__(
        self,
        rows: Sequence[LabelRow],
        pictures: PreparedPictures,
        device: torch.device,
        *,
        limit: int,
        picture_of: Sequence[int] | None = None,
    ) -> None:
        self._size = pictures.size
        own = [*range(len(rows))] if picture_of is None else [*picture_of]
        unreadable = {place for place, picture in enumerate(own) if picture in pictures.unreadable}
        held = [(place, row.mask, row.mask_grey) for place, row in enumerate(rows) if row.mask]
        held = [each for each in held if each[0] not in unreadable]
        holders = [place for place, *_ in held]
        self._at = torch.full((len(rows),), -1)  # (N,) which mask each row has
        self._at[holders] = torch.arange(len(holders))
        self._at = self._at.to(device)
        sizes = pictures.image_size.tolist()

        def decode(number: int) -> Tensor:
            place, mask, grey = held[number]
            height, width = sizes[own[place]]
            return prepared_mask(mask, (height, width), self._size, grey)

        self._masks = ByteStore(len(holders), decode, self._size, device, limit=limit)
        self.wrong: dict[int, str] = {
            **{holders[number]: f"unreadable mask: {why}" for number, why in self._masks.unreadable.items()},
            **_outside(rows, [sizes[picture] for picture in own], unreadable),
        }
        """Number of the row → what is wrong with its evidence."""
        usable = [place not in self.wrong for place in range(len(rows))]
        boxes = torch.tensor(
            [row.box if row.box and fine else _NO_BOX for row, fine in zip(rows, usable)], dtype=torch.float64
        ).reshape(-1, 4)  # (N,4)
        points = torch.tensor(
            [row.point if row.point and fine else _NO_POINT for row, fine in zip(rows, usable)], dtype=torch.float64
        ).reshape(-1, 2)  # (N,2)
        readable = torch.tensor([place not in unreadable for place in range(len(rows))])  # (N,)
        laid, put = torch.full_like(boxes, torch.nan), torch.full_like(points, torch.nan)
        if bool(readable.any()):
            to_input = invert(pictures.canvas.cpu()[torch.tensor(own)[readable]])  # (n,2,3)
            laid[readable] = apply_to_boxes(to_input, boxes[readable])
            put[readable] = apply(to_input, points[readable])
        self._boxes, self._points = laid.float().to(device), put.float().to(device)  # (N,4), (N,2)
        self._at[sorted(self.wrong)] = -1
        self.is_there = bool((self._at >= 0).any()) or bool((~laid.isnan()).any()) or bool((~put.isnan()).any())
        """Whether any row has evidence."""

    @property
    def size(self) -> Size:
        """(height, width) of the network input."""
        return self._size

    def take(self, rows: Tensor) -> Tensor:
        """The evidence (B,H,W) bool of the ``rows`` (B,); nothing is marked where a row has none."""
        return evidence_of(self._boxes[rows], self._points[rows], self._mask(rows), self._size)

    def objects(self, rows: Tensor) -> Tensor:
        """The whole object (B,H,W) bool: the mask, else the box, else nothing; a point says not how far it goes."""
        nowhere = torch.full_like(self._points[rows], torch.nan)
        return evidence_of(self._boxes[rows], nowhere, self._mask(rows), self._size)

    def points(self, rows: Tensor) -> Tensor:
        """The clicked points (B,2) as (x, y); NaN where there is none."""
        return self._points[rows]

    def boxes(self, rows: Tensor) -> Tensor:
        """The boxes (B,4) xyxy, of the evidence or of its object; NaN where there is none."""
        return self._boxes[rows]

    def boxes_of_objects(self, rows: Tensor) -> Tensor:
        """The box (B,4) xyxy of the object on which a mask or point lies; NaN where the box is the evidence itself."""
        finer = (self._at[rows] >= 0) | ~self._points[rows].isnan().any(1)  # (B,)
        return torch.where(finer[:, None], self._boxes[rows], torch.nan)

    def _mask(self, rows: Tensor) -> Tensor | None:
        """The masks (B,H,W) bool, nothing where a row has none; None where no row has one."""
        at = self._at[rows]  # (B,)
        has = at >= 0
        if not bool(has.any()):
            return None
        masks = torch.zeros(len(rows), *self._size, dtype=torch.bool, device=at.device)
        masks[has] = self._masks.take(at[has]).bool()
        return masks


def _outside(rows: Sequence[LabelRow], sizes: Sequence[Sequence[int]], unreadable: set[int]) -> dict[int, str]:
    """Rows whose box or point has nothing of the picture, of the size (height, width)."""
    found = {}
    for place, (row, (height, width)) in enumerate(zip(rows, sizes)):
        if place in unreadable:
            continue
        box, point = row.box, row.point
        if point is not None and not (0 <= point[0] <= width and 0 <= point[1] <= height):
            found[place] = f"point outside the picture: {row.image.name}, {width}×{height}"
        elif box is not None and (min(box[2], width) <= max(box[0], 0) or min(box[3], height) <= max(box[1], 0)):
            found[place] = f"box outside the picture: {row.image.name}, {width}×{height}"
    return found
