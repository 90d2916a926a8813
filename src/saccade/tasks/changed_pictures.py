"""Pictures that differ from known ones in a few pixels, encoded only where they differ.

Each cell of an encoding sees a window of the picture. A cell whose window holds no changed pixel keeps its value. The
others are computed from a crop of the picture round them, by the same layers, and laid into the known encoding.

Axes: P pictures, H and W pixels, h and w cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

WORTH = 0.5
"""Crops of more than this share of the picture are not worth the copying: the picture is then encoded whole."""
_CELL_BY_CELL = (nn.Identity, nn.ReLU)
_SQUARE = (nn.Conv2d, nn.MaxPool2d)


class Window(NamedTuple):
    """The pixels that a cell sees, along each axis: cell i sees those from i·step + first on."""

    step: int
    first: int
    """Below 0 where layers pad."""
    size: int

    def cells(self, changed: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """First and last (P,) of ``count`` cells that see a changed pixel (P,n) bool; if none is changed, some cell."""
        first, last = changed.int().argmax(1), changed.shape[1] - 1 - changed.flip(1).int().argmax(1)  # (P,) each
        last = torch.where(changed.any(1), last, 0)
        low = -((self.first + self.size - 1 - first) // self.step)  # rounded up
        high = (last - self.first) // self.step
        return low.clamp(0, count - 1), high.clamp(0, count - 1)

    def crops(self, low: Tensor, high: Tensor, pixels: int) -> tuple[Tensor, int]:
        """Where crops (P,) that hold all that these cells see begin, and how long they are; a whole number of cells."""
        begin = (low + self.first // self.step).clamp(min=0) * self.step  # (P,)
        end = (high * self.step + self.first + self.size).clamp(max=pixels)  # (P,)
        least = int((end - begin).max())
        length = pixels - (pixels - least) // self.step * self.step  # so that crops end where the picture does
        return begin.clamp(max=pixels - length), length


def window_of(layers: Iterable[nn.Module]) -> Window | None:
    """What a cell behind a chain of layers sees; None where a layer is not known to look at a window alone.

    >>> window_of([nn.Conv2d(3, 8, 3), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)])
    Window(step=2, first=-2, size=8)
    """
    step, first, size = 1, 0, 1
    for layer in _single(layers):
        if isinstance(layer, _CELL_BY_CELL):
            continue
        if not isinstance(layer, _SQUARE) or getattr(layer, "ceil_mode", False):
            return None
        sizes = [_side(getattr(layer, name)) for name in ("kernel_size", "stride", "padding", "dilation")]
        if None in sizes or getattr(layer, "padding_mode", "zeros") != "zeros":
            return None
        kernel, stride, padding, dilation = (side or 0 for side in sizes)
        first -= padding * step
        size += (kernel - 1) * dilation * step
        step *= stride
    return Window(step, first, size)


def encode_changed(
    encode: Callable[[Tensor], Tensor], window: Window, images: Tensor, before: Tensor, encoding: Tensor
) -> Tensor | None:
    """The encodings (P,C,h,w) of pictures (P,C,H,W) that were ``before`` others, whose ``encoding`` is overwritten.

    Args:
        encode: pictures of any size → what the layers behind ``window`` make of them.
        window: what a cell of the encoding sees.
        images: the pictures.
        before: (P,C,H,W) what they were.
        encoding: (P,C,h,w) of ``before``.

    Returns:
        None where too much has changed; the encoding is then as it was.
    """
    differs = (images != before).any(1)  # (P,H,W)
    (height, width), (rows, columns) = images.shape[-2:], encoding.shape[-2:]
    top, bottom = window.cells(differs.any(2), rows)  # (P,) each
    left, right = window.cells(differs.any(1), columns)
    (begin_y, tall), (begin_x, wide) = window.crops(top, bottom, height), window.crops(left, right, width)
    if tall * wide > WORTH * height * width:
        return None
    places = torch.stack([begin_y, begin_x, top, bottom + 1, left, right + 1], 1).tolist()
    crops = torch.stack([each[:, y : y + tall, x : x + wide] for each, (y, x, *_) in zip(images, places)])
    found = encode(crops)  # (P,C,h',w')
    for into, new, (y, x, up, down, west, east) in zip(encoding, found, places):
        y, x = y // window.step, x // window.step  # the cell that is the first of the crop
        into[:, up:down, west:east] = new[:, up - y : down - y, west - x : east - x]
    return encoding


def _single(layers: Iterable[nn.Module]) -> Iterable[nn.Module]:
    """The layers, chains taken apart."""
    for layer in layers:
        if isinstance(layer, nn.Sequential):
            yield from _single(layer)
        else:
            yield layer


def _side(size: int | tuple[int, ...] | str) -> int | None:
    """The side of a square; None for anything else."""
    if isinstance(size, int):
        return size
    return size[0] if isinstance(size, tuple) and size[0] == size[1] else None
