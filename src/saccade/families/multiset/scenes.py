"""Scenes to read as a set or multiset of digits, as a pure function of (seed, scene number).

MNIST Set and MNIST Multiset of Welleck, Mao, Cho and Zhang, "Saliency-based Sequential Image Attention with Multiset
Prediction" (arXiv:1711.05165, §5), after the generator they released: 1 to 4 digits of 20 to 50 px on 100 × 100.
The picture is divided into a grid whose cell is as large as the scene's largest digit; digits go to distinct cells,
each with a random offset, over eight patches of clutter; only their non-zero pixels are written. Labels are in reading
order of the grid.

Deviations: a share of training scenes may be empty; scenes with one object are scenes of the set with all digits but
one left out, where the released generator would put a lone digit on a grid as coarse as itself; digits are resized by
the filter of ``drawing.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from saccade.data.scenes.backgrounds import PATCHES, strewn
from saccade.data.scenes.drawing import FRACTION_BITS, inked_pixels
from saccade.data.scenes.glyphs import CLASSES, GlyphSet
from saccade.data.scenes.hashing import distinct_below, hash_more, hash_state, uniform_below, uniform_pair_below
from saccade.data.scenes.layout import GlyphLayout
from saccade.errors import ConfigError

_COUNT, _EMPTY, _ORDER, _GLYPH, _SIDE, _CELL, _OFFSET, _ALONE = range(8)  # streams of draws within a scene


@dataclass(frozen=True)
class MultisetSpec:
    """How scenes are drawn; lengths scale with ``size`` and are the paper's at 100."""

    size: int = 100  # Side of the picture in pixels
    most: int = 4  # Most digits in a scene; they always fit, as none is larger than half the picture
    repeats: bool = True  # Whether digits may repeat: a multiset, else a set
    alone: bool = False  # Show only one of a scene's digits
    clutter: int = PATCHES  # Patches of clutter
    empty: float = 0.0  # Share of scenes without a digit

    def __post_init__(self) -> None:
        if not 40 <= self.size <= 400:
            raise ConfigError(f"size: scenes are 40 to 400 pixels wide, found {self.size}")

    @property
    def smallest(self) -> int:
        """The smallest side of a digit."""
        return self.size // 5

    @property
    def largest(self) -> int:
        """The largest side of a digit."""
        return self.size // 2

    @property
    def slots(self) -> int:
        """Length of the object axis."""
        return 1 if self.alone else self.most


def sample_multisets(spec: MultisetSpec, glyphs: GlyphSet, seed: int, indices: Tensor) -> GlyphLayout:
    """The scenes ``indices`` (B,) of the stream ``seed``, on the device of ``indices``."""
    indices = indices.long()
    glyphs = glyphs.to(indices.device)
    slot = torch.arange(spec.most, device=indices.device)
    scene = hash_state(seed, indices[:, None])  # lanes (B, 1)
    count = 1 + uniform_below(hash_more(scene, _COUNT), spec.most)  # (B, 1)
    present = slot < count  # (B, N)
    bits = hash_more(scene, _GLYPH, slot)
    if spec.repeats:  # any glyphs, so digits are as frequent as in MNIST
        glyph = uniform_below(bits, len(glyphs))  # (B, N)
    else:  # of different digits
        order = hash_more(scene, _ORDER, torch.arange(CLASSES, device=slot.device))  # (B, 10)
        glyph = glyphs.pick(torch.argsort(order, dim=1, stable=True)[:, : len(slot)], bits)  # (B, N)
    side = spec.smallest + uniform_below(hash_more(scene, _SIDE, slot), spec.largest + 1 - spec.smallest)  # (B, N)

    cell = (side * present).amax(dim=1)  # (B,) side of the cells
    per_row = spec.size // cell  # (B,)
    place = distinct_below(hash_more(scene, _CELL, slot), per_row * per_row, count.squeeze(1))  # (B, N)
    place = place.masked_fill(~present, spec.size**2).sort(dim=1).values * present  # reading order
    x, y = uniform_pair_below(hash_more(scene, _OFFSET, slot), (cell[:, None] + 1 - side).clamp(min=1))  # in the cell
    layout = GlyphLayout(
        spec=spec,
        glyphs=glyphs,
        seed=seed,
        index=indices,
        classes=glyphs.labels[glyph],
        glyph=glyph,
        extent=side << FRACTION_BITS,
        x=x + place % per_row[:, None] * cell[:, None],
        y=y + place // per_row[:, None] * cell[:, None],
        present=present & (hash_more(scene, _EMPTY) >= round(spec.empty * 2**32)),
    )
    if not spec.alone:
        return layout
    chosen = uniform_below(hash_more(scene, _ALONE), count)  # (B, 1): the slot
    by_slot = {name: values for name, values in layout.tensors().items() if name != "index"}
    return replace(layout, **{name: values.gather(1, chosen) for name, values in by_slot.items()})


def paint(layout: GlyphLayout) -> Tensor:
    """The pictures of a layout, grey in three channels: (B, 3, H, W) uint8, one plane in memory."""
    spec = cast(MultisetSpec, layout.spec)
    canvas = strewn(layout.glyphs, layout.seed, layout.index, spec.size, spec.clutter)
    pixels = inked_pixels(layout)
    canvas.view(-1)[pixels.position] = pixels.ink.byte()
    return canvas[:, None].expand(-1, 3, -1, -1)
