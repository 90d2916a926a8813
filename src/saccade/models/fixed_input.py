"""Checks of models that are built for a fixed input size: pictures of another size are refused."""

from __future__ import annotations

from torch import Tensor

from saccade.errors import DataError, ShapeError
from saccade.geometry import Size


def check_size(built_for: Size, size: Size, setting: str) -> None:
    """Refuse a network input of another ``size`` (height, width); ``setting`` is the model's setting for it."""
    if tuple(size) != tuple(built_for):
        built, found = ("×".join(map(str, each)) for each in (built_for, size))
        raise DataError(f"this model reads pictures of {built} pixels only, found {found}; set {setting} to {[*size]}")


def check_pictures(images: Tensor, built_for: Size) -> None:
    """Refuse pictures (B,3,H,W) of another size."""
    if images.shape[1:] != (3, *built_for):
        height, width = built_for
        raise ShapeError("images", f"(B,3,{height},{width}), the one size this model was built for", images.shape)
