"""A picture with a map over it and outlines on it, as an image or as the bytes of a PNG file.

Pictures of any kind become upright RGB images, enlarged by whole factors or reduced to fit a panel. Outlines are
evidence masks, boxes, crops and points, in pixels of the picture, in a double line that shows on any background. A mask
is outlined from outside, so small evidence stays visible.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError, ShapeError
from saccade.show import colours
from saccade.show.colours import MapLike, Scaled, Values, as_map, by_own_peak
from saccade.show.sheet import font

_LIGHT, _DARK = (255, 255, 255), (0, 0, 0)
_WARM = (255, 184, 77)  # of numbered discs: neither in the colour map of weights nor in grey pictures


@dataclass(frozen=True)
class Mask:
    """Evidence as a mask (H,W), true inside, at the picture's size."""

    inside: Tensor | npt.NDArray[np.bool_]


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


Mark = Mask | Polygon | Points | Scanpath


def draw_marks(image: Image.Image, marks: Sequence[Mark], picture_size: tuple[int, int]) -> Image.Image:
    """A copy of ``image`` with ``marks``, which are in pixels of a picture of ``picture_size`` (width, height)."""
    result = image.copy() if marks else image
    scale_x, scale_y = image.width / picture_size[0], image.height / picture_size[1]
    for mark in marks:
        if isinstance(mark, Mask):
            result = _outline_mask(result, mark, picture_size)
            continue
        draw = {Points: _rings, Scanpath: _numbered}.get(type(mark), _closed_line)
        draw(result, [(x * scale_x, y * scale_y) for x, y in mark.points])
    return result


def _outline_mask(image: Image.Image, mark: Mask, picture_size: tuple[int, int]) -> Image.Image:
    inside = mark.inside.detach().cpu().numpy() if isinstance(mark.inside, Tensor) else np.asarray(mark.inside)
    if inside.shape[::-1] != picture_size:
        raise ShapeError("evidence mask", f"{picture_size[::-1]}, the picture's own size", inside.shape)
    body = Image.fromarray((inside > 0).astype(np.uint8) * 255).resize(image.size, Image.Resampling.NEAREST)
    near = body.filter(ImageFilter.MaxFilter(5))  # two pixels around the evidence
    far = near.filter(ImageFilter.MaxFilter(3))  # and one more
    evidence, light, dark = (np.asarray(layer) > 0 for layer in (body, near, far))
    pixels = np.asarray(image).copy()
    pixels[dark & ~evidence] = _DARK
    pixels[light & ~evidence] = _LIGHT
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
    for (x, y), visits in numbers.items():
        text = "·".join(visits)
        reach = face.getlength("0") * 0.95  # a disc for one digit; longer texts make a capsule
        half = max(reach, face.getlength(text) / 2 + reach / 2)
        box = [x - half, y - reach, x + half, y + reach]
        pen.rounded_rectangle([box[0] - 1, box[1] - 1, box[2] + 1, box[3] + 1], radius=reach + 1, fill=_DARK)
        pen.rounded_rectangle(box, radius=reach, fill=_WARM)
        pen.text((x, y), text, _DARK, font=face, anchor="mm")


def _rings(image: Image.Image, points: list[tuple[float, float]]) -> None:
    pen = ImageDraw.Draw(image)
    radius = max(4.0, 0.02 * max(image.size))
    for x, y in points:
        for reach, colour, width in ((radius + 1.0, _DARK, 5), (radius, _LIGHT, 3)):
            pen.ellipse([x - reach, y - reach, x + reach, y + reach], outline=colour, width=width)


