"""The five colours, in the order of their labels, and how ink becomes colour: two drawings of the same scene.

============== =====================================================================================================
blend           saccade's own. A digit of ink g (0 … 255) lies on its background with opacity g/255, so on black it is
                colour · g/255. Sums of distractors stop at 255
authors         that of the generator that Seo et al. released. A digit is painted in colour · g/255, cut to whole
                numbers, and pasted with opacity g/255. So ink counts twice: on black it is colour · (g/255)².
                Distractors are painted in the same way and added as bytes: sums wrap around at 256
both            scenes with an even number as ``blend``, the others as ``authors``
mostly-authors  every fourth scene as ``blend``, the others as ``authors``: for models that find those harder
============== =====================================================================================================

Digits, places, colours, masks and boxes do not depend on the drawing.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import torch
from torch import Tensor

COLOURS = ("green", "yellow", "white", "red", "blue")

# From the authors' released generator; they kept the names in an unordered set, so the label order is ours.
_RGB = {
    "green": (16, 166, 81),
    "yellow": (255, 241, 78),
    "white": (224, 224, 224),
    "red": (146, 16, 16),
    "blue": (16, 98, 192),
}


def rgb(colours: Tensor, noise: Tensor) -> Tensor:
    """Colours (…) and their noise (…), one number on all three channels, as (…, 3) int64 in 0..255."""
    return (_table(colours.device)[colours] + noise[..., None]).clamp_(0, 255)


@lru_cache
def _table(device: torch.device) -> Tensor:
    """(5, 3): copied to a device once, as every copy makes the host wait."""
    return torch.tensor([_RGB[name] for name in COLOURS], device=device)


Drawing = Literal["blend", "authors", "both", "mostly-authors"]
# Drawings that have both: the first of every N scenes is ``blend``, the others are ``authors``.
EVERY = {"both": 2, "mostly-authors": 4}


def drawn_as_authors(drawing: Drawing, index: Tensor) -> Tensor | None:
    """(B,) bool: which of the scenes ``index`` (B,) are drawn as the authors draw; None: none of them."""
    if drawing == "blend":
        return None
    return index % EVERY[drawing] != 0 if drawing in EVERY else (index >= 0)


def drawing_of(drawing: Drawing, index: int) -> str:
    """``blend`` or ``authors``: how scene ``index`` of a set is drawn."""
    as_authors = drawn_as_authors(drawing, torch.tensor([index]))
    return "blend" if as_authors is None or not bool(as_authors) else "authors"


def painted(colour: Tensor, ink: Tensor) -> Tensor:
    """⌊colour · ink / 255⌋ of whole numbers 0 … 255, without a division."""
    product = colour * ink
    return (product + 1 + (product >> 8)) >> 8
