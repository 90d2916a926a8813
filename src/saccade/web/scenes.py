"""Composed scenes: a description becomes a layout of the generator's own kind, and that a picture with its truth.

Digits may repeat and overlap, as a person may drag them anywhere; the later one lies in front. Glyph n of a digit is
the n-th of its class among those that ship with saccade, which no shipped model was trained on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saccade.data.pictures.reading import Picture, find_pictures, read_picture
from saccade.data.scenes.backgrounds import Background, Black, Clutter, Distractors
from saccade.data.scenes.drawing import COLOURS, FRACTION_BITS, GLYPH, render
from saccade.data.scenes.glyphs import load_pack
from saccade.data.scenes.layout import SceneLayout, SceneSpec
from saccade.data.scenes.photographs import SHIPPED, Photographs
from saccade.data.scenes.sampler import sample_layout
from saccade.errors import DataError, nearest
from saccade.web.family_page import CANVAS
from saccade.web.schemas import LEAST, MOST, Digit, Scene


@dataclass(frozen=True, eq=False)
class Composed:
    """A rendered scene, and where everything in it is."""

    scene: Scene
    """As asked for, its digits filled in."""
    picture: Picture
    digits: Sequence[Digit]
    masks: Tensor
    """(N,H,W) bool: the visible pixels of each digit."""

    def evidence(self, question: str | None) -> Tensor | None:
        """(H,W) bool: the pixels that hold the answer, which without a question are those of every digit.

        None where the scene cannot say: a question about something else, or about a digit that is not there.
        """
        asked = [number for number, each in enumerate(self.digits) if question in (None, str(each.digit))]
        return self.masks[asked].any(0) if asked else None

    @property
    def objects(self) -> Tensor:
        """(H,W) bool: the pixels of all digits."""
        return self.masks.any(0)


_PHOTO = "photo:"
_MADE: dict[str, Callable[[], Background]] = {"black": Black, "distractors": Distractors, "clutter": Clutter}


def backgrounds() -> list[str]:
    """The names of everything that can lie behind the digits."""
    return [*_MADE, *(f"{_PHOTO}{name}" for name in _photographs())]


def compose(scene: Scene) -> Composed:
    """Render ``scene``; a DataError says what of it cannot be drawn."""
    background = _background(scene.background)
    if scene.digits is None:  # the generator's own scene for the seed
        spec = SceneSpec(CANVAS, background=background)
        layout = sample_layout(spec, load_pack(), scene.seed, torch.zeros(1, dtype=torch.int64))
        digits = _digits(layout)
    else:
        layout, digits = _placed(scene.digits, scene.seed, background), scene.digits
    pixels = render(layout)[0].permute(1, 2, 0)  # (H,W,3)
    picture = Picture(Image.fromarray(np.ascontiguousarray(pixels.numpy())), "scene")
    masks = layout.masks()[0][: len(digits)]  # (N,H,W)
    return Composed(scene.model_copy(update={"digits": digits}), picture, digits, masks)


def _placed(digits: list[Digit], seed: int, background: Background) -> SceneLayout:
    """The digits as a layout of one scene."""
    for number, each in enumerate(digits):
        room = CANVAS - each.size
        if max(each.x, each.y) > room:
            raise DataError(
                f"digits.{number}: a box of {each.size} px at ({each.x}, {each.y}) leaves the picture of {CANVAS}; "
                f"x and y may be 0..{room}"
            )
    glyphs = load_pack()

    def column(values: list[int]) -> Tensor:
        return torch.tensor([values], dtype=torch.int64)  # (1,N)

    classes = column([each.digit for each in digits])
    return SceneLayout(
        spec=SceneSpec(CANVAS, scale=(LEAST / GLYPH, (MOST + 1) / GLYPH), background=background),
        glyphs=glyphs,
        seed=seed,
        index=torch.zeros(1, dtype=torch.int64),
        classes=classes,
        glyph=_first_of_class()[classes] + column([each.glyph for each in digits]),
        colour=column([COLOURS.index(each.colour) for each in digits]),
        noise=column([each.noise for each in digits]),
        extent=column([each.size << FRACTION_BITS for each in digits]),
        x=column([each.x for each in digits]),
        y=column([each.y for each in digits]),
        present=torch.ones(1, len(digits), dtype=torch.bool),
        may_overlap=True,
    )


def _digits(layout: SceneLayout) -> list[Digit]:
    """The description of a drawn scene, which renders to the same picture."""
    order = layout.glyph[0] - _first_of_class()[layout.classes[0]]  # (N,)
    return [
        Digit(
            digit=int(layout.classes[0, slot]),
            x=int(layout.x[0, slot]),
            y=int(layout.y[0, slot]),
            size=int(layout.side[0, slot]),
            colour=COLOURS[int(layout.colour[0, slot])],  # type: ignore[arg-type]  # COLOURS are those of the schema
            glyph=int(order[slot]),
            noise=max(-60, min(60, int(layout.noise[0, slot]))),
        )
        for slot in range(int(layout.count[0]))
    ]


@lru_cache
def _first_of_class() -> Tensor:
    """(10,) where the glyphs of each digit start in the pack, which is sorted by class."""
    return torch.searchsorted(load_pack().labels, torch.arange(10))


def _background(name: str) -> Background:
    if name in _MADE:
        return _MADE[name]()
    photograph = name.removeprefix(_PHOTO)
    if not name.startswith(_PHOTO) or photograph not in _photographs():
        raise DataError(f"no background '{name}': {nearest(name, backgrounds())}")
    return _photograph(photograph)


@lru_cache
def _photographs() -> dict[str, str]:
    """The shipped photographs: what they are called → their file."""
    return {file.stem: str(file) for file in find_pictures([SHIPPED])}


@lru_cache
def _photograph(name: str) -> Photographs:
    return Photographs([read_picture(_photographs()[name]).image], name)
