"""A picture with a map over it, as an image or a PNG, and nested crops of it.

A picture as the bytes of a PNG file, and such bytes as an address that holds them whole.

Any kind of picture as an upright RGB image, enlarged by whole factors or reduced to fit a panel.

A map laid over its picture, pixel for pixel, and the picture as the map lets it through.

A picture with the crops that a model cut out of it, one inside the other, each with what was said there.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError, ShapeError
from saccade.show import acts as drawing
from saccade.show import colours
from saccade.show.colours import INK, PAPER, MapLike, Scaled, Values, as_map, by_own_peak
from saccade.show.marks import Mark, Polygon, draw_marks
from saccade.show.sheets import font, line_height
from saccade.trace import AttentionTrace

Effort = Literal["fast", "plain", "small"]
"""What counts: the time it takes, neither, or the bytes it takes."""

_EFFORTS: dict[Effort, dict[str, Any]] = {"fast": {"compress_level": 1}, "plain": {}, "small": {"optimize": True}}
_MAX_PIXELS = 4_000_000  # that are worth the time which small takes


def png_bytes(image: Image.Image, effort: Effort = "plain") -> bytes:
    """``image`` as a PNG file; a very large one is plain where it should be small."""
    if effort == "small" and image.width * image.height > _MAX_PIXELS:
        effort = "plain"
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **_EFFORTS[effort])
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


OPACITY = 0.62


def overlay(
    picture: PictureLike,
    attention: MapLike | Scaled,
    *,
    opacity: float = OPACITY,
    colormap: str | None = None,
    alpha: float | None = None,
    cells: bool = False,
    outline: Mark | Sequence[Mark] = (),
    least_side: int = MIN_SIDE,
) -> Image.Image:
    """``picture`` with ``attention`` painted over it.

    Args:
        picture: PIL image, array (H,W,3) uint8 or tensor (3,H,W) float 0..1.
        attention: a map (h,w) over the whole picture, as :meth:`AttentionTrace.image_map` gives it, of any size; or
            one already scaled. A bare map is scaled by its own peak.
        opacity: how much of the picture the peak hides, 0 to 1.
        colormap: a colour map of matplotlib by name, as in "viridis"; None: that of :mod:`saccade.show.colours`.
        alpha: as ``opacity``, and where there is no weight the picture stays as it is; so it does with a ``colormap``.
        cells: paint each cell of the map flat instead of smooth.
        outline: evidence or crops to draw on top, in pixels of ``picture``.
        least_side: small pictures are enlarged by a whole factor until their longer side has this many pixels.
    """
    original = as_picture(picture)
    shown = enlarge(original, least_side)
    scaled = attention if isinstance(attention, Scaled) else by_own_peak(attention)
    values = stretch(scaled.values, (shown.height, shown.width), cells=cells)
    if colormap is None and alpha is None:
        painted = paint(shown, values, opacity)
    else:
        painted = paint_clear(shown, values, opacity if alpha is None else alpha, colormap)
    return draw_marks(painted, as_marks(outline), original.size)


def paint(picture: Image.Image, values: Values, opacity: float = OPACITY) -> Image.Image:
    """Colours of ``values`` (H,W) in 0..1 over an RGB ``picture`` of the same size.

    The picture loses half its own colour as the opacity grows, so that its blues and greens are not read as weights.
    """
    if not 0 <= opacity <= 1:
        raise DataError(f"opacity: found {opacity}; it must lie between 0 and 1")

    def mix(pixels: Values, weights: Values) -> Values:
        share = colours.cover(weights, opacity)[..., None]  # (h,W,1)
        return pixels * (1 - share) + colours.heat(weights) * share  # (h,W,3)

    return _by_bands(ImageEnhance.Color(picture).enhance(1 - opacity / 2), values, mix)


def paint_clear(picture: Image.Image, values: Values, alpha: float, colormap: str | None = None) -> Image.Image:
    """As :func:`paint`, but a pixel without weight stays as it is, and the peak hides ``alpha`` of the picture."""
    if not 0 <= alpha <= 1:
        raise DataError(f"alpha: found {alpha}; it must lie between 0 and 1")
    colour = colours.heat if colormap is None else colours.named(colormap)

    def mix(pixels: Values, weights: Values) -> Values:
        share = (alpha * weights)[..., None]  # (h,W,1)
        return pixels * (1 - share) + colour(weights) * share  # (h,W,3)

    return _by_bands(picture, values, mix)


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


_PAD = 3
_Plate = tuple[float, float, float, float]


def is_nested(trace: AttentionTrace) -> bool:
    """Whether a trace looks at its picture by several crops and by nothing else."""
    looks = [look for look in trace.looks if look.is_spatial]
    return len(looks) > 1 and all(look.kind == "crop" for look in looks)


def nested_crops(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    said: Mapping[str, str] | None = None,
    opacity: float = 0.55,
    outline: Mark | Sequence[Mark] = (),
    least_side: int = MIN_SIDE,
) -> Image.Image:
    """``picture`` with a frame round each crop of ``trace``; what lies in fewer crops is darker.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``), see :func:`is_nested`.
        said: what stands at a frame, by the name of its look.
        opacity: how much is hidden of what no crop shows, 0 to 1.
        outline: evidence to draw on top, in pixels of ``picture``.
        least_side: small pictures are enlarged by a whole factor until their longer side has this many pixels.
    """
    original = as_picture(picture)
    shown = enlarge(original, least_side)
    size = (shown.height, shown.width)
    trace = drawing.one_example(trace, (original.height, original.width))
    acts = drawing.acts_of(trace)
    inside = np.stack([drawing.act_map(trace, act, size) for act in acts]).mean(0).astype(np.float32)  # (H,W)
    frames = [mark for act in acts for mark in drawing.act_marks(trace, act, size)]
    result = draw_marks(let_through(shown, 1 - opacity * (1 - inside)), as_marks(outline), original.size)
    result = draw_marks(result, frames, shown.size)
    plates: list[_Plate] = []
    for act, frame in zip(acts, frames):
        if isinstance(frame, Polygon):
            text = " ".join(filter(None, (act.title, (said or {}).get(act.look.name))))
            plates += _tag(result, frame, text, plates)
    return result


def _tag(image: Image.Image, frame: Polygon, text: str, taken: Sequence[_Plate]) -> list[_Plate]:
    """``text`` on a plate above the frame, else below it, else inside it; none where a picture has no room for it."""
    face = font(max(11, round(0.032 * max(image.size))))
    width, height = face.getlength(text) + 2 * _PAD, line_height(face) + _PAD
    (x, y), bottom = (min(axis) for axis in zip(*frame.points)), max(point[1] for point in frame.points)
    left = min(max(0.0, x), image.width - width)
    for top in (y - height, bottom, y):
        plate = (left, top, left + width, top + height)
        fits = left >= 0 and 0 <= top <= image.height - height
        if fits and not any(_overlap(plate, other) for other in taken):
            pen = ImageDraw.Draw(image)
            pen.rectangle(plate, fill=PAPER)
            pen.text((left + _PAD, top + 1), text, INK, font=face)
            return [plate]
    return []


def _overlap(first: _Plate, second: _Plate) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
