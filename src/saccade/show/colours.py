"""Colours of maps: how values are rescaled, smoothed, and coloured. No other module rescales maps for display.

Each map is divided by its own peak, or several maps by their common peak; the rule says which, for a legend. Zero stays
zero, so that a uniform map looks uniform and not empty.

Masks that only add (1 + M) are the exception: their zero means nothing. Such a map is shown from its least to its peak
where 1 + M differs by half or more. A flatter one is shown on a scale of that width about its middle, so that an almost
even mask looks almost even.

Maps are smoothed as Xu et al. (2015, Section 5.4) show theirs: upsampled, then a Gaussian filter, of half a cell (the
paper gives no width): it hides the creases of bilinear upsampling and moves no peak into another cell.

The nine anchors of the colour map rise in equal steps of lightness (OKLCH, 0.24 to 0.95) from indigo over teal to pale
yellow. Lightness alone carries the order, for print in grey and for colour-blind readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from saccade.errors import DataError, MissingExtraError, ShapeError, nearest

MapLike = Tensor | npt.ArrayLike
Values = npt.NDArray[np.float32]
SPAN = 0.5
"""All colours together stand for at least this share of what a mask that only adds multiplies by."""


@dataclass(frozen=True)
class Scaled:
    """A map ready to be painted, with what was done to it."""

    values: Values
    """(H,W) between 0 and 1; a copy, never a view of the trace."""
    top: float
    """The weight that is shown as 1."""
    rule: str
    """In words, for a legend."""
    least: float = 0.0
    """The weight that is shown as 0."""
    is_fixed: bool = False
    """Whether the scale is wider than the map, which is nearly even."""

    @property
    def legend(self) -> str:
        """What the two ends of the colour bar mean: ``0 … 0.31, the map's own peak``."""
        return f"{self.least:.3g} … {self.top:.3g}, {self.rule}"


def by_own_peak(attention: MapLike) -> Scaled:
    """The map divided by its own maximum."""
    values = as_map(attention)
    return _scaled(values, float(values.max()), "the map's own peak")


def by_own_ends(attention: MapLike, *, base: float = 0.0) -> Scaled:
    """A mask that only adds, from its least to its own peak, or on a wider scale about its middle if it is flat.

    ``base`` is what is added to the mask (H,W) before it multiplies.
    """
    values = as_map(attention)
    least, top = float(values.min()), float(values.max())
    middle = (least + top) / 2
    span = SPAN * abs(base + middle)
    if top - least >= span or span == 0:
        spread = np.float32(top - least) or np.float32(1)
        return Scaled((values - np.float32(least)) / spread, top, "the map's own peak", least)
    low, high = middle - span / 2, middle + span / 2
    rule = f"a fixed scale, as the map is nearly even: it goes from {least:.3g} to {top:.3g}"
    return Scaled((values - np.float32(low)) / np.float32(span), high, rule, low, is_fixed=True)


def by_shared_peak(maps: Sequence[MapLike]) -> list[Scaled]:
    """All maps divided by the one maximum over all of them, so that they can be compared with each other."""
    arrays = [as_map(attention) for attention in maps]
    top = max((float(values.max()) for values in arrays), default=0.0)
    return [_scaled(values, top, "the peak of all maps here") for values in arrays]


def as_map(attention: MapLike) -> Values:
    """One map as a float32 array (H,W) of its own; raises ShapeError or DataError when there is nothing to draw."""
    try:
        if isinstance(attention, Tensor):
            attention = attention.detach().cpu().float().numpy()
        values = np.array(attention, dtype=np.float32)  # a copy on purpose
    except (TypeError, ValueError, OverflowError, NotImplementedError) as error:
        raise DataError(f"map: expected an array of numbers, found {type(attention).__name__}") from error
    if values.ndim == 3 and values.shape[0] == 1:
        values = values[0]  # (H,W): a batch of one
    if values.ndim != 2 or values.size == 0:
        raise ShapeError("map", "(H,W) with at least one cell", values.shape)
    if not np.isfinite(values).all():
        raise DataError("map: it holds NaN or infinity, and cannot be drawn; validate() the trace to find the look")
    return values


