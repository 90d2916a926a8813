"""How ink becomes colour: two drawings of the same scene, and sets that have both.

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

from typing import Literal, get_args

import torch
from torch import Tensor

from saccade.errors import ConfigError, nearest

Drawing = Literal["blend", "authors", "both", "mostly-authors"]
EVERY = {"both": 2, "mostly-authors": 4}
"""Drawings that have both: the first of every N scenes is ``blend``, the others are ``authors``."""


def check_drawing(drawing: str) -> None:
    """Refuse a drawing that there is not.

    Raises:
        ConfigError: names those that there are.
    """
    if drawing not in get_args(Drawing):
        raise ConfigError(f"drawing: found '{drawing}'; {nearest(str(drawing), get_args(Drawing))}")


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
