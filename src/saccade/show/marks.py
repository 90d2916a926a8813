"""Outlines on a picture: evidence masks, boxes, crops and points, in a double line that shows on any background.

All coordinates are those of the picture that was handed in (pixels, x to the right, y down); the drawing is scaled
with the picture, the width of the lines is not. A mask is outlined from outside, so that small evidence stays visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFilter
from torch import Tensor

from saccade.errors import ShapeError
from saccade.show.sheets import font

_LIGHT, _DARK = (255, 255, 255), (0, 0, 0)
_WARM = (255, 184, 77)  # of numbered discs: neither in the colour map of weights nor in grey pictures


@dataclass(frozen=True)
class Mask:
    """Evidence as a mask (H,W), true inside, at the picture's size."""

    inside: Tensor | npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Box:
    """A box xyxy."""

    corners: Sequence[float]


@dataclass(frozen=True)
class Polygon:
    """A closed outline of (x, y) points: a crop, turned or not."""

    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Points:
    """Places (x, y), each drawn as a ring."""

    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Scanpath:
    """Places (x, y) in the order they were looked at: numbered, and joined by a line."""

    points: Sequence[tuple[float, float]]


Mark = Mask | Box | Polygon | Points | Scanpath


def draw_marks(image: Image.Image, marks: Sequence[Mark], picture_size: tuple[int, int]) -> Image.Image:
    """``image`` with ``marks`` drawn on it.

    Args:
        image: the picture as shown, at any size; it is not changed.
        marks: in the coordinates of the picture.
        picture_size: (width, height) of the picture that the marks speak of.
    """
    result = image.copy() if marks else image
    scale_x, scale_y = image.width / picture_size[0], image.height / picture_size[1]
    for mark in marks:
        if isinstance(mark, Mask):
            result = _outline_mask(result, mark, picture_size)
        elif isinstance(mark, Points):
            for x, y in mark.points:
                _ring(result, x * scale_x, y * scale_y)
        elif isinstance(mark, Scanpath):
            _numbered(result, [(x * scale_x, y * scale_y) for x, y in mark.points])
        else:
            points = _box_points(mark) if isinstance(mark, Box) else mark.points
            _closed_line(result, [(x * scale_x, y * scale_y) for x, y in points])
    return result


def _box_points(box: Box) -> list[tuple[float, float]]:
    if len(box.corners) != 4:
        raise ShapeError("box", "(4,) as x0, y0, x1, y1", (len(box.corners),))
    x0, y0, x1, y1 = (float(value) for value in box.corners)
    return [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]


def _outline_mask(image: Image.Image, mark: Mask, picture_size: tuple[int, int]) -> Image.Image:
    inside = mark.inside.detach().cpu().numpy() if isinstance(mark.inside, Tensor) else np.asarray(mark.inside)
    if inside.shape != (picture_size[1], picture_size[0]):
        raise ShapeError(
            "evidence mask", f"({picture_size[1]},{picture_size[0]}), the picture's own size", inside.shape
        )
    body = Image.fromarray((inside > 0).astype(np.uint8) * 255).resize(image.size, Image.Resampling.NEAREST)
    near = body.filter(ImageFilter.MaxFilter(5))  # two pixels around the evidence
    far = near.filter(ImageFilter.MaxFilter(3))  # and one more
    held, light, dark = (np.asarray(layer) > 0 for layer in (body, near, far))
    pixels = np.asarray(image).copy()
    pixels[dark & ~held] = _DARK
    pixels[light & ~held] = _LIGHT
    return Image.fromarray(pixels)


def _closed_line(image: Image.Image, points: list[tuple[float, float]]) -> None:
    pen = ImageDraw.Draw(image)
    path = [(x - 0.5, y - 0.5) for x, y in [*points, *points[:2]]]  # edges lie between pixels; the start joins twice
    pen.line(path, fill=_DARK, width=5, joint="curve")
    pen.line(path, fill=_LIGHT, width=3, joint="curve")


def _numbered(image: Image.Image, points: list[tuple[float, float]]) -> None:
    """Discs with the number of each place; a place that was looked at several times bears all its numbers."""
    pen = ImageDraw.Draw(image)
    for colour, width in ((_DARK, 5), (_WARM, 3)):
        pen.line(points, fill=colour, width=width, joint="curve")
    numbers: dict[tuple[float, float], list[str]] = {}
    for number, point in enumerate(points, 1):
        numbers.setdefault(point, []).append(str(number))
    face = font(max(11, round(0.06 * max(image.size))), bold=True)
    for (x, y), held in numbers.items():
        text = "·".join(held)
        reach = face.getlength("0") * 0.95  # a disc for one digit; longer texts make a capsule
        half = max(reach, face.getlength(text) / 2 + reach / 2)
        box = [x - half, y - reach, x + half, y + reach]
        pen.rounded_rectangle([box[0] - 1, box[1] - 1, box[2] + 1, box[3] + 1], radius=reach + 1, fill=_DARK)
        pen.rounded_rectangle(box, radius=reach, fill=_WARM)
        pen.text((x, y), text, _DARK, font=face, anchor="mm")


def _ring(image: Image.Image, x: float, y: float) -> None:
    pen = ImageDraw.Draw(image)
    radius = max(4.0, 0.02 * max(image.size))
    for extra, colour, width in ((1.0, _DARK, 5), (0.0, _LIGHT, 3)):
        reach = radius + extra
        pen.ellipse([x - reach, y - reach, x + reach, y + reach], outline=colour, width=width)
