"""A map laid over its picture, pixel for pixel, and the picture as the map lets it through."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageEnhance

from saccade.errors import DataError
from saccade.show import colours
from saccade.show.marks import Mark, draw_marks
from saccade.show.picture import MIN_SIDE, PictureLike, as_picture, enlarge, stretch
from saccade.show.scaling import MapLike, Scaled, Values, by_own_peak

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
