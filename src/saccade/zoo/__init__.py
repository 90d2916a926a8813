"""What ships with saccade: model folders, a sub-folder each, and pictures to try things with; found without torch.

``hf://USER/NAME`` is a model folder on the hub, ``hf://USER/NAME@REVISION`` a branch, tag or commit of it
(:mod:`saccade.zoo.hub`).

Pictures: ``digits`` is scene 136 of mref and ``clutter`` scene 40 of mdist (test split, shipped glyphs), ``stripes``
picture 2 of details (test split). NOTICE has the source of ``bird``, ``packs/backgrounds/attribution.json`` those of
the other photographs.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path

from saccade.errors import CheckpointError, DataError, nearest, shown_value
from saccade.files import recover
from saccade.models.facts import CONFIG, refuse_foreign
from saccade.zoo.hub import HUB, hub_folder

ZOO = Path(__file__).parent
LEFT_OUT = "left_out.json"  # in a copy without the weights that are for research only: their names


def shipped() -> dict[str, Path]:
    """Name → model folder of every model that comes with saccade."""
    return {file.parent.name: file.parent for file in sorted(ZOO.glob(f"*/{CONFIG}"))}


def left_out() -> dict[str, str]:
    """Name → licence of the models that this copy was built without (``make wheel-open``); none in a full copy."""
    try:
        return dict(json.loads((ZOO / LEFT_OUT).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}


def resolve(name_or_path: str | Path) -> Path:
    """The model folder meant by a zoo name, a model folder, a run folder (its ``model/``) or ``hf://USER/NAME``.

    A zoo name wins over a model in a folder of the same name here, and says so: write ``./name`` for the latter.
    """
    name = str(name_or_path)
    if name.startswith(HUB):
        return hub_folder(name)
    path = Path(name)
    folders = (path, path / "model")
    for folder in folders:
        recover(folder)  # a writer may have been killed while it replaced the folder
    try:
        own = next((folder for folder in folders if (folder / CONFIG).is_file()), None)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror}); 'saccade list' prints all names") from error
    ours = shipped().get(name)
    if ours is not None:
        if own is not None and not own.samefile(ours):
            warnings.warn(f"'{path}' is the shipped model; for the folder of that name write ./{path}", stacklevel=3)
        return ours
    if own is not None:
        return own
    if path.exists():
        if runs := sorted(path.glob("seed-*/config.yaml")):
            raise CheckpointError(f"{path} holds several runs: name one of them, such as {runs[0].parent}")
        if (path / "config.yaml").is_file():
            raise CheckpointError(f"{path}: a run without a model yet; continue with 'saccade train … --resume'")
        refuse_foreign(path)
    if name.startswith(("timm:", "hf:")):
        raise CheckpointError(f"'{name}' comes from another library: only saccade look supports it")
    if name in left_out():
        raise CheckpointError(f"this open copy of saccade was built without '{name}' ({left_out()[name]})")
    known = nearest(name, shipped(), listed_by="saccade list") if shipped() else "no models are shipped with this copy"
    raise CheckpointError(f"no model {shown_value(name)} in the zoo and no such folder: {known}")


_GALLERY = Path(__file__).parents[1] / "data/gallery"
_PHOTOGRAPHS = _GALLERY.parent / "scenes/packs/backgrounds"
_GLYPHS = "MNIST glyphs CC BY-SA 3.0 (LeCun, Cortes, Burges)"


@dataclass(frozen=True)
class ShippedPicture:
    """One picture to try things with."""

    path: Path
    shows: str
    ask: str  # What a model of its kind can be asked; empty: nothing
    credit: str  # Author and licence


EXAMPLES = {
    "digits": ShippedPicture(_GALLERY / "digits.png", "seven coloured digits on black", "7", _GLYPHS),
    "clutter": ShippedPicture(_GALLERY / "clutter.png", "seven coloured digits among bits of others", "7", _GLYPHS),
    "stripes": ShippedPicture(_GALLERY / "stripes.webp", "discs, one with a mark of fine stripes", "", "generated"),
    "bird": ShippedPicture(
        _GALLERY / "bird.png", "a blackbird", "crown", "Childsplay and Tux Paint, GNU GPL, version 2 or later"
    ),
    "cat": ShippedPicture(_PHOTOGRAPHS / "test" / "cat.jpg", "a cat", "", "Stefan van der Walt, CC0 1.0"),
    "coffee": ShippedPicture(
        _PHOTOGRAPHS / "train" / "coffee.jpg",
        "a cup of coffee",
        "",
        "Rachel Michetti, courtesy of Pikolo Espresso Bar, CC0 1.0",
    ),
    "rocket": ShippedPicture(_PHOTOGRAPHS / "val" / "rocket.jpg", "a rocket takes off", "", "SpaceX, public domain"),
}  # by name


def example(name: str = "digits") -> Path:
    """The file of a picture that ships with saccade, such as ``digits``, ``stripes`` or ``cat`` (:data:`EXAMPLES`).

    >>> example("digits").name
    'digits.png'
    """
    for key, picture in EXAMPLES.items():
        if name in (key, picture.path.name):  # with or without its suffix
            return picture.path
    raise DataError(f"no example '{name}': {nearest(str(name), EXAMPLES)}")