def png_bytes(image: Image.Image, **options: Any) -> bytes:
    """``image`` as a PNG file; options as of Pillow: ``optimize`` for few bytes, ``compress_level=1`` for speed."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **options)
    return buffer.getvalue()


def data_url(picture: bytes, kind: str = "png") -> str:
    """The bytes of a picture file of that kind as an address.

    >>> data_url(b"abc")
    'data:image/png;base64,YWJj'
    """
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode('ascii')}"


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
    array = _array_from_tensor(picture) if isinstance(picture, Tensor) else np.asarray(picture)
    if array.dtype != np.uint8 or array.size == 0 or array.shape[2:] not in ((), (3,)):
        raise DataError(f"picture: expected (H,W) or (H,W,3) uint8, found {array.shape} {array.dtype}")
    return Image.fromarray(np.ascontiguousarray(array)).convert("RGB")


def _array_from_tensor(picture: Tensor) -> npt.NDArray[np.uint8]:
    values = picture.detach().cpu().float().reshape(picture.shape[-3:])  # (C,H,W)
    if not picture.is_floating_point() or not bool(((values > -1e-3) & (values < 1 + 1e-3)).all()):
        raise DataError("picture: a tensor must be float (C,H,W) from 0 to 1; undo the normalisation before showing it")
    return (values.expand(3, -1, -1).clamp(0, 1) * 255).round().byte().permute(1, 2, 0).contiguous().numpy()


def enlarge(picture: Image.Image, least_side: int = MIN_SIDE) -> Image.Image:
    """``picture`` times the smallest whole factor that brings its longer side to ``least_side``; pixels stay square."""
    factor = max(1, -(-least_side // max(picture.size)))
    return picture.resize((picture.width * factor, picture.height * factor), Image.Resampling.NEAREST)


def fit_panel(picture: Image.Image, longest: int) -> Image.Image:
    """``picture`` with its longer side at most ``longest``: small ones times a whole factor, large ones reduced."""
    longer = max(picture.size)
    if longer <= longest:
        return enlarge(picture, longest // longer * longer)
    size = tuple(max(1, round(side * longest / longer)) for side in picture.size)
    return picture.resize((size[0], size[1]), Image.Resampling.LANCZOS)


def stretch(values: Values, size: geometry.Size) -> Values:
    """A map (h,w) that covers the whole picture, at ``size`` (H,W), smooth between cell centres."""
    height, width = values.shape
    if (height, width) == size:
        return values
    frame = geometry.scale_shift((size[1] / width, size[0] / height), (0.0, 0.0))
    if height > size[0] or width > size[1]:  # the same, but project would hold pixels × cells numbers
        fine = torch.from_numpy(values).to(torch.float64)[None, None]  # (1,1,h,w)
        return as_map(geometry.sample(fine, geometry.invert(frame), size)[0].to(torch.float32))
    return as_map(geometry.project(torch.from_numpy(values)[None], frame, size))


OPACITY = 0.62


def overlay(
    picture: PictureLike,
    attention: MapLike | Scaled,
    *,
    opacity: float = OPACITY,
    colormap: str | None = None,
    alpha: float | None = None,
    outline: Mark | Sequence[Mark] = (),
    least_side: int = MIN_SIDE,
) -> Image.Image:
    """``picture`` with ``attention`` painted over it.

    Args:
        picture: PIL image, array (H,W,3) uint8 or tensor (3,H,W) float 0..1.
        attention: a map (h,w) of any size over the whole picture, scaled by its own peak, or one already scaled.
        opacity: how much of the picture the peak hides, 0 to 1.
        colormap: a colour map of matplotlib by name, as in "viridis"; None: that of :mod:`saccade.show.colours`.
        alpha: as ``opacity``, and where there is no weight the picture stays as it is; so it does with a ``colormap``.
        outline: evidence or crops to draw on top, in pixels of ``picture``.
        least_side: small pictures are enlarged by a whole factor until their longer side has this many pixels.
    """
    original = as_picture(picture)
    shown = enlarge(original, least_side)
    scaled = attention if isinstance(attention, Scaled) else by_own_peak(attention)
    values = stretch(scaled.values, (shown.height, shown.width))
    painted = paint(shown, values, opacity if alpha is None else alpha, colormap, clear=alpha is not None)
    return draw_marks(painted, as_marks(outline), original.size)


def paint(
    picture: Image.Image, values: Values, opacity: float = OPACITY, colormap: str | None = None, *, clear: bool = False
) -> Image.Image:
    """Colours of ``values`` (H,W) in 0..1 over an RGB ``picture`` of the same size.

    The picture loses half its own colour as the opacity grows, so that its blues and greens are not read as weights.
    With ``clear`` or a ``colormap``, a pixel without weight stays as it is.
    """
    if not 0 <= opacity <= 1:
        raise DataError(f"opacity: found {opacity}; it must lie between 0 and 1")
    clear = clear or colormap is not None
    colour = colours.heat if colormap is None else colours.named(colormap)

    def mix(pixels: Values, weights: Values) -> Values:
        share = (opacity * weights if clear else colours.cover(weights, opacity))[..., None]  # (h,W,1)
        return pixels * (1 - share) + colour(weights) * share  # (h,W,3)

    return _by_bands(picture if clear else ImageEnhance.Color(picture).enhance(1 - opacity / 2), values, mix)


def let_through(picture: Image.Image, values: Values) -> Image.Image:
    """The attended image: an RGB ``picture`` times ``values`` (H,W) in 0..1 of the same size, dark without weight."""
    return _by_bands(picture, values, lambda pixels, weights: pixels * weights[..., None])


def _by_bands(picture: Image.Image, values: Values, mix: Callable[[Values, Values], Values]) -> Image.Image:
    """``mix(pixels (h,W,3), weights (h,W))`` over bands of rows, so that a large photograph needs little memory."""
    pixels = np.asarray(picture)  # (H,W,3)
    result = np.empty_like(pixels)
    for top in range(0, len(pixels), 256):
        band = slice(top, top + 256)
        result[band] = mix(pixels[band].astype(np.float32), values[band]).round().clip(0, 255)
    return Image.fromarray(result)


def as_marks(outline: Mark | Sequence[Mark]) -> Sequence[Mark]:
    """One mark or several, as several."""
    return outline if isinstance(outline, Sequence) else (outline,)
