"""The generated set ``details``: pictures whose class depends on a small detail, with the detail as evidence.

What they show and how little a coarse view tells is in :mod:`saccade.data.details.layout` and ``render``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from saccade.data.details.layout import CLASSES, SIZE, DetailLayout, sample_details
from saccade.data.details.render import render_details
from saccade.data.pictures.labelled import DrawnPictures, LabelledBatch

NAME = "details"


@dataclass(frozen=True)
class Details(DrawnPictures):
    """Pictures of 224×224 pixels in twelve classes."""

    name: str = NAME
    side: int = SIZE
    """They have one size, for which the stripes are made."""

    answers: ClassVar[tuple[str, ...]] = CLASSES

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side != SIZE:
            raise ValueError(f"size: pictures of '{NAME}' are {SIZE} × {SIZE}, found {self.side}; set it to {SIZE}")

    def layout(self, seed: int, numbers: Tensor) -> DetailLayout:
        """What the pictures ``numbers`` (B,) of the stream ``seed`` show, to be changed and drawn again."""
        return sample_details(seed, numbers)

    def draw(self, seed: int, numbers: Tensor) -> LabelledBatch:
        """The pictures ``numbers`` (B,) of the stream ``seed`` as bytes, with the pixels of the mark."""
        return drawn(self.layout(seed, numbers))


def drawn(layout: DetailLayout) -> LabelledBatch:
    """The pictures of a layout (B,3,H,W) as bytes, their classes, and the pixels of the mark (B,H,W)."""
    return LabelledBatch(render_details(layout), layout.label, layout.masks)
