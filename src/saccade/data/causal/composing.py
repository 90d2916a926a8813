"""Scenes of real objects: cut-outs laid on photographs, so that taking one away is exact and nothing is filled in.

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

from saccade.data.causal import Masks, Pixels
from saccade.data.causal.filling import grown
from saccade.data.causal.marking import MIN_SHARE, Marked, Marker, UnusablePictureError
from saccade.data.causal.photograph_twins import (
    Alpha,
    Twin,
    Twins,
    box_of,
    drawer,
    drawn_place,
    feathered,
    laid_over,
    met,
    new_place,
    shifted,
)
from saccade.data.causal.photographs import PhotographFacts
from saccade.data.pictures.files import FORMATS, check_size
from saccade.data.pictures.reading import read_picture
from saccade.errors import DataError
from saccade.files import MAX_PIXELS, open_regular

_LEAST, _MOST = 0.25, 0.55  # Longest side of an object, in shorter sides of its background
_SMALLER = 0.8  # By which an object shrinks where it has no place
_TRIES = 5  # of sizes, and of cut-outs
_GAP = 2  # Pixels between objects
_HOW_MANY, _GROUND, _OTHER_GROUND, _TARGET, _MOVED, _SIZE, _PLACE, _CUTOUT = 0, 1, 2, 3, 4, 10, 100, 200  # of draws


class _Cutout(NamedTuple):
    source: str
    name: str | None
    image: Image.Image  # RGBA, cut to what is not transparent


class _Layer(NamedTuple):
    cutout: _Cutout
    pixels: Pixels  # (H,W,3)
    alpha: Alpha  # (H,W) in 0..1

    @property
    def mask(self) -> Masks:
        """(H,W): what belongs to the object."""
        return self.alpha > 0.5


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
        draw = drawer(self._facts.seed, name)
        at = below(draw(_GROUND), len(self._grounds))
        ground = self._ground(self._grounds[at])
        layers = sorted(self._layers(ground, draw), key=lambda layer: -int(layer.mask.sum()))
        target = below(draw(_TARGET), len(layers))
        labels = _labelled(layers)
        scene = Marked(
            name,
            layers[target].cutout.name,
            _composed(ground, layers),
            labels,
            tuple(layer.cutout.name for layer in layers),
            frozenset(),
            target,
            (),
            (self._grounds[at], *(layer.cutout.source for layer in layers)),
        )
        twins: dict[str, Twin] = {}
        left_out: list[str] = []
        for number, layer in enumerate(layers):
            pixels = _composed(ground, [*layers[:number], *layers[number + 1 :]])
            without = np.where(labels == number + 1, np.uint8(0), labels)
            twins[f"removed-{number}"] = Twin("removed", pixels, without, layer.alpha > 0, number)
        layer, taken = layers[target], _taken([*layers[:target], *layers[target + 1 :]], labels.shape)
        if place := new_place(layer.alpha > 0, taken, draw(_MOVED)):
            moved = layer._replace(pixels=shifted(layer.pixels, *place), alpha=shifted(layer.alpha, *place))
            after = [*layers[:target], moved, *layers[target + 1 :]]
            changed = (layer.alpha > 0) | (moved.alpha > 0)
            box = box_of(moved.mask)
            twins["moved"] = Twin("moved", _composed(ground, after), _labelled(after), changed, target, box)
        else:
            left_out.append("moved: no free place for the target")
        if len(self._grounds) > 1:
            other = self._grounds[(at + 1 + below(draw(_OTHER_GROUND), len(self._grounds) - 1)) % len(self._grounds)]
            size = (labels.shape[1], labels.shape[0])
            behind = np.array(ImageOps.fit(Image.fromarray(self._ground(other)), size))
            opaque = np.any([each.alpha >= 1 for each in layers], 0)
            twins["background"] = Twin("background", _composed(behind, layers), labels, ~opaque, ground=other)
        else:
            left_out.append("background: no other photograph with a ground")
        return scene, Twins(twins, tuple(left_out))

    def _layers(self, ground: Pixels, draw: Callable[[int], int]) -> list[_Layer]:
        """Two to four objects with their places."""
        chosen: list[_Cutout] = []
        for number in range(2 + below(draw(_HOW_MANY), 3)):
            for step in range(_TRIES):
                cutout = self._cutout(self._cutouts[below(draw(_CUTOUT + _TRIES * number + step), len(self._cutouts))])
                if all(cutout.source != each.source and (cutout.name or "") != each.name for each in chosen):
                    chosen.append(cutout)
                    break
        if len(chosen) < 2:
            raise UnusablePictureError("fewer than two different cut-outs were drawn")
        layers: list[_Layer] = []
        for number, cutout in enumerate(chosen):
            longest = min(ground.shape[:2]) * (_LEAST + (_MOST - _LEAST) * draw(_SIZE + number) / 2**32)
            for step in range(_TRIES):
                scale = min(1.0, longest * _SMALLER**step / max(cutout.image.size))
                if layer := self._placed(cutout, scale, ground, layers, draw(_PLACE + number)):
                    layers.append(layer)
                    break
            else:
                raise UnusablePictureError("no place for an object")
        return layers

    def _placed(
        self, cutout: _Cutout, scale: float, ground: Pixels, layers: Sequence[_Layer], bits: int
    ) -> _Layer | None:
        """A cut-out at its size on a place where no other object is; None where there is none, or it is too large."""
        width, height = (max(1, round(side * scale)) for side in cutout.image.size)
        values = np.array(cutout.image.resize((width, height), Image.Resampling.LANCZOS))  # (h,w,4)
        alpha = values[..., 3] / 255.0
        share = (alpha > 0.5).sum() / ground[..., 0].size
        if not MIN_SHARE <= share <= self._facts.max_share or height > len(ground) or width > ground.shape[1]:
            return None
        place = drawn_place(met(alpha > 0, _taken(layers, ground.shape[:2])) == 0, bits)
        if place is None:
            return None
        there = np.s_[place[0] : place[0] + height, place[1] : place[1] + width]
        layer = _Layer(cutout, np.zeros_like(ground), np.zeros(ground.shape[:2]))
        layer.pixels[there], layer.alpha[there] = values[..., :3], alpha
        return layer

    def _ground(self, name: str) -> Pixels:
        try:
            image = read_picture(self._ground_folder / name).image
        except DataError as error:
            raise UnusablePictureError("background that cannot be read") from error
        return np.array(_fitted(image, self._facts.size))

    def _read(self, name: str) -> _Cutout:
        """The cut-out ``name``: what is not transparent, or the largest thing that is marked."""
        try:
            image, called = _transparent(self._folder / name), self._label_of(name)
            if self._mark is not None:
                picture = read_picture(self._folder / name)
                things = self._mark(name, picture)
                areas = np.bincount(things.map.ravel(), minlength=256)[1 : len(things.names) + 1]
                largest = int(areas.argmax()) if len(areas) else 0
                alpha = feathered(things.map == largest + 1)
                image = picture.image.copy()
                image.putalpha(Image.fromarray((alpha * 255).astype(np.uint8)))
                called = called or (things.names[largest] if things.names else None)
        except (OSError, ValueError, SyntaxError, DataError, Image.DecompressionBombError) as error:
            raise UnusablePictureError("cut-out that cannot be read") from error
        box = image.getchannel("A").getbbox()
        if box is None or image.getchannel("A").getextrema()[0] == 255:
            raise UnusablePictureError("cut-out without a transparent ground" if box else "cut-out without an object")
        return _Cutout(name, called, _fitted(image.crop(box), self._facts.size))


def below(bits: int, bound: int) -> int:
    """A number in [0, bound) from 32 random bits."""
    return bits * bound >> 32


def _fitted(image: Image.Image, size: int) -> Image.Image:
    """``image`` with its longest side at most ``size``."""
    scale = min(1.0, size / max(image.size))
    width, height = (max(1, round(side * scale)) for side in image.size)
    return image.resize((width, height), Image.Resampling.LANCZOS)


def _transparent(path: Path) -> Image.Image:
    """The picture in a file, upright, as RGBA."""
    with open_regular(path) as file, Image.open(file, formats=FORMATS) as image:
        check_size(image.size, str(path), MAX_PIXELS)
        return ImageOps.exif_transpose(image).convert("RGBA")


def _composed(ground: Pixels, layers: Sequence[_Layer]) -> Pixels:
    for layer in layers:
        ground = laid_over(ground, layer.pixels, layer.alpha)
    return ground


def _labelled(layers: Sequence[_Layer]) -> Pixels:
    """(H,W): 0 is ground, k + 1 is layer k."""
    labels = np.zeros(layers[0].alpha.shape, np.uint8)
    for number, layer in enumerate(layers):
        labels[layer.mask] = number + 1
    return labels


def _taken(layers: Sequence[_Layer], size: tuple[int, ...]) -> Masks:
    """(H,W): where no other object may lie."""
    taken = np.zeros(size, bool)
    for layer in layers:
        taken |= layer.alpha > 0
    return grown(taken, _GAP)
