"""Causal sets of questions about scenes: which scenes are drawn. ``readers.py`` reads them as a table.

The folder and what is in it are those of :mod:`saccade.data.causal`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from saccade.config import Seed
from saccade.data.causal.truth import CausalFacts
from saccade.data.causal.writing import causal_batches, write_set
from saccade.data.pictures.export import check_request
from saccade.data.scenes import LICENCE
from saccade.data.scenes.drawing import COLOURS, Drawing
from saccade.data.scenes.glyphs import GlyphPolicy, glyphs_for
from saccade.data.scenes.hashing import derive_seed
from saccade.data.scenes.twins import other_background
from saccade.data.tables.splits import SPLITS, Split
from saccade.errors import ConfigError, nearest
from saccade.families.question.readers import CAUSAL
from saccade.families.question.scenes.data import BACKGROUNDS, SPECS, SceneDataConfig

_STREAM = 107  # of scenes, beside those of training, validation and test
_PHOTOGRAPHS = "; photographs: those of the background, see NOTICE for the ones that ship with saccade"


@dataclass(frozen=True)
class CausalConfig:
    """Which scenes a causal set has."""

    name: str = CAUSAL
    scenes: str = "mref"
    """mref, mdist or mbg."""
    glyphs: GlyphPolicy = "pack"
    """Which digits. By default those that ship with saccade, so that everyone can draw the set offline."""
    backgrounds: str | None = None
    """Folder of photographs for mbg."""
    drawing: Drawing = "blend"
    seed: Seed = 0

    def __post_init__(self) -> None:
        if self.scenes not in SPECS:
            raise ConfigError(f"scenes: found '{self.scenes}'; {nearest(self.scenes, SPECS)}")
        SceneDataConfig(self.scenes, self.glyphs, self.backgrounds, self.drawing, seed=self.seed)  # checks the others


def write_causal(
    config: CausalConfig,
    split: Split,
    count: int,
    out: Path,
    *,
    start: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the first ``count`` usable scenes from number ``start`` on, with their twins; returns the folder."""
    check_request(count, start, out)
    of_scenes = SceneDataConfig(config.scenes, config.glyphs, config.backgrounds, config.drawing)
    background = BACKGROUNDS[config.scenes](of_scenes, split)
    spec = replace(SPECS[config.scenes], background=background, drawing=config.drawing)
    glyphs = glyphs_for(split, config.glyphs)
    facts = CausalFacts(
        scenes=config.scenes,
        split=split,
        seed=config.seed,
        start=start,
        glyphs=glyphs.name,
        drawing=config.drawing,
        background=background.name,
        other_background=other_background(background, config.drawing).name,
        count=count,
        last=start,
        digest="",
        licence=LICENCE + (_PHOTOGRAPHS if config.scenes == "mbg" else ""),
        size=spec.size,
        answers=COLOURS,
    )
    stream = derive_seed(config.seed, _STREAM, SPLITS.index(split))
    write_set(causal_batches(spec, glyphs, stream, start, count), facts, out, progress)
    return out
