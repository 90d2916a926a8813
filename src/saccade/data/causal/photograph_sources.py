"""The two ways to make a causal set of photographs: from pictures with masks, or from cut-outs laid on backgrounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from saccade.data.causal.composing import ComposedScenes
from saccade.data.causal.filling import FillName, filler
from saccade.data.causal.marking import labeller, marker
from saccade.data.causal.photograph_writing import MarkedPictures, write_photographs
from saccade.data.causal.photographs import PhotographFacts
from saccade.data.pictures.reading import find_pictures
from saccade.errors import ConfigError, DataError

_SPARE = 2  # Scenes that may be drawn for each that is wanted
MAX_SHARE = 0.25  # of the picture: holes of larger objects are rarely filled in well
SCENES = 100  # Composed scenes, where nobody says how many


def picture_set(
    pictures: Path,
    *,
    out: Path,
    masks: str | None = None,
    labels: Path | None = None,
    fill: FillName = "auto",
    seed: int = 0,
    size: int = 512,
    max_share: float = MAX_SHARE,
    **how: Any,
) -> PhotographFacts:
    """Photographs of a folder with marked objects; ``how`` as in :func:`write_photographs`."""
    if masks is None:
        raise ConfigError("masks: needed with pictures: a folder of masks, coco:FILE, or auto for what stands out")
    pictures, names = _names(pictures, out, "pictures")
    reading, mark = marker(masks, names)
    label_of = labeller(labels, names)
    fill_name, fill_in = filler(fill)
    facts = _facts(pictures, reading, fill_name, seed, size, max_share)
    return write_photographs(MarkedPictures(pictures, names, mark, label_of, fill_in, facts), facts, out, **how)


def cutout_set(
    cutouts: Path,
    *,
    out: Path,
    backgrounds: Path | None = None,
    masks: str | None = None,
    labels: Path | None = None,
    count: int | None = None,
    seed: int = 0,
    size: int = 512,
    max_share: float = MAX_SHARE,
    **how: Any,
) -> PhotographFacts:
    """Scenes of cut-outs on the photographs of another folder; ``how`` as in :func:`write_photographs`."""
    if backgrounds is None:
        raise ConfigError("backgrounds: needed with cutouts: a folder of photographs to lay them on")
    cutouts, names = _names(cutouts, out, "cutouts")
    grounds = _names(backgrounds, out, "backgrounds")
    reading, mark = ("cut-outs", None) if masks is None else marker(masks, names)
    facts, count = _facts(cutouts, reading, "exact", seed, size, max_share), count or SCENES
    scenes = ComposedScenes((cutouts, names), grounds, mark, labeller(labels, names), _SPARE * count, facts)
    return write_photographs(scenes, facts, out, count, **how)


def _facts(folder: Path, masks: str, fill: str, seed: int, size: int, max_share: float) -> PhotographFacts:
    return PhotographFacts(0, folder.resolve().name, masks, fill, seed, size, max_share, {}, {}, (), "")


def _names(folder: Path, out: Path, what: str) -> tuple[Path, list[str]]:
    """A folder, and the pictures in it by their paths from there."""
    folder = folder.expanduser()
    if not folder.is_dir():
        raise DataError(f"{what}: {folder} is not a folder; name one that holds photographs")
    if out.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"out: {out} lies in the folder of the {what}; name one outside it")
    return folder, [file.relative_to(folder).as_posix() for file in find_pictures([folder])]
