"""The colour map of all weights, safe for colour-blind readers and grey printers, and its colour bar.

The nine anchors were computed in the OKLCH colour space: lightness rises in equal steps from 0.24 to 0.95 while the hue
turns from indigo over teal to pale yellow, and chroma is as high as sRGB allows up to 0.155. Because lightness alone
carries the order, the map reads the same without any sense of red and green.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from PIL import Image

from saccade.errors import DataError, MissingExtraError, nearest

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

    Cells without weight keep a share of the dark end, so that "not looked at" is seen as such and not as a bare
    picture; the rest of the cover grows with the weight.
    """
    floor = 0.45
    return (opacity * (floor + (1.0 - floor) * values)).astype(np.float32)


def legend_bar(width: int, height: int) -> Image.Image:
    """The colour map from 0 (left) to 1 (right)."""
    ramp = heat(np.linspace(0.0, 1.0, max(1, width), dtype=np.float32))  # (W,3)
    return Image.fromarray(np.repeat(ramp[None].round().astype(np.uint8), max(1, height), axis=0))


def contrast(first: Rgb, second: Rgb) -> float:
    """The WCAG contrast ratio of two colours, 1 to 21."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def ink_on(background: Rgb) -> Rgb:
    """Black or white, whichever reads better on ``background``: their contrast is at least 4.5 on any colour."""
    return BLACK if contrast(BLACK, background) >= contrast(PAPER, background) else PAPER


def _luminance(colour: Rgb) -> float:
    part = np.asarray(colour, dtype=np.float64) / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))
