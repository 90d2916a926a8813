"""Pictures that can be asked about: those that were sent, and composed scenes with their truth.

Digits of a composed scene may repeat and overlap; the later one lies in front. Glyph n of a digit is the n-th of its
class among the shipped ones, which no shipped model was trained on.

A picture's id is made of its content, so sending it twice keeps it once. Nothing in a request becomes a path.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
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
from saccade.data.scenes.photo_backgrounds import SHIPPED, Photographs
from saccade.data.scenes.sampler import sample_layout
from saccade.errors import DataError, nearest
from saccade.families.page import CANVAS
from saccade.web.schemas import LEAST, MOST, ApiError, Digit, PictureEntry, Scene
from saccade.web.views import picture_url

_PHOTO = "photo:"
_MADE: dict[str, Callable[[], Background]] = {"black": Black, "distractors": Distractors, "clutter": Clutter}
_DATA_URL = re.compile(r"data:[a-z0-9.+/-]{0,60};base64,", re.IGNORECASE)
_UNWANTED = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Composed:
    """A rendered scene, and where everything in it is."""

    scene: Scene  # As asked for, its digits filled in.
    picture: Picture
    digits: Sequence[Digit]
    masks: Tensor  # (N,H,W) bool: the visible pixels of each digit.

    def evidence(self, question: str | None) -> Tensor | None:
        """(H,W) bool: the pixels that hold the answer, without a question those of every digit; None where unknown."""
        rows = [row for row, digit in enumerate(self.digits) if question in (None, str(digit.digit))]
        return self.masks[rows].any(0) if rows else None


@dataclass(frozen=True, eq=False)
class StoredPicture:
    """A picture that can be asked about."""

    id: str
    picture: Picture
    png: str  # As a data address.
    scene: Composed | None = None  # What it was rendered from, where it was.

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        height, width = self.picture.size
        masks = 0 if self.scene is None else self.scene.masks.numel()
        return 3 * height * width + len(self.png) + masks

    def entry(self) -> PictureEntry:
        """As the API returns it."""
        picture = self.picture
        height, width = picture.size
        return PictureEntry(name=picture.name, width=width, height=height, png=self.png, notes=list(picture.notes))


def stored_picture(picture: Picture) -> StoredPicture:
    """A decoded picture; its id is made of what is in it."""
    image = picture.image
    content = hashlib.sha256(f"{image.size}{picture.name}".encode() + image.tobytes())
    return StoredPicture(f"p{content.hexdigest()[:24]}", picture, picture_url(image))


def bytes_of(data_url: str) -> bytes:
    """The bytes in a data address of any type, as long as it is base64."""
    start = _DATA_URL.match(data_url)
    if start is None:
        raise ApiError(422, "invalid", "picture: expected a data address, data:image/png;base64,…")
    try:
        return base64.b64decode(data_url[start.end() :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ApiError(422, "invalid", f"picture: not base64 ({error})") from error


def shown_name(name: str) -> str:
    """What a file is called, without folders, control characters and excess; shown, never opened."""
    last = _UNWANTED.sub("", name).replace("\\", "/").rsplit("/", 1)[-1].strip()
    return last[-120:] or "picture"


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
    for number, digit in enumerate(digits):
        room = CANVAS - digit.size
        if max(digit.x, digit.y) > room:
            raise DataError(
                f"digits.{number}: a box of {digit.size} px at ({digit.x}, {digit.y}) leaves the picture of {CANVAS}; "
                f"x and y may be 0..{room}"
            )
    rows = [[d.digit, d.glyph, COLOURS.index(d.colour), d.noise, d.size << FRACTION_BITS, d.x, d.y] for d in digits]
    columns = torch.tensor(rows, dtype=torch.int64).reshape(1, -1, 7).unbind(2)  # (1,N) each
    classes, glyph, colour, noise, extent, x, y = columns
    return SceneLayout(
        spec=SceneSpec(CANVAS, scale=(LEAST / GLYPH, (MOST + 1) / GLYPH), background=background),
        glyphs=load_pack(),
        seed=seed,
        index=torch.zeros(1, dtype=torch.int64),
        classes=classes,
        glyph=_first_of_class()[classes] + glyph,
        colour=colour,
        noise=noise,
        extent=extent,
        x=x,
        y=y,
        present=torch.ones(1, len(digits), dtype=torch.bool),
        may_overlap=True,
    )


def _digits(layout: SceneLayout) -> list[Digit]:
    """The description of a drawn scene, which renders to the same picture."""
    order = layout.glyph - _first_of_class()[layout.classes]  # (1,N)
    columns = (layout.classes, layout.x, layout.y, layout.side, layout.colour, order, layout.noise.clamp(-60, 60))
    rows = torch.stack([column[0, : int(layout.count[0])].long() for column in columns], 1).tolist()  # (N,7)
    names = ("digit", "x", "y", "size", "colour", "glyph", "noise")
    return [Digit(**{**dict(zip(names, row)), "colour": COLOURS[row[4]]}) for row in rows]


@lru_cache
def _first_of_class() -> Tensor:
    return torch.searchsorted(load_pack().labels, torch.arange(10))


@lru_cache
def _background(name: str) -> Background:
    if name in _MADE:
        return _MADE[name]()
    photograph = _photographs().get(name.removeprefix(_PHOTO)) if name.startswith(_PHOTO) else None
    if photograph is None:
        raise DataError(f"no background '{name}': {nearest(name, backgrounds())}")
    return Photographs([read_picture(photograph).image], name.removeprefix(_PHOTO))


@lru_cache
def _photographs() -> dict[str, str]:
    return {file.stem: str(file) for file in find_pictures([SHIPPED])}
