"""Training scenes as the page is told of them, so that it can say when a composed scene is unlike them.

A family's page module fills in the numbers, those of its own generators; see :mod:`saccade.web.family_page`. Nothing
here needs the extra ``web``: a page without a server tells them too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from saccade.data.scenes.drawing import COLOURS

CANVAS = 100
"""Side of a composed scene in pixels, as the models of digits were trained."""
Behind = Literal["black", "distractors", "clutter", "photo"]


@dataclass(frozen=True)
class TrainedScenes:
    """What the scenes of a model's training have in common."""

    digits: tuple[int, int]
    """Fewest and most."""
    sizes: tuple[tuple[int, int], ...]
    """Ranges of the sides of their boxes in pixels."""
    background: Behind
    colours: tuple[str, ...] = COLOURS
    repeats: bool = False
    """Whether a digit may be there twice."""
