"""Picture files, and their masks, as network inputs: laid in undistorted and kept as bytes, with the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saccade.data.byte_store import ByteStore
from saccade.data.pictures import Picture, as_float, prepare, read_picture
from saccade.errors import DataError
from saccade.geometry import Size


class PreparedPictures:
    """The pictures ``paths`` by number, decoded once when this is made.

    Args:
        paths: the files.
        size: (height, width) of the network input.
        device: where they are kept.
        limit: bytes kept at most; see :class:`ByteStore`.
        progress: called with (decoded, in all).
    """

    def __init__(
        self,
        paths: Sequence[Path],
        size: Size,
        device: torch.device,
        *,
        limit: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.paths, self._size = tuple(paths), size
        canvas = torch.zeros(len(paths), 2, 3, dtype=torch.float64)
        image_size = torch.zeros(len(paths), 2, dtype=torch.long)

        def decode(number: int) -> Tensor:
            pixels, canvas[number], image_size[number] = prepare(read_picture(self.paths[number]), size)
            return pixels.mul(255).round().to(torch.uint8)  # (3,H,W)

        self._bytes = ByteStore(len(paths), decode, (3, *size), device, limit=limit, progress=progress)
        self.unreadable = self._bytes.unreadable
        """Number → what is wrong with the file."""
        self.canvas = canvas.to(device)
        """(n, 2, 3) network input → original picture."""
        self.image_size = image_size.to(device)
        """(n, 2) height and width of the original picture."""

    def take(self, numbers: Tensor) -> Tensor:
        """The pictures ``numbers`` (B,): (B, 3, H, W) float32 in 0..1."""
        return as_float(self._bytes.take(numbers))


def prepared_mask(path: Path, picture_size: Size, size: Size) -> Tensor:
    """The mask in ``path``, of a picture of ``picture_size``, as bytes 0 or 1 in a network input of ``size``: (H,W).

    It is resized as the picture is, and a pixel counts where it then is at least half white; of evidence so thin or
    small that nothing would be left, every pixel counts that has some.

    Raises:
        DataError: not a picture, not of the picture's size, or black all over.
    """
    mask = read_picture(path)
    if mask.size != picture_size:
        (height, width), (found_height, found_width) = picture_size, mask.size
        raise DataError(f"{path}: {found_width}×{found_height} pixels for a picture of {width}×{height}; redraw it")
    marked = np.asarray(mask.image).any(axis=-1)  # (H,W) bool
    if not marked.any():
        raise DataError(f"{path}: black all over, so it marks nothing; leave the cell empty where there is no evidence")
    share = prepare(Picture(Image.fromarray(marked).convert("RGB"), mask.name), size)[0][0]  # (h,w) in 0..1
    half = share >= 0.5
    return (half if bool(half.any()) else share > 0).to(torch.uint8)
