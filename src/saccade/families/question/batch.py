"""A batch of questions about pictures: what goes into a model, what should come out, and where the evidence lies."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from saccade.data.pictures.label_evidence import evidence_of
from saccade.geometry import touched


@dataclass(frozen=True, eq=False)
class TableBatch:
    """Questions with their pictures, and where their evidence is, in pixels of the network input."""

    images: Tensor
    """(B, 3, H, W) float32 in 0..1."""
    query: Tensor
    """(B,) number of the query."""
    label: Tensor
    """(B,) number of the answer, or (B, K) float 0 or 1 where there may be several."""
    canvas: Tensor
    """(B, 2, 3) network input → original picture."""
    image_size: Tensor
    """(B, 2) height and width of the original picture."""
    picture: Tensor
    """(B,) number of the picture in its split; several questions may share one."""
    box: Tensor
    """(B, 4) xyxy, NaN where there is none."""
    point: Tensor
    """(B, 2) (x, y), NaN where there is none."""
    mask: Tensor | None = None
    """(B, H, W) bool, false everywhere for a question without one; None if no question has one."""

    def __len__(self) -> int:
        return len(self.query)

    def evidence(self) -> Tensor:
        """(B, H, W) bool: the mask, else a disc round the point, else the pixels that the box touches, else nothing."""
        return evidence_of(self.box, self.point, self.mask, (self.images.shape[-2], self.images.shape[-1]))

    def region(self) -> Tensor:
        """(B, H, W) bool: the object, where its outline is known: the mask, else the pixels of the box, else nothing.

        A point marks a part, and says nothing of how far the object goes.
        """
        height, width = self.images.shape[-2:]
        inside = touched(self.box, (height, width))  # (B,H,W)
        if self.mask is None:
            return inside
        return torch.where(self.mask.flatten(1).any(-1)[:, None, None], self.mask, inside)

    def to(self, device: torch.device | str) -> TableBatch:
        """The same questions on another device."""
        present = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return TableBatch(**{name: tensor.to(device) for name, tensor in present.items()})
