"""Scenes of real objects: cut-outs laid on photographs, so that removing one shows the very ground behind it.

Scene i draws a background and two to four cut-outs, with different names where they have any, and a size and a place
for each, by counter (:mod:`saccade.data.scenes.hashing`) from the seed and i. Objects do not overlap and are never
enlarged. One object, drawn too, is the target; its name is the label.

Axes: H and W pixels of a scene, h and w of a cut-out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageOps

from saccade.data.causal.photographs.filling import grown
from saccade.data.causal.photographs.format import PhotographFacts
from saccade.data.causal.photographs.marking import MIN_SHARE, Marked, Marker, UnusablePictureError
from saccade.data.causal.photographs.twins import Twins, below, drawer, drawn_place, feathered, laid_over, met, twins_of
from saccade.data.causal.row_folder import Masks, Pixels
from saccade.data.maps import sound
from saccade.data.pictures.files import FORMATS, check_size
from saccade.data.pictures.reading import read_picture
from saccade.errors import DataError
from saccade.files import MAX_PIXELS, open_regular

_LEAST, _MOST = 0.25, 0.55  # Longest side of an object, in shorter sides of its background
_SMALLER = 0.8  # By which an object shrinks where it has no place
_TRIES = 5  # of sizes, and of cut-outs
_GAP = 2  # Pixels between objects
_HOW_MANY, _GROUND, _OTHER_GROUND, _TARGET, _SIZE, _PLACE, _CUTOUT = 10, 11, 12, 13, 20, 100, 200  # Counters of draws
Draw = Callable[[int], int]


class _Cutout(NamedTuple):
    source: str
    name: str | None
    image: Image.Image  # RGBA, cut to what is not transparent


class ComposedScenes:
    """Scenes of the cut-outs in a folder on the photographs of another one; ``count`` names of them."""

    def __init__(
        self,
        cutouts: tuple[Path, Sequence[str]],
        grounds: tuple[Path, Sequence[str]],
        mark: Marker | None,
        label_of: Callable[[str], str | None],
        count: int,
        facts: PhotographFacts,
    ) -> None:
        self.names: Sequence[str] = [f"scene {number}" for number in range(count)]
        (self._folder, self._cutouts), (self._ground_folder, self._grounds) = cutouts, grounds
        self._mark, self._label_of, self._facts = mark, label_of, facts
        self._cutout = lru_cache(maxsize=64)(self._read)

    def make(self, name: str) -> tuple[Marked, Twins]:
        """The scene ``name`` with its twins."""
        draw, count = drawer(self._facts.seed, name), len(self._grounds)
        at = below(draw(_GROUND), count)
        ground = self._ground(self._grounds[at])
        pixels, masks = ground, list[tuple[Masks, _Cutout]]()
        for number, cutout in enumerate(self._chosen(draw)):
            pixels, mask = self._laid(cutout, pixels, [mask for mask, _ in masks], draw, number)
            masks.append((mask, cutout))
        masks.sort(key=lambda pair: -int(pair[0].sum()))
        labels = np.zeros(pixels.shape[:2], np.uint8)
        for number, (mask, _) in enumerate(masks):
            labels[mask] = number + 1
        names, target = tuple(cutout.name for _, cutout in masks), below(draw(_TARGET), len(masks))
        sources = (self._grounds[at], *(cutout.source for _, cutout in masks))
        scene = Marked(name, names[target], pixels, labels, names, frozenset(), target, (), sources)
        other = self._grounds[(at + 1 + below(draw(_OTHER_GROUND), count - 1)) % count] if count > 1 else None
        behind = None if other is None else (other, self._ground(other))
        return scene, twins_of(
            scene, lambda shown, hole: np.where(hole[..., None], ground, shown), behind, self._facts.seed, patches=0
        )

    def _chosen(self, draw: Draw) -> list[_Cutout]:
        """Two to four different cut-outs."""
        chosen: dict[str, _Cutout] = {}
        for number in range(2 + below(draw(_HOW_MANY), 3)):
            for step in range(_TRIES):
                cutout = self._cutout(self._cutouts[below(draw(_CUTOUT + _TRIES * number + step), len(self._cutouts))])
                if (key := cutout.name or cutout.source) not in chosen:
                    chosen[key] = cutout
                    break
        if len(chosen) < 2:
            raise UnusablePictureError("fewer than two different cut-outs were drawn")
        return list(chosen.values())

    def _laid(
        self, cutout: _Cutout, below_it: Pixels, masks: Sequence[Masks], draw: Draw, number: int
    ) -> tuple[Pixels, Masks]:
        """A scene with one more object at a place where no other is, and its mask: all pixels that it touches."""
        height, width = below_it.shape[:2]
        taken = grown(np.any(masks, 0), _GAP) if masks else np.zeros((height, width), bool)
        longest = min(height, width) * (_LEAST + (_MOST - _LEAST) * draw(_SIZE + number) / 2**32)
        for step in range(_TRIES):
            values = np.array(_scaled(cutout.image, longest * _SMALLER**step))  # (h,w,4)
            shape = values[..., 3] > 0
            if shape.shape[0] > height or shape.shape[1] > width:
                continue
            place = drawn_place(met(shape, taken) == 0, draw(_PLACE + number))
            if place and MIN_SHARE <= shape.sum() / taken.size <= self._facts.max_share:
                there = np.s_[place[0] : place[0] + shape.shape[0], place[1] : place[1] + shape.shape[1]]
                mask, pixels = np.zeros_like(taken), below_it.copy()
                mask[there] = shape
                pixels[there] = laid_over(pixels[there], values[..., :3], values[..., 3] / 255)
                return pixels, mask
        raise UnusablePictureError("no place for an object")

    def _ground(self, name: str) -> Pixels:
        try:
            return np.array(_scaled(read_picture(self._ground_folder / name).image, self._facts.size))
        except DataError as error:
            raise UnusablePictureError("background that cannot be read") from error

    def _read(self, name: str) -> _Cutout:
        """The cut-out ``name``: what is not transparent, or the largest thing that is marked."""
        path, called = self._folder / name, self._label_of(name)
        try:
            if self._mark is None:
                with sound(name), open_regular(path) as file, Image.open(file, formats=FORMATS) as stored:
                    check_size(stored.size, name, MAX_PIXELS)
                    image = ImageOps.exif_transpose(stored).convert("RGBA")
            else:
                picture = read_picture(path)
                things = self._mark(name, picture)
                areas = np.bincount(things.map.ravel(), minlength=256)[1:255]
                alpha = feathered(things.map == areas.argmax() + 1)
                image = picture.image.copy()
                image.putalpha(Image.fromarray((alpha * 255).astype(np.uint8)))
                called = called or (things.names[int(areas.argmax())] if areas.any() else None)
        except DataError as error:
            raise UnusablePictureError("cut-out that cannot be read") from error
        box = image.getchannel("A").getbbox()
        if box is None or image.getchannel("A").getextrema()[0] == 255:
            raise UnusablePictureError("cut-out without a transparent ground" if box else "cut-out without an object")
        return _Cutout(name, called, _scaled(image.crop(box), self._facts.size))


def _scaled(image: Image.Image, longest: float) -> Image.Image:
    """``image`` with its longest side at most ``longest``."""
    scale = min(1.0, longest / max(image.size))
    width, height = (max(1, round(side * scale)) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)
