"""The two ways to make a causal set of photographs: from pictures with masks, or from cut-outs laid on backgrounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from saccade.data.causal.composing import ComposedScenes
from saccade.data.causal.filling import FillName, filler
from saccade.data.causal.marking import labeller, marker
from saccade.data.causal.photograph_writing import MarkedPictures, PhotographSource, write_photographs
from saccade.data.causal.photographs import PhotographFacts
from saccade.data.pictures.reading import find_pictures
from saccade.errors import ConfigError, DataError

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
    fill: FillName = "auto",
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
    name, fill_in = ("exact", None) if pictures is None else filler(fill)
    facts = PhotographFacts(0, folder.resolve().name, reading, name, seed, size, max_share, {}, {}, (), "")
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
