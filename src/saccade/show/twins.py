"""A contact sheet of a causal set of photographs: each picture with its twins beside it."""

from __future__ import annotations

from collections.abc import Iterable

from PIL import Image

from saccade.data.causal.photographs import CHANGES, Photograph
from saccade.show.filmstrip import contact_sheet
from saccade.show.overlay import Mark, Mask


def twin_sheet(photographs: Iterable[Photograph], *, panel: int = 200) -> Image.Image:
    """A row for each photograph, its target outlined; a twin that could not be made leaves its place empty.

    Args:
        photographs: at least one.
        panel: longest side of a thumbnail in pixels.
    """
    rows = list(photographs)
    changes = {name: CHANGES.index(twin.change) for row in rows for name, twin in row.twins.items()}
    names = sorted(changes, key=lambda name: (changes[name], name))
    pictures, captions, marks = [], [], list[list[Mark]]()
    for photograph in rows:
        target = photograph.objects[photograph.target]
        pictures.append(Image.fromarray(photograph.image))
        captions.append(f"{photograph.id} {photograph.label or ''} {target.share:.0%} {photograph.name}")
        marks.append([Mask(photograph.masks[photograph.target])])
        for name in names:
            twin = photograph.twins.get(name)
            called = photograph.objects[twin.object].name if twin is not None and twin.object is not None else None
            pictures.append(Image.new("RGB", (1, 1), "white") if twin is None else Image.fromarray(twin.image))
            captions.append(f"no {name}" if twin is None else f"{name} {called or ''}")
            marks.append([])
    return contact_sheet(pictures, captions, marks=marks, columns=len(names) + 1, panel=panel)
