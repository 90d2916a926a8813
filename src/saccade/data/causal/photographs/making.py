"""Makes causal sets of photographs, from one of two sources of photographs with twins.

**Marked pictures** are photographs whose objects are marked, in the order of a sample. **Composed scenes** are cut-outs
of real objects laid on photographs, so that removing one shows the very ground behind it. Scene i draws a background
and two to four cut-outs, with different names where they have any, and a size and a place for each, by counter
(:mod:`saccade.data.scenes.hashing`) from the seed and i. Objects do not overlap and are never enlarged. One object,
drawn too, is the target; its name is the label.

Axes: H and W pixels of a scene, h and w of a cut-out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageOps

from saccade.data.causal.photographs.filling import Fill, filler, grown
from saccade.data.causal.photographs.format import PhotographFacts
from saccade.data.causal.photographs.marking import (
    MIN_SHARE,
    Marked,
    Marker,
    UnusablePictureError,
    labeller,
    marked,
    marker,
)
from saccade.data.causal.photographs.twins import (
    Ground,
    Twins,
    drawer,
    drawn_place,
    feathered,
    hole_of,
    laid_over,
    met,
    pick,
    twins_of,
)
from saccade.data.causal.photographs.writing import PhotographSource, write_photographs
from saccade.data.causal.row_folder import Masks, Pixels
from saccade.data.maps import sound
from saccade.data.pictures.files import FORMATS, check_size
from saccade.data.pictures.reading import find_pictures, read_picture
from saccade.errors import ConfigError, DataError
from saccade.files import MAX_PIXELS, open_regular

_GROUNDS = 8  # Photographs of which one gives its ground
_SPARE = 2  # Scenes that may be drawn for each that is wanted
MAX_SHARE = 0.25  # of the picture: holes of larger objects are rarely filled in well
SCENES = 100  # Composed scenes, where nobody says how many
_LEAST, _MOST = 0.25, 0.55  # Longest side of an object, in shorter sides of its background
_SMALLER = 0.8  # By which an object shrinks where it has no place
_TRIES = 5  # of sizes, and of cut-outs
_GAP = 2  # Pixels between objects
_HOW_MANY, _GROUND, _OTHER_GROUND, _TARGET, _SIZE, _PLACE, _CUTOUT = 10, 11, 12, 13, 20, 100, 200  # Counters of draws
Draw = Callable[[int], int]


def make_photographs(
    out: Path,
    *,
    pictures: Path | None = None,
    cutouts: Path | None = None,
    backgrounds: Path | None = None,
    masks: str | None = None,
    labels: Path | None = None,
    fill: str = "auto",
    count: int | None = None,
    seed: int = 0,
    size: int = 512,
    max_share: float = MAX_SHARE,
    **how: Any,
) -> PhotographFacts:
    """Photographs of a folder with marked objects, or scenes of cut-outs; ``how`` as in :func:`write_photographs`."""
    if pictures is not None and masks is None:
        raise ConfigError("masks: needed with pictures: a folder of masks, coco:FILE, or auto for what stands out")
    if cutouts is not None and backgrounds is None:
        raise ConfigError("backgrounds: needed with cutouts: a folder of photographs to lay them on")
    folder, names = _names(pictures or cutouts, out)
    reading, mark = ("cut-outs", None) if masks is None else marker(masks, names)
    label_of = labeller(labels, names)
    fill_name, fill_in = ("exact", None) if pictures is None else filler(fill)
    facts = PhotographFacts(
        count=0,
        pictures=folder.resolve().name,
        masks=reading,
        fill=fill_name,
        seed=seed,
        size=size,
        max_share=max_share,
        twins={},
        left_out={},
        labels=(),
        digest="",
    )
    source: PhotographSource
    if mark is not None and fill_in is not None:
        source = MarkedPictures(folder, names, mark, label_of, fill_in, facts)
    else:
        count = count or SCENES
        source = ComposedScenes((folder, names), _names(backgrounds, out), mark, label_of, _SPARE * count, facts)
    return write_photographs(source, facts, out, count, **how)


def _names(folder: Path | None, out: Path) -> tuple[Path, list[str]]:
    """A folder, and the pictures in it by their paths from there."""
    folder = Path(folder or "").expanduser()
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder; name one that holds photographs")
    if out.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"out: {out} lies in {folder}, which is read; name one outside it")
    return folder, [file.relative_to(folder).as_posix() for file in find_pictures([folder])]


class MarkedPictures:
    """Photographs of a folder in the order of a hash of their names and the seed, so the first ones are a sample."""

    def __init__(
        self,
        folder: Path,
        names: Sequence[str],
        mark: Marker,
        label_of: Callable[[str], str | None],
        fill: Fill,
        facts: PhotographFacts,
    ) -> None:
        texts = {name: f"{facts.seed}/{name}".encode(errors="surrogateescape") for name in names}
        self.names: Sequence[str] = sorted(names, key=lambda name: hashlib.sha256(texts[name]).digest())
        self._places = {name: at for at, name in enumerate(self.names)}
        self._folder, self._mark, self._label_of, self._facts, self._fill = folder, mark, label_of, facts, fill
        self._read = lru_cache(maxsize=2 * _GROUNDS)(self._marked)
        self._ground = lru_cache(maxsize=2)(self._without_objects)

    def make(self, name: str) -> tuple[Marked, Twins]:
        """The photograph ``name`` with its twins."""
        photograph = self._usable(name)
        return photograph, twins_of(photograph, self._fill, self._ground_for(name), self._facts.seed)

    def _ground_for(self, name: str) -> Ground:
        """Of the photographs before ``name`` the one of which least has to be filled in, without its objects."""
        place, shares = self._places[name], dict[str, float]()
        for step in range(1, min(_GROUNDS + 1, len(self.names))):
            other = self._read(self.names[place - step])
            if isinstance(other, Marked) and (share := float((other.labels > 0).mean())) <= self._facts.max_share:
                shares[other.name] = share
        return self._ground(min(shares, key=lambda other: shares[other])) if shares else None

    def _without_objects(self, name: str) -> Ground:
        """A photograph that can be used, without its objects; None where no pixel is left to fill them in from."""
        try:
            photograph = self._usable(name)
            return name, self._fill(photograph.pixels, hole_of(photograph, photograph.labels > 0))
        except UnusablePictureError:
            return None

    def _usable(self, name: str) -> Marked:
        photograph = self._read(name)
        if isinstance(photograph, str):
            raise UnusablePictureError(photograph)
        return photograph

    def _marked(self, name: str) -> Marked | str:
        """A photograph, or why it cannot be used."""
        facts = self._facts
        try:
            picture = read_picture(self._folder / name)
            return marked(name, picture, self._mark(name, picture), self._label_of(name), facts.size, facts.max_share)
        except DataError:
            return "picture that cannot be read"
        except UnusablePictureError as error:
            return str(error)


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
        at = pick(draw(_GROUND), count)
        ground = self._ground(self._grounds[at])
        pixels, masks = ground, list[tuple[Masks, _Cutout]]()
        for number, cutout in enumerate(self._chosen(draw)):
            pixels, mask = self._laid(cutout, pixels, [mask for mask, _ in masks], draw, number)
            masks.append((mask, cutout))
        masks.sort(key=lambda pair: -int(pair[0].sum()))
        labels = np.zeros(pixels.shape[:2], np.uint8)
        for number, (mask, _) in enumerate(masks):
            labels[mask] = number + 1
        names, target = tuple(cutout.name for _, cutout in masks), pick(draw(_TARGET), len(masks))
        sources = (self._grounds[at], *(cutout.source for _, cutout in masks))
        scene = Marked(name, names[target], pixels, labels, names, frozenset(), target, (), sources)
        other = self._grounds[(at + 1 + pick(draw(_OTHER_GROUND), count - 1)) % count] if count > 1 else None
        behind = None if other is None else (other, self._ground(other))
        return scene, twins_of(
            scene, lambda shown, hole: np.where(hole[..., None], ground, shown), behind, self._facts.seed, patches=0
        )

    def _chosen(self, draw: Draw) -> list[_Cutout]:
        """Two to four different cut-outs."""
        chosen: dict[str, _Cutout] = {}
        for number in range(2 + pick(draw(_HOW_MANY), 3)):
            for step in range(_TRIES):
                cutout = self._cutout(self._cutouts[pick(draw(_CUTOUT + _TRIES * number + step), len(self._cutouts))])
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
