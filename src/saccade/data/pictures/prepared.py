"""Picture files, and their masks, as network inputs kept as bytes, with the way back.

A picture is laid in undistorted; of one that is to be cut, the part that counts fills the whole input.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saccade.data.pictures.reading import Picture, as_float, prepare, read_picture
from saccade.data.tables.rows import Box
from saccade.errors import DataError
from saccade.geometry import Size, crop_frame
from saccade.progress import OnProgress, no_progress


class PreparedPictures:
    """The pictures ``paths`` by number, decoded once when this is made, as network inputs of ``size`` (height, width).

    ``limit`` bytes are kept at most (:class:`ByteStore`). ``crops`` are the parts xyxy to cut out, None for all of a
    picture.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        size: Size,
        device: torch.device,
        *,
        limit: int,
        crops: Sequence[Box | None] | None = None,
        on_progress: OnProgress = no_progress,
    ) -> None:
        self.paths, self.size = tuple(paths), size
        canvas = torch.zeros(len(paths), 2, 3, dtype=torch.float64)
        image_size = torch.zeros(len(paths), 2, dtype=torch.long)

        def decode(number: int) -> Tensor:
            picture, crop = read_picture(self.paths[number]), None if crops is None else crops[number]
            laid_in = prepare(picture, size) if crop is None else cut_out(picture, crop, size)
            pixels, canvas[number], image_size[number] = laid_in
            return pixels.mul(255).round().to(torch.uint8)  # (3,H,W)

        self._bytes = ByteStore(len(paths), decode, (3, *size), device, limit=limit, on_progress=on_progress)
        self.unreadable = self._bytes.unreadable  # Number → what is wrong with the file
        self.canvas = canvas.to(device)  # (n, 2, 3) network input → original picture
        self.image_size = image_size.to(device)  # (n, 2) height and width of the original picture

    def take(self, numbers: Tensor) -> Tensor:
        """The pictures ``numbers`` (B,): (B, 3, H, W) float32 in 0..1."""
        return as_float(self._bytes.take(numbers))


def cut_out(picture: Picture, box: Box, size: Size) -> tuple[Tensor, Tensor, Tensor]:
    """The part ``box`` xyxy of ``picture``, as far as the picture goes, stretched to ``size``; returns as ``prepare``.

    Raises:
        DataError: the box has nothing of the picture.
    """
    height, width = picture.size
    x0, y0, x1, y1 = max(0.0, box[0]), max(0.0, box[1]), min(float(width), box[2]), min(float(height), box[3])
    if x1 <= x0 or y1 <= y0:
        part = ", ".join(f"{number:g}" for number in box)
        raise DataError(f"{picture.name}: the part ({part}) has nothing of its {width}×{height} pixels; check its box")
    stretched = picture.image.resize((size[1], size[0]), Image.Resampling.BILINEAR, box=(x0, y0, x1, y1))
    pixels = torch.from_numpy(np.array(stretched)).permute(2, 0, 1).float() / 255  # (3,h,w)
    canvas = crop_frame(torch.tensor([x0, y0, x1, y1], dtype=torch.float64), size)  # (2,3)
    return pixels, canvas, torch.tensor(picture.size)


def prepared_mask(path: Path, picture_size: Size, size: Size, grey: int | None) -> Tensor:
    """The mask of a picture of ``picture_size``, as bytes 0 or 1 in a network input of ``size``: (H,W).

    Pixels of the value ``grey`` are the evidence; None: all that are not black. After resizing, a pixel counts that is
    at least half evidence; where none is, every one that has some. A mask of another size, or an empty one, is a
    DataError.
    """
    mask = read_picture(path)
    if mask.size != picture_size:
        (height, width), (found_height, found_width) = picture_size, mask.size
        raise DataError(f"{path}: {found_width}×{found_height} pixels for a picture of {width}×{height}; redraw it")
    pixels = np.asarray(mask.image)  # (H,W,3)
    marked = pixels.any(axis=-1) if grey is None else (pixels == grey).all(axis=-1)  # (H,W) bool
    if not marked.any():
        what = "black all over" if grey is None else f"no pixel of the grey value {grey}"
        raise DataError(f"{path}: {what}, so it marks nothing; leave the cell empty where there is no evidence")
    share = prepare(Picture(Image.fromarray(marked).convert("RGB"), mask.name), size)[0][0]  # (h,w) in 0..1
    half = share >= 0.5
    return (half if bool(half.any()) else share > 0).to(torch.uint8)


_DECODED_AT_ONCE = 256  # decoded before they go to the device together


class ByteStore:
    """Numbers 0 … count − 1 to byte tensors of ``shape``.

    ``decode`` makes one, in several threads; a DataError makes that number unreadable. ``limit`` bytes are kept at
    most; the others are decoded whenever they are taken.
    """

    def __init__(
        self,
        count: int,
        decode: Callable[[int], Tensor],
        shape: tuple[int, ...],
        device: torch.device | str = "cpu",
        *,
        limit: int,
        on_progress: OnProgress = no_progress,
    ) -> None:
        self._decode = decode
        # Number → what is wrong with it. Asking for one of these is the caller's mistake.
        self.unreadable: dict[int, str] = {}
        capacity = min(count, limit // max(1, math.prod(shape)))
        self._kept = torch.zeros((capacity, *shape), dtype=torch.uint8, device=device)
        self._all_kept = capacity == count
        for start in range(0, count, _DECODED_AT_ONCE):
            stop = min(start + _DECODED_AT_ONCE, count)
            decoded = dict(zip(range(start, stop), self._pool.map(self._try, range(start, stop))))
            self.unreadable |= {number: error for number, error in decoded.items() if isinstance(error, str)}
            tensors = {at: tensor for at, tensor in decoded.items() if not isinstance(tensor, str) and at < capacity}
            if tensors:
                self._kept[list(tensors)] = torch.stack(list(tensors.values())).to(device)
            on_progress("pictures", stop, count)

    def take(self, numbers: Tensor) -> Tensor:
        """The tensors ``numbers`` (B,), repeats allowed: (B, *shape) uint8 on the device."""
        if self._all_kept:
            return self._kept[numbers.to(self._kept.device)]
        numbers = numbers.cpu()
        to_decode = numbers >= len(self._kept)  # (B,)
        taken = self._kept.new_empty(len(numbers), *self._kept.shape[1:])
        taken[~to_decode] = self._kept[numbers[~to_decode].to(self._kept.device)]
        decoded = list(self._pool.map(self._decode, numbers[to_decode].tolist()))
        if decoded:
            taken[to_decode] = torch.stack(decoded).to(self._kept.device)
        return taken

    def _try(self, number: int) -> Tensor | str:
        try:
            return self._decode(number)
        except DataError as error:
            return str(error)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(min(16, os.cpu_count() or 1), thread_name_prefix="decode")
