"""Photographs with marked objects, in a sample's order, and the one function that makes a causal set of photographs.

The other source of photographs with twins are cut-outs laid on backgrounds, :mod:`.composing`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from saccade.data.causal.photographs.composing import ComposedScenes
from saccade.data.causal.photographs.filling import Fill, filler
from saccade.data.causal.photographs.format import PhotographFacts
from saccade.data.causal.photographs.marking import Marked, Marker, UnusablePictureError, labeller, marked, marker
from saccade.data.causal.photographs.twins import Ground, Twins, hole_of, twins_of
from saccade.data.causal.photographs.writing import PhotographSource, write_photographs
from saccade.data.pictures.reading import find_pictures, read_picture
from saccade.errors import ConfigError, DataError

_GROUNDS = 8  # Photographs of which one gives its ground
_SPARE = 2  # Scenes that may be drawn for each that is wanted
MAX_SHARE = 0.25  # of the picture: holes of larger objects are rarely filled in well
SCENES = 100  # Composed scenes, where nobody says how many


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
