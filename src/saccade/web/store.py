"""Pictures and answers, kept for a while: the most recently used stay, the oldest go.

A picture's name is made of what is in it, so sending it twice keeps it once. Nothing that a request says becomes a
path: its own name for the picture is shown, cut to the last part, and used for nothing else. An answer can be fetched
again: the view, the strip of looks as a picture, a page that opens offline.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from saccade.data.pictures.reading import Picture
from saccade.show.overlay import png_bytes
from saccade.sighting import Sighting
from saccade.web.errors import ApiError
from saccade.web.page import offline_page
from saccade.web.scenes import Composed, Truth, compose
from saccade.web.schemas import PictureEntry, Scene
from saccade.web.serve import Limits
from saccade.web.views import Json, picture_url

Thing = TypeVar("Thing")


class LruStore(Generic[Thing]):
    """Things by name, least recently used first to go; threads may share one.

    Args:
        budget: bytes of all things together; one that is larger by itself is kept until the next comes.
        places: how many things at most.
    """

    def __init__(self, budget: int, places: int = 4096) -> None:
        self._budget, self._places = budget, places
        self._things: OrderedDict[str, tuple[Thing, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def put(self, name: str, thing: Thing, size: int) -> None:
        """Keep ``thing``, which takes ``size`` bytes, under ``name``."""
        with self._lock:
            self._bytes -= self._things.pop(name, (None, 0))[1]
            self._things[name] = (thing, size)
            self._bytes += size
            while len(self._things) > 1 and (self._bytes > self._budget or len(self._things) > self._places):
                self._bytes -= self._things.popitem(last=False)[1][1]

    def get(self, name: str) -> Thing | None:
        """The thing called ``name``, now the latest used; None if it is not (or no longer) there."""
        with self._lock:
            if name not in self._things:
                return None
            self._things.move_to_end(name)
            return self._things[name][0]

    @property
    def bytes(self) -> int:
        """Bytes of all entries."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._things)


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
    def truth(self) -> Truth | None:
        """Where everything is, where that is known."""
        return None if self.scene is None else self.scene.truth

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        height, width = self.picture.size
        masks = 0 if self.scene is None else self.scene.truth.masks.numel()
        return 3 * height * width + len(self.png) + masks

    def entry(self) -> PictureEntry:
        """As the API tells it."""
        height, width = self.picture.size
        return PictureEntry(
            name=self.picture.name, width=width, height=height, png=self.png, notes=list(self.picture.notes)
        )


class Pictures:
    """The latest pictures, by id."""

    def __init__(self, limits: Limits) -> None:
        self._store: LruStore[StoredPicture] = LruStore(limits.kept_bytes)

    def keep(self, picture: Picture) -> StoredPicture:
        """Keep a decoded picture."""
        image = picture.image
        content = hashlib.sha256(f"{image.size}{picture.name}".encode() + image.tobytes())
        return self._keep(StoredPicture(f"p{content.hexdigest()[:24]}", picture, picture_url(image)))

    def compose(self, scene: Scene) -> StoredPicture:
        """Render and keep a scene; one that was rendered lately is found again."""
        name = f"s{hashlib.sha256(scene.model_dump_json().encode()).hexdigest()[:24]}"
        known = self._store.get(name)
        if known is not None:
            return known
        composed = compose(scene)
        return self._keep(StoredPicture(name, composed.picture, picture_url(composed.picture.image), composed))

    def find(self, name: str) -> StoredPicture:
        """The picture called ``name``; an ApiError if it is not (or no longer) here."""
        kept = self._store.get(name)
        if kept is None:
            raise ApiError(404, "unknown_encoding", f"no encoding '{name}' here (any more); send the picture again")
        return kept

    def _keep(self, kept: StoredPicture) -> StoredPicture:
        self._store.put(kept.id, kept, kept.size)
        return kept


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

    def strip_png(self) -> bytes:
        """Every look side by side, as a PNG."""
        return png_bytes(self.sighting.filmstrip())

    @property
    def whole_view(self) -> Json:
        """The view with its picture inside, so that it can stand alone, whether or not it was asked for so."""
        picture = self.view["picture"]
        if picture is None or picture["png"]:
            return self.view
        return {**self.view, "picture": {**picture, "png": picture_url(self.sighting.picture.image)}}

    def page(self) -> str:
        """One HTML file that loads nothing from anywhere, the same that the page itself saves."""
        return offline_page(views=[self.whole_view])


class Records:
    """The latest answers, by an id that nobody can guess."""

    def __init__(self, limits: Limits) -> None:
        self._store: LruStore[StoredAnswer] = LruStore(limits.records_bytes, limits.records)

    def keep(self, sighting: Sighting, view: Json) -> Json:
        """Keep an answer; returns its view with the ``record`` by which it is found."""
        name = secrets.token_urlsafe(12)
        view = {**view, "record": name}
        self._store.put(name, StoredAnswer(sighting, view), _bytes(sighting, view))
        return view

    def find(self, name: str) -> StoredAnswer:
        """The answer called ``name``; an ApiError if it is not (or no longer) here."""
        kept = self._store.get(name)
        if kept is None:
            raise ApiError(404, "unknown_record", f"no record '{name}' here (any more); ask again")
        return kept


def _bytes(sighting: Sighting, view: Json) -> int:
    """What an answer takes in memory, roughly: its picture, its tensors, and the texts that they became."""
    image, picture = sighting.source.image, view["picture"]
    pixels = 0 if image is None else 3 * image.height * image.width
    tensors = sum(tensor.nbytes for look in sighting.trace.looks for tensor in look.tensors().values())
    texts = [picture and picture["png"], *(each and each["weights"] for each in (view["total"], *view["looks"]))]
    texts += [text for look in view["looks"] for text in look.get("slots", ())]
    return pixels + tensors + sum(len(text) for text in texts if text)
