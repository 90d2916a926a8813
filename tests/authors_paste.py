"""The drawing of the generator that Seo et al. released, with Pillow: a reference to hold other drawings against.

For each digit the released code resizes the uint8 glyph to int(28 · scale) with PIL's bilinear filter, paints it in
colour · glyph / 255 cut to whole bytes, and pastes *that* with the glyph as alpha. So ink counts twice: on black a
pixel of ink g becomes colour · (g/255)². Distractors are painted in the same way and added to the background in uint8,
where sums beyond 255 wrap around. saccade has this drawing as ``data.drawing: authors``; its own blends once, and its
sums stop at 255.

Read from the generator's description; none of its code is here.
"""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from saccade.data.scenes.layout import SceneLayout

Bytes = NDArray[np.uint8]


def resize(glyph: Bytes, side: int) -> Bytes:
    """A glyph (g,g) at ``side`` pixels, as PIL's bilinear filter has it."""
    return np.array(Image.fromarray(glyph).resize((side, side), Image.Resampling.BILINEAR), np.uint8)


def painted(ink: Bytes, colour: Iterable[int]) -> Bytes:
    """Ink (h,w) in a colour: (h,w,3), cut to whole bytes."""
    share = ink[..., None].astype(np.float64) / 255
    return np.array(share * np.asarray(list(colour)), np.uint8)


def paste(canvas: Image.Image, ink: Bytes, colour: Iterable[int], x: int, y: int) -> None:
    """Paint ink in its colour, then paste it with the ink itself as alpha."""
    canvas.paste(Image.fromarray(painted(ink, colour)), (x, y), Image.fromarray(ink))


def add(canvas: Bytes, ink: Bytes, colour: Iterable[int], x: int, y: int) -> None:
    """Add a distractor to a background (H,W,3) in bytes: sums wrap around; what lies outside is cut off."""
    height, width = canvas.shape[:2]
    patch = painted(ink, colour)[: height - y, : width - x]
    canvas[y : y + patch.shape[0], x : x + patch.shape[1]] += patch


def drawn(layout: SceneLayout, scene: int, background: Bytes, resize: Callable[[Bytes, int], Bytes] = resize) -> Bytes:
    """One scene of a layout on a background (H,W,3), its digits in order of their slots."""
    canvas = Image.fromarray(background)
    for slot in layout.present[scene].nonzero().flatten().tolist():
        glyph = layout.glyphs.images[int(layout.glyph[scene, slot])].numpy()
        ink = resize(glyph, int(layout.side[scene, slot]))
        colour = layout.rgb[scene, slot].tolist()
        paste(canvas, ink, colour, int(layout.x[scene, slot]), int(layout.y[scene, slot]))
    return np.asarray(canvas)
