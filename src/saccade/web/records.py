"""Answers that can be fetched again: the view, the strip of looks as a picture, a page that opens offline."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass

from saccade.show.overlay import png_bytes
from saccade.sighting import Sighting
from saccade.web.errors import ApiError
from saccade.web.limits import Limits
from saccade.web.lru_store import LruStore
from saccade.web.page import offline_page
from saccade.web.views import Json, picture_url


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
