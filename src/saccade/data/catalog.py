"""What data there is: one dictionary, importable without torch, behind ``saccade data list``.

A reader or generator that joins the toolkit joins here, or nobody finds it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DataEntry:
    """One data set as users see it."""

    kind: Literal["generator", "reader"]
    description: str
    task: str
    splits: tuple[str, ...]
    licence: str
    get: str
    """How to come by it."""
    download: str | None = None
    """Name to pass to ``saccade data get``, where there is something to fetch."""


DATA: dict[str, DataEntry] = {
    "mref": DataEntry(
        kind="generator",
        description="5 to 9 coloured MNIST digits on black, 100 × 100; which colour has the digit asked for?",
        task="attribute",
        splits=("train", "val", "test"),
        licence="generator Apache-2.0; MNIST glyphs CC BY-SA 3.0 (LeCun, Cortes, Burges)",
        get="made on the fly; training on MNIST's own glyphs needs `saccade data get mnist`",
        download="mnist",
    ),
    "mdist": DataEntry(
        kind="generator",
        description="the scenes of mref with 17 coloured bits of digits behind them as distractors",
        task="attribute",
        splits=("train", "val", "test"),
        licence="generator Apache-2.0; MNIST glyphs CC BY-SA 3.0 (LeCun, Cortes, Burges)",
        get="made on the fly; training on MNIST's own glyphs needs `saccade data get mnist`",
        download="mnist",
    ),
    "mbg": DataEntry(
        kind="generator",
        description="the scenes of mref with photographs behind them",
        task="attribute",
        splits=("train", "val", "test"),
        licence="as mref; photographs: yours, or the nine that ship (CC0, public domain, CC BY 2.0)",
        get="made on the fly; put photographs into backgrounds/ of the cache, or set data.backgrounds=FOLDER",
        download="mnist",
    ),
}
