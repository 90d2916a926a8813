"""Pictures that were uploaded or composed, kept for a while under a name that the server chooses.

A name is made of what is in the picture, so sending it twice keeps it once. Nothing that a request says becomes a path:
its own name for the picture is shown, cut to the last part, and used for nothing else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

from saccade.data.pictures.reading import Picture
from saccade.web.errors import ApiError
from saccade.web.limits import Limits
from saccade.web.lru_store import LruStore
from saccade.web.scenes import Composed, Truth, compose
from saccade.web.schemas import PictureEntry, Scene
from saccade.web.views import picture_url

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
