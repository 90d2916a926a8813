"""Where the truth can be seen: the boxes, points and masks of rows, in pixels of the network input.

A mask is the evidence where there is one, else a disc round the point, else the box. All go through the same canvas as
their picture, and boxes end where it ends. A box beside a mask or a point is that of the object they lie on.

Axes: N rows, P pictures, B rows of a batch, H and W pixels of the network input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.pictures.prepared import ByteStore, PreparedPictures, prepared_mask
from saccade.data.tables.table import Row
from saccade.geometry import Size, apply, apply_to_boxes, compose, invert, sample, touched

# Radius of the disc that stands for a point, in shorter sides of the network input: 16 of 224 pixels.
POINT_RADIUS = 1 / 14
_NO_BOX, _NO_POINT = (float("nan"),) * 4, (float("nan"),) * 2


@dataclass(frozen=True, eq=False)
class Marks:
    """What marks the truth of a batch."""

    size: Size  # (height, width) of the network input
    box: Tensor  # (B,4) xyxy, NaN where there is none
    point: Tensor  # (B,2) (x, y), NaN where there is none
    mask: Tensor | None = None  # (B,H,W) bool, false everywhere for a row without one; None if no row has one

    def evidence(self) -> Tensor:
        """(B,H,W) bool: the mask, else a disc round the point, else the pixels that the box touches, else nothing."""
        height, width = self.size
        x = torch.arange(width, device=self.box.device)  # (W,) left edges
        y = torch.arange(height, device=self.box.device)[:, None]  # (H,1) upper edges
        at_x, at_y = self.point[:, :, None, None].unbind(1)
        radius = POINT_RADIUS * min(height, width)
        near = (x + 0.5 - at_x) ** 2 + (y + 0.5 - at_y) ** 2 <= radius**2  # (B,H,W)
        return self._or_mask(torch.where(at_x.isfinite(), near, touched(self.box, self.size)))

    def region(self) -> Tensor:
        """(B,H,W) bool: the object, where its outline is known: the mask, else the pixels of the box, else nothing.

        A point marks a part, and says nothing of how far the object goes.
        """
        return self._or_mask(touched(self.box, self.size))

    def _or_mask(self, marked: Tensor) -> Tensor:
        """The mask of each row, where it has one."""
        if self.mask is None:
            return marked
        return torch.where(self.mask.flatten(1).any(-1)[:, None, None], self.mask, marked)


class Evidence:
    """The evidence of rows about pictures, by the number of the row.

    Args:
        rows: N rows.
        pictures: their pictures, decoded.
        device: where batches are made.
        limit: bytes of decoded masks kept at most.
        picture_of: the number of each row's picture.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        pictures: PreparedPictures,
        device: torch.device,
        *,
        limit: int,
        picture_of: Sequence[int],
    ) -> None:
        self.size = pictures.size  # (height, width) of the network input
        self._canvas, self._picture = pictures.canvas, torch.tensor(picture_of, device=device)
        readable = [picture not in pictures.unreadable for picture in picture_of]
        sizes = [(int(height), int(width)) for height, width in pictures.image_size.tolist()]
        masked = [(place, row.mask, row.mask_grey) for place, row in enumerate(rows) if row.mask and readable[place]]
        held = [place for place, *_ in masked]

        def decode(number: int) -> Tensor:
            place, mask, grey = masked[number]
            return prepared_mask(mask, sizes[picture_of[place]], self.size, grey)

        self._masks = ByteStore(len(held), decode, self.size, device, limit=limit)
        # Number of the row → what is wrong with its evidence.
        self.wrong: dict[int, str] = {
            held[number]: f"unreadable mask: {why}" for number, why in self._masks.unreadable.items()
        }
        for place, row in enumerate(rows):
            if readable[place] and (what := _outside(row, sizes[picture_of[place]])):
                self.wrong.setdefault(place, what)
        usable = [place not in self.wrong and readable[place] for place in range(len(rows))]
        at = torch.full((len(rows),), -1)  # (N,) which mask each row has
        at[held] = torch.arange(len(held))
        at[[place for place in held if not usable[place]]] = -1
        self._at = at.to(device)
        boxes = [row.box if row.box and fine else _NO_BOX for row, fine in zip(rows, usable)]
        points = [row.point if row.point and fine else _NO_POINT for row, fine in zip(rows, usable)]
        most = pictures.image_size.cpu()[picture_of].double().flip(-1).repeat(1, 2)  # (N,4): width, height, twice
        box = torch.tensor(boxes, dtype=torch.float64).reshape(-1, 4).clamp(min=0).minimum(most)  # NaN stays NaN
        self._box = box.to(device)
        self._point = torch.tensor(points, dtype=torch.float64, device=device).reshape(-1, 2)
        # Whether any row has evidence.
        self.is_there = bool((at >= 0).any() or (~box.isnan()).any() or (~self._point.isnan()).any())

    def marks(self, rows: Tensor, frames: Tensor | None = None, *, masks: bool = True) -> Marks:
        """The evidence of the ``rows`` (B,).

        Args:
            rows: by number.
            frames: (B,2,3) of varied pictures, whose pixels they lead to those of the pictures as they are.
            masks: whether masks are read.
        """
        canvas = self._canvas[self._picture[rows]]  # (B,2,3)
        to_input = invert(canvas if frames is None else compose(canvas, frames))  # (B,2,3)
        mask = self._mask(rows) if masks else None
        if mask is not None and frames is not None:
            mask = carried(mask, frames)
        box, point = apply_to_boxes(to_input, self._box[rows]), apply(to_input, self._point[rows])
        return Marks(self.size, box.float(), point.float(), mask)

    def boxes_of_objects(self, rows: Tensor) -> Tensor:
        """The box (B,4) xyxy of the object on which a mask or point lies; NaN where the box is the evidence itself."""
        finer = (self._at[rows] >= 0) | ~self._point[rows].isnan().any(1)  # (B,)
        return torch.where(finer[:, None], self.marks(rows, masks=False).box, torch.nan)

    def _mask(self, rows: Tensor) -> Tensor | None:
        """The masks (B,H,W) bool, nothing where a row has none; None where no row of the data has one."""
        at = self._at[rows]  # (B,)
        has = at >= 0
        if not bool(has.any()):
            return None
        masks = torch.zeros(len(rows), *self.size, dtype=torch.bool, device=at.device)
        masks[has] = self._masks.take(at[has]).bool()
        return masks


def carried(marked: Tensor, frames: Tensor) -> Tensor:
    """Marked pixels (B,H,W) as they lie in varied pictures, of which ``frames`` (B,2,3) lead back to where they lay."""
    size = (marked.shape[-2], marked.shape[-1])
    return sample(marked.float().unsqueeze(1), frames, size, padding_mode="zeros")[:, 0] > 0.5


def _outside(row: Row, size: Size) -> str:
    """What of a row has nothing of its picture, in words; "" where all of it has."""
    (height, width), point = size, row.point
    if point is not None and not (0 <= point[0] <= width and 0 <= point[1] <= height):
        return f"point outside the picture: {row.image.name}, {width}×{height}"
    for box in (row.box, *row.boxes):
        if box is not None and (min(box[2], width) <= max(box[0], 0) or min(box[3], height) <= max(box[1], 0)):
            return f"box outside the picture: {row.image.name}, {width}×{height}"
    return ""