def _scaled(values: Values, top: float, rule: str) -> Scaled:
    if values.min() < 0:
        rule += "; weights below 0 shown as 0"
    if top <= 0:
        return Scaled(np.zeros_like(values), max(top, 0.0), rule)
    return Scaled(np.clip(values / np.float32(top), 0.0, 1.0), top, rule)


WIDTH = 0.5
"""Standard deviation of the filter, in cells."""
_REACH = 3.0  # standard deviations that the kernel goes to each side


def smooth(values: Values, cell: tuple[float, float], width: float = WIDTH) -> Values:
    """A map (H,W) under a Gaussian filter whose border keeps its value, so a uniform map stays uniform.

    ``cell`` is the size (width, height) of a cell in pixels; ``width`` is the standard deviation in cells.
    """
    image = torch.from_numpy(values)[None, None]  # (1,1,H,W)
    for side in cell:  # along the width, then, turned, along the height
        reach = round(_REACH * width * abs(side))
        if reach:  # else the filter is much narrower than a pixel
            places = torch.arange(-reach, reach + 1, dtype=torch.float32)
            weights = torch.exp(-0.5 * (places / (width * abs(side))).square())
            kernel = (weights / weights.sum()).reshape(1, 1, 1, -1)
            image = F.conv2d(F.pad(image, (reach, reach, 0, 0), mode="replicate"), kernel)
        image = image.transpose(2, 3)
    return as_map(image[0, 0])


Rgb = tuple[int, int, int]

ANCHORS = np.array(
    [
        (36, 0, 89), (17, 39, 131), (0, 81, 126), (2, 113, 136), (3, 145, 145),
        (4, 179, 143), (104, 207, 121), (189, 226, 104), (255, 241, 155),
    ],
    dtype=np.float32,
)  # fmt: skip

_TABLE = np.stack(
    [np.interp(np.linspace(0, 8, 1025), np.arange(9), ANCHORS[:, channel]) for channel in range(3)], axis=-1
).astype(np.float32)  # (1025,3): finer than 8-bit colours can show

PAPER: Rgb = (255, 255, 255)
BLACK: Rgb = (0, 0, 0)
INK: Rgb = (24, 28, 36)
FAINT_INK: Rgb = (92, 100, 114)
RULE: Rgb = (218, 222, 228)
SERIES = ("#27408b", "#d9730d", "#00897b", "#a23b72", "#6b7280", "#b8a100")
"""Line colours for curves; neighbours differ in lightness as well as in hue."""


def heat(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Colours (…,3) between 0 and 255 for ``values`` (…) between 0 and 1."""
    return _TABLE[(values * (len(_TABLE) - 1)).round().astype(np.intp)]


def named(colormap: str) -> Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]:
    """A colour map of matplotlib as a function like :func:`heat`; a DataError where it has none of that name."""
    try:
        from matplotlib import colormaps
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"the colour map '{colormap}'", "plots") from error
    if colormap not in colormaps:
        raise DataError(
            f"no colour map '{colormap}': {nearest(colormap, [n for n in colormaps if '_r' not in n][:40])}"
        )
    table = (colormaps[colormap](np.linspace(0.0, 1.0, 1025))[:, :3] * 255).astype(np.float32)  # (1025,3)
    return lambda values: table[(values * (len(table) - 1)).round().astype(np.intp)]


def cover(values: npt.NDArray[np.float32], opacity: float) -> npt.NDArray[np.float32]:
    """How much of the picture the colour hides, per pixel: a little everywhere, ``opacity`` at the peak.

    Cells without weight keep a share of the dark end, so that "not looked at" is not a bare picture.
    """
    floor = 0.45
    return (opacity * (floor + (1.0 - floor) * values)).astype(np.float32)


def legend_bar(width: int, height: int) -> Image.Image:
    """The colour map from 0 (left) to 1 (right)."""
    ramp = heat(np.linspace(0.0, 1.0, max(1, width), dtype=np.float32))  # (W,3)
    return Image.fromarray(np.repeat(ramp[None].round().astype(np.uint8), max(1, height), axis=0))


def ink_on(background: Rgb) -> Rgb:
    """Black or white, whichever reads better on ``background`` (WCAG 2)."""
    part = np.asarray(background, dtype=np.float64) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ (0.2126, 0.7152, 0.0722))
    return BLACK if (luminance + 0.05) ** 2 >= 1.05 * 0.05 else PAPER
