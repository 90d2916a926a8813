"""Any kind of picture as an upright RGB image, enlarged by whole factors or reduced to fit a panel."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageOps
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError, ShapeError
from saccade.show.scaling import Values, as_map

PictureLike = Image.Image | npt.NDArray[np.uint8] | Tensor

MIN_SIDE = 400
"""A picture whose longer side is below this is enlarged: a 100×100 scene is shown as 400×400 crisp squares."""


def as_picture(picture: PictureLike) -> Image.Image:
    """``picture`` as an RGB image.

    Args:
        picture: a PIL image, an array (H,W) or (H,W,3) uint8, or a tensor (C,H,W) float 0..1 with C 1 or 3.
    """
    if isinstance(picture, Image.Image):
        upright = ImageOps.exif_transpose(picture)
        if upright.mode in ("RGBA", "LA", "PA") or "transparency" in upright.info:
            flat = Image.new("RGBA", upright.size, "white")
            return Image.alpha_composite(flat, upright.convert("RGBA")).convert("RGB")
        return upright.convert("RGB")
    if isinstance(picture, Tensor):
        return Image.fromarray(_array_from_tensor(picture))
    array = np.asarray(picture)
    if array.dtype != np.uint8:
        raise DataError(f"picture: an array must be uint8 (H,W,3), found {array.dtype}; a float tensor is (C,H,W)")
    if array.size == 0 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise ShapeError("picture", "(H,W) or (H,W,3)", array.shape)
    return Image.fromarray(np.ascontiguousarray(array)).convert("RGB")


def _array_from_tensor(picture: Tensor) -> npt.NDArray[np.uint8]:
    if picture.dim() == 4 and picture.shape[0] == 1:
        picture = picture[0]  # (C,H,W): a batch of one
    if picture.dim() != 3 or picture.shape[0] not in (1, 3) or picture.numel() == 0:
        raise ShapeError("picture", "(C,H,W) with C 1 or 3", picture.shape)
    if not picture.is_floating_point():
        raise DataError(f"picture: a tensor must be float 0..1, found {picture.dtype}; an array (H,W,3) may be uint8")
    values = picture.detach().cpu().float().expand(3, -1, -1)  # (3,H,W)
    if not bool(values.isfinite().all()) or bool((values < -1e-3).any() or (values > 1 + 1e-3).any()):
        raise DataError("picture: a float tensor must lie between 0 and 1; undo the normalisation before showing it")
    return (values.clamp(0, 1) * 255).round().byte().permute(1, 2, 0).contiguous().numpy()  # (H,W,3)


def enlarge(picture: Image.Image, least_side: int = MIN_SIDE) -> Image.Image:
    """``picture`` times the smallest whole factor that brings its longer side to ``least_side``; pixels stay square."""
    factor = max(1, -(-least_side // max(picture.size)))
    return _times(picture, factor)


def fit_panel(picture: Image.Image, longest: int) -> Image.Image:
    """``picture`` with its longer side at most ``longest``: small ones times a whole factor, large ones reduced."""
    longer = max(picture.size)
    if longer <= longest:
        return _times(picture, longest // longer)
    size = tuple(max(1, round(side * longest / longer)) for side in picture.size)
    return picture.resize((size[0], size[1]), Image.Resampling.LANCZOS)


def _times(picture: Image.Image, factor: int) -> Image.Image:
    if factor == 1:
        return picture
    return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)


def stretch(values: Values, size: geometry.Size, *, cells: bool = False) -> Values:
    """A map (h,w) that covers the whole picture, at ``size`` (H,W).

    Smooth between cell centres as every projection is; with ``cells`` each cell becomes a flat rectangle.
    """
    height, width = values.shape
    if (height, width) == size:
        return values
    if cells:
        rows = np.minimum((np.arange(size[0]) + 0.5) * height / size[0], height - 1).astype(np.intp)
        cols = np.minimum((np.arange(size[1]) + 0.5) * width / size[1], width - 1).astype(np.intp)
        return as_map(values[rows[:, None], cols[None, :]])  # (H,W)
    frame = geometry.scale_shift((size[1] / width, size[0] / height), (0.0, 0.0))
    if height > size[0] or width > size[1]:  # the same, but project would hold pixels × cells numbers
        fine = torch.from_numpy(values).to(torch.float64)[None, None]  # (1,1,h,w)
        return as_map(geometry.sample(fine, geometry.invert(frame), size)[0].to(torch.float32))
    return as_map(geometry.project(torch.from_numpy(values)[None], frame, size))
