"""Pictures to try things with: three generated ones and three photographs, shipped with saccade.

The scenes lie here: ``digits`` is scene 136 of mref and ``clutter`` scene 40 of mdist (test split, shipped glyphs),
``stripes`` picture 2 of details (test split). The photographs are among those that ship as backgrounds;
``packs/backgrounds/attribution.json`` has their sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from saccade.errors import DataError, nearest

_HERE = Path(__file__).parent
_PHOTOGRAPHS = _HERE.parent / "scenes/packs/backgrounds"
_GLYPHS = "MNIST glyphs CC BY-SA 3.0 (LeCun, Cortes, Burges)"


@dataclass(frozen=True)
class ShippedPicture:
    """One picture to try things with."""

    path: Path
    shows: str
    # What a model of its kind can be asked; empty for a photograph.
    ask: str
    # Author and licence.
    credit: str


# By name.
EXAMPLES = {
    "digits": ShippedPicture(_HERE / "digits.png", "seven coloured digits on black", "7", _GLYPHS),
    "clutter": ShippedPicture(_HERE / "clutter.png", "seven coloured digits among bits of others", "7", _GLYPHS),
    "stripes": ShippedPicture(_HERE / "stripes.webp", "discs, one with a mark of fine stripes", "", "generated"),
    "cat": ShippedPicture(_PHOTOGRAPHS / "test" / "cat.jpg", "a cat", "", "Stefan van der Walt, CC0 1.0"),
    "coffee": ShippedPicture(
        _PHOTOGRAPHS / "train" / "coffee.jpg",
        "a cup of coffee",
        "",
        "Rachel Michetti, courtesy of Pikolo Espresso Bar, CC0 1.0",
    ),
    "rocket": ShippedPicture(_PHOTOGRAPHS / "val" / "rocket.jpg", "a rocket takes off", "", "SpaceX, public domain"),
}


def example(name: str = "digits") -> Path:
    """The file of a picture that ships with saccade, such as ``digits``, ``stripes`` or ``cat`` (:data:`EXAMPLES`).

    Args:
        name: with or without its suffix.

    Raises:
        DataError: no such picture; the message names those that there are.

    >>> example("digits").name
    'digits.png'
    """
    found = next((each for key, each in EXAMPLES.items() if name in (key, each.path.name)), None)
    if found is None:
        raise DataError(f"no example '{name}': {nearest(str(name), EXAMPLES)}")
    return found.path
