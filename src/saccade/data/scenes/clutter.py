"""Bits of digits strewn over black, on a grid of their own: the noise behind the scenes of multisets.

As in the generator that Welleck et al. released beside "Saliency-based Sequential Image Attention with Multiset
Prediction" (arXiv:1711.05165): square patches are cut from random places of random glyphs and put into distinct cells
of a grid as fine as they are, so that none lies over another. Many are blank, as glyphs are mostly border.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.data.scenes.backgrounds import BACKGROUND_DRAWS
from saccade.data.scenes.glyphs import GlyphSet
from saccade.data.scenes.hashing import (
    distinct_below,
    hash_more,
    hash_state,
    hash_words,
    uniform_below,
    uniform_pair_below,
)
from saccade.data.scenes.resize import GLYPH

_SOURCE, _CELL = range(BACKGROUND_DRAWS, BACKGROUND_DRAWS + 2)
PATCHES = 8
"""Patches in a picture, as in the released generator."""


def patch_side(size: int) -> int:
    """Side of a patch in a picture of side ``size``."""
    return size // 20


@dataclass(frozen=True)
class Clutter:
    """Bits of digits on black: a :class:`~saccade.data.scenes.backgrounds.Background`."""

    name: str = "clutter"

    def __call__(self, glyphs: GlyphSet, seed: int, indices: Tensor, size: int) -> Tensor:
        """Grey clutter in all three channels."""
        grey = strewn(glyphs, seed, indices, size, count=PATCHES, patch=patch_side(size))  # (B,size,size)
        return grey[:, None].repeat(1, 3, 1, 1)  # (B,3,size,size)


def strewn(glyphs: GlyphSet, seed: int, indices: Tensor, size: int, *, count: int, patch: int) -> Tensor:
    """Grey pictures (B, size, size) uint8 of nothing but clutter, for the scenes ``indices`` (B,).

    Args:
        glyphs: what the patches are cut from, on the device of ``indices``.
        seed: which stream of scenes.
        indices: numbers of the scenes in it.
        size: side of the pictures.
        count: patches in a picture.
        patch: side of a patch.
    """
    device, cells = indices.device, size // patch
    number = torch.arange(count, device=device)
    scene = hash_state(seed, indices[:, None])  # lanes (B, 1)
    for_glyph, for_offset = hash_words(scene, _SOURCE, number)  # (B, K) each
    cell = distinct_below(hash_more(scene, _CELL, number), cells * cells, count)  # (B, K)

    left, top = uniform_pair_below(for_offset, GLYPH + 1 - patch)
    source = (uniform_below(for_glyph, len(glyphs)) * GLYPH + top) * GLYPH + left  # (B, K) in the flattened glyphs
    picture = torch.arange(len(indices), device=device)[:, None]
    target = (picture * size + cell // cells * patch) * size + cell % cells * patch  # (B, K)
    row = torch.arange(patch, device=device)[:, None]
    column = torch.arange(patch, device=device)
    canvas = torch.zeros(len(indices), size, size, dtype=torch.uint8, device=device)
    cut = glyphs.images.view(-1)[source[..., None, None] + row * GLYPH + column]  # (B, K, patch, patch)
    canvas.view(-1)[target[..., None, None] + row * size + column] = cut
    return canvas
