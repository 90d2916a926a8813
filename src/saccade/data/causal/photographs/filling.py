"""Holes in photographs filled in from around them: by MI-GAN, or smoothly.

**MI-GAN** (Sargsyan et al., ICCV 2023) invents what could lie there. Its ONNX file is fetched by ``saccade data get
migan`` and run by onnxruntime (extra ``photo``). On the CPU the same hole gives the same pixels. It sees pictures
upside down: then it takes less for a thing that it knows, and invents fewer.

**Smooth** solves Laplace's equation in the hole: each pixel becomes the mean of its four neighbours (fewer at the
border of the picture). A constant and a ramp are continued exactly. Each channel is solved by conjugate gradients,
begun from the solution at half the size.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F

from saccade.data.causal.row_folder import Masks, Pixels
from saccade.errors import DataError, MissingExtraError
from saccade.files import FILES, cache_home, verify_digest

Fill = Callable[[Pixels, Masks], Pixels]  # (picture (H,W,3), hole (H,W)) → the picture with the hole filled in
Floats = npt.NDArray[np.float64]

MIGAN = "migan"  # What ``saccade data get`` calls it, and its folder in the cache
GROWTH = 0.03  # of the longest side: holes are so much larger than what is marked, to take in blur, fur and shadow
_SMALL = 8  # Pixels: no solution at half the size for a smaller hole
_CLOSE = 1e-3  # Grey values that are left over in a pixel of the solution, against its neighbours


def grown(mask: Masks, pixels: int) -> Masks:
    """``mask`` (H,W) and all that is at most ``pixels`` away along x and y."""
    side = 2 * pixels + 1
    wide = F.max_pool2d(torch.from_numpy(mask)[None].float(), (1, side), 1, (0, pixels))
    return F.max_pool2d(wide, (side, 1), 1, (pixels, 0))[0].bool().numpy()


def growth(size: tuple[int, ...]) -> int:
    """By how many pixels holes in a picture of ``size`` are grown."""
    return max(1, round(GROWTH * max(size[:2])))


def filler(name: str) -> tuple[str, Fill]:
    """``migan`` or ``smooth``, and how to fill holes in by it; ``auto`` is MI-GAN where its file and runtime are."""
    if name == "smooth":
        return name, smooth_fill
    try:
        return MIGAN, _migan()
    except (DataError, MissingExtraError) as error:
        if name == MIGAN:
            raise
        if isinstance(error, MissingExtraError):
            warnings.warn(f"holes are filled smoothly, not by MI-GAN: {error}", stacklevel=2)
        return "smooth", smooth_fill


def network(name: str, feature: str) -> Any:
    """The network that ``saccade data get NAME`` fetched, run by onnxruntime on the CPU; ``feature`` needs it."""
    (file,) = FILES[name]
    path = cache_home() / name / file.name
    if not path.is_file():
        raise DataError(f"{feature}: {path} is not there; `saccade data get {name}` fetches it ({file.size >> 20} MB)")
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise MissingExtraError(feature, "photo") from error
    verify_digest(path, file.sha256)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = min(4, os.cpu_count() or 1)
    return runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _migan() -> Fill:
    session = network(MIGAN, "fill migan")

    def fill(pixels: Pixels, hole: Masks) -> Pixels:
        keep = np.where(hole[::-1], 0, 255).astype(np.uint8)[None, None]  # (1,1,H,W)
        image = np.ascontiguousarray(pixels[::-1].transpose(2, 0, 1))[None]  # (1,3,H,W)
        (filled,) = session.run(None, {"image": image, "mask": keep})
        upright = filled[0, :, ::-1].transpose(1, 2, 0)
        return np.where(hole[..., None], upright, pixels)  # it blends a little around the hole

    return fill


def smooth_fill(pixels: Pixels, hole: Masks) -> Pixels:
    """``pixels`` (H,W,3) with the harmonic continuation of what lies around ``hole`` (H,W) in it."""
    if not hole.any():
        return pixels
    rows, columns = np.flatnonzero(hole.any(1)), np.flatnonzero(hole.any(0))
    part = np.s_[max(rows[0] - 1, 0) : rows[-1] + 2, max(columns[0] - 1, 0) : columns[-1] + 2]
    filled = pixels.copy()
    filled[part] = np.rint(_harmonic(pixels[part].astype(np.float64), hole[part])).clip(0, 255)
    return filled


def _harmonic(values: Floats, hole: Masks) -> Floats:
    """``values`` (h,w,C) with Laplace's equation solved in ``hole`` (h,w), by conjugate gradients."""
    inside = hole[..., None]
    known = np.where(inside, 0.0, values)
    x = np.where(inside, _guess(known, hole), 0.0)
    count = _neighbours(np.ones_like(hole, np.float64)[..., None])  # 4, fewer at the border
    residual = np.where(inside, _neighbours(known + x) - count * x, 0.0)
    direction, power = residual, (residual**2).sum((0, 1))  # (C,)
    for _ in range(4 * sum(hole.shape)):
        if abs(residual).max() < _CLOSE:
            break
        change = np.where(inside, count * direction - _neighbours(direction), 0.0)
        step = power / np.maximum((direction * change).sum((0, 1)), 1e-30)
        x, residual = x + step * direction, residual - step * change
        power, before = (residual**2).sum((0, 1)), power
        direction = residual + power / np.maximum(before, 1e-30) * direction
    return known + x


def _neighbours(values: Floats) -> Floats:
    """The sum over the four neighbours of each pixel (h,w,C)."""
    total = np.zeros_like(values)
    total[1:] += values[:-1]
    total[:-1] += values[1:]
    total[:, 1:] += values[:, :-1]
    total[:, :-1] += values[:, 1:]
    return total


def _guess(known: Floats, hole: Masks) -> Floats:
    """A first solution: the mean of what is known, or the solution at half the size."""
    height, width, channels = known.shape
    if hole.all() or min(height, width) < _SMALL:
        return np.broadcast_to(known.sum((0, 1)) / max((~hole).sum(), 1), known.shape)
    even = ((0, height % 2), (0, width % 2))
    blocks = (height + 1) // 2, 2, (width + 1) // 2, 2
    weights = np.pad(~hole, even).reshape(blocks).sum((1, 3))[..., None]
    sums = np.pad(known, (*even, (0, 0))).reshape(*blocks, channels).sum((1, 3))
    half = _harmonic(sums / np.maximum(weights, 1), weights[..., 0] == 0)
    tensor = torch.from_numpy(half).permute(2, 0, 1)[None]
    whole = F.interpolate(tensor, scale_factor=2, mode="bilinear", align_corners=False)[0].permute(1, 2, 0)
    return whole.numpy()[:height, :width]
