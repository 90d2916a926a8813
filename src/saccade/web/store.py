"""Pictures and answers, kept for a while: the most recently used stay, the oldest go.

A picture's name is made of what is in it, so sending it twice keeps it once. Nothing that a request says becomes a
path: its own name for the picture is shown, cut to the last part, and used for nothing else. An answer can be fetched
again: the view, the strip of looks as a picture, a page that opens offline.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from saccade.data.pictures.reading import Picture
from saccade.show.overlay import png_bytes
from saccade.sighting import Sighting
from saccade.web.errors import ApiError
from saccade.web.page import offline_page
from saccade.web.scenes import Composed, compose
from saccade.web.schemas import PictureEntry, Scene
from saccade.web.views import Json, picture_url

Thing = TypeVar("Thing")


class LruStore(Generic[Thing]):
    """Things by name, least recently used first to go; threads may share one.

    Args:
        kind: what one of them is called.
        budget: bytes of all things together; one that is larger by itself is kept until the next comes.
        places: how many things at most.
    """

    def __init__(self, kind: str, budget: int, places: int = 4096) -> None:
        self._kind, self._budget, self._places = kind, budget, places
        self._things: OrderedDict[str, tuple[Thing, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def put(self, name: str, thing: Thing, size: int) -> Thing:
        """Keep ``thing``, which takes ``size`` bytes, under ``name``."""
        with self._lock:
            self._bytes -= self._things.pop(name, (None, 0))[1]
            self._things[name] = (thing, size)
            self._bytes += size
            while len(self._things) > 1 and (self._bytes > self._budget or len(self._things) > self._places):
                self._bytes -= self._things.popitem(last=False)[1][1]
        return thing

    def get(self, name: str) -> Thing | None:
        """The thing called ``name``, now the latest used; None if it is not (or no longer) there."""
        with self._lock:
            if name not in self._things:
                return None
            self._things.move_to_end(name)
            return self._things[name][0]

    def find(self, name: str) -> Thing:
        """The same; an ApiError if it is not there."""
        thing = self.get(name)
        if thing is None:
            raise ApiError(404, f"unknown_{self._kind}", f"no {self._kind} '{name}' here (any more); send or ask again")
        return thing


_DATA_URL = re.compile(r"data:[a-z0-9.+/-]{0,60};base64,", re.IGNORECASE)
_UNWANTED = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class StoredPicture:
    """A picture that can be asked about."""

    id: str
    picture: Picture
    png: str
    """As a data address."""
    scene: Composed | None = None
    """What it was rendered from, where it was."""

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        height, width = self.picture.size
        masks = 0 if self.scene is None else self.scene.masks.numel()
        return 3 * height * width + len(self.png) + masks

    def entry(self) -> PictureEntry:
        """As the API tells it."""
        height, width = self.picture.size
        return PictureEntry(
            name=self.picture.name, width=width, height=height, png=self.png, notes=list(self.picture.notes)
        )


def stored_picture(picture: Picture) -> StoredPicture:
    """A decoded picture; its id is made of what is in it."""
    image = picture.image
    content = hashlib.sha256(f"{image.size}{picture.name}".encode() + image.tobytes())
    return StoredPicture(f"p{content.hexdigest()[:24]}", picture, picture_url(image))


def composed_picture(scene: Scene, pictures: LruStore[StoredPicture]) -> StoredPicture:
    """Render and keep a scene; one that was rendered lately is found again."""
    name = f"s{hashlib.sha256(scene.model_dump_json().encode()).hexdigest()[:24]}"
    known = pictures.get(name)
    if known is not None:
        return known
    composed = compose(scene)
    kept = StoredPicture(name, composed.picture, picture_url(composed.picture.image), composed)
    return pictures.put(name, kept, kept.size)


def bytes_of(data_url: str) -> bytes:
    """The bytes in a data address of any type, as long as it is base64."""
    found = _DATA_URL.match(data_url)
    if found is None:
        raise ApiError(422, "invalid", "picture: expected a data address, data:image/png;base64,…")
    try:
        return base64.b64decode(data_url[found.end() :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ApiError(422, "invalid", f"picture: not base64 ({error})") from error


def shown_name(name: str) -> str:
    """What a file is called, without folders, control characters and excess; shown, never opened."""
    last = _UNWANTED.sub("", name).replace("\\", "/").rsplit("/", 1)[-1].strip()
    return last[-120:] or "picture"


@dataclass(frozen=True, eq=False)
class StoredAnswer:
    """One answer as it was given."""

    sighting: Sighting
    view: Json

    @property
    def stem(self) -> str:
        """What its files are called: letters, digits and dashes of the model's name and the question only."""
        said = f"{self.sighting.model}-{self.sighting.question or 'look'}"
        return re.sub(r"[^A-Za-z0-9-]+", "-", said).strip("-")[:80] or "saccade"

    def file(self, form: str) -> bytes:
        """The answer as ``view.json``, as ``strip.png``, or as ``page.html``, which loads nothing from anywhere."""
        if form == "strip.png":
            return png_bytes(self.sighting.filmstrip())
        view, picture = self.view, self.view["picture"]
        if picture is not None and not picture["png"]:  # the view is to stand alone, whether or not it was asked for so
            view = {**view, "picture": {**picture, "png": picture_url(self.sighting.picture.image)}}
        text = json.dumps(view, indent=1) if form == "view.json" else offline_page(views=[view])
        return text.encode("utf-8")


def answer_size(sighting: Sighting, view: Json) -> int:
    """What an answer takes in memory, roughly: its picture, its tensors, and the texts that they became."""
    image = sighting.source.image
    pixels = 0 if image is None else 3 * image.height * image.width
    tensors = sum(tensor.nbytes for look in sighting.trace.looks for tensor in look.tensors().values())
    return pixels + tensors + len(json.dumps(view))
