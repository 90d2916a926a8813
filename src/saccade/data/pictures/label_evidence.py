"""Where labels can be seen: the boxes and masks of labelled pictures, in pixels of the network input.

A mask is the evidence where there is one, else the box. Both go through the same canvas as their picture.

Axes: N rows, B rows of a batch, H and W pixels of the network input.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from saccade.data.pictures.byte_store import ByteStore
from saccade.data.pictures.prepared import PreparedPictures, prepared_mask
from saccade.data.tables.labelled import LabelRow
from saccade.geometry import Size, apply_to_boxes, invert, touched

_NO_BOX = (float("nan"),) * 4


class LabelEvidence:
    """The evidence of labelled pictures, by the number of the row.

    Args:
        rows: N labelled pictures.
        pictures: the same pictures, decoded, in the same order.
        device: where batches are made.
        limit: bytes of decoded masks kept at most.
    """

    def __init__(
        self, rows: Sequence[LabelRow], pictures: PreparedPictures, device: torch.device, *, limit: int
    ) -> None:
        self._size = pictures.size
        held = [(place, row.mask) for place, row in enumerate(rows) if row.mask and place not in pictures.unreadable]
        holders = [place for place, _ in held]
        self._at = torch.full((len(rows),), -1)  # (N,) which mask each row has
        self._at[holders] = torch.arange(len(holders))
        self._at = self._at.to(device)
        sizes = pictures.image_size.tolist()

        def decode(number: int) -> Tensor:
            place, mask = held[number]
            height, width = sizes[place]
            return prepared_mask(mask, (height, width), self._size)

        self._masks = ByteStore(len(holders), decode, self._size, device, limit=limit)
        self.wrong: dict[int, str] = {
            **{holders[number]: f"unreadable mask: {why}" for number, why in self._masks.unreadable.items()},
            **_outside(rows, pictures),
        }
        """Number of the row → what is wrong with its evidence."""
        boxes = torch.tensor(
            [row.box if row.box and place not in self.wrong else _NO_BOX for place, row in enumerate(rows)],
            dtype=torch.float64,
        ).reshape(-1, 4)  # (N,4)
        readable = torch.tensor([place not in pictures.unreadable for place in range(len(rows))])  # (N,)
        laid = torch.full((len(rows), 4), torch.nan, dtype=torch.float64)
        if bool(readable.any()):
            laid[readable] = apply_to_boxes(invert(pictures.canvas.cpu()[readable]), boxes[readable])
        self._boxes = laid.float().to(device)  # (N,4)
        self._at[sorted(self.wrong)] = -1
        self.is_there = bool((self._at >= 0).any()) or bool((~laid.isnan()).any())
        """Whether any row has evidence."""

    @property
    def size(self) -> Size:
        """(height, width) of the network input."""
        return self._size

    def take(self, rows: Tensor) -> Tensor:
        """The evidence (B,H,W) bool of the ``rows`` (B,); nothing is marked where a row has none."""
        evidence = touched(self._boxes[rows], self._size)  # (B,H,W)
        at = self._at[rows]  # (B,)
        has = at >= 0
        if bool(has.any()):
            evidence = evidence.clone()
            evidence[has] = self._masks.take(at[has]).bool()
        return evidence

    def boxes_of_masks(self, rows: Tensor) -> Tensor:
        """The box (B,4) xyxy of the object whose mask is the evidence; NaN where the box itself is, or is unknown."""
        return torch.where(self._at[rows][:, None] >= 0, self._boxes[rows], torch.nan)


def _outside(rows: Sequence[LabelRow], pictures: PreparedPictures) -> dict[int, str]:
    """Rows whose box has nothing of the picture."""
    sizes = pictures.image_size.tolist()
    found = {}
    for place, row in enumerate(rows):
        height, width = sizes[place]
        box = row.box
        if place in pictures.unreadable or box is None:
            continue
        if min(box[2], width) <= max(box[0], 0) or min(box[3], height) <= max(box[1], 0):
            found[place] = f"box outside the picture: {row.image.name}, {width}×{height}"
    return found
