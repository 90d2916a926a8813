"""Causal sets of questions about scenes: which scenes are drawn. ``readers.py`` reads them as a table.

The folder and what is in it are those of :mod:`saccade.data.causal`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from saccade.config import Seed
from saccade.data.causal import CausalFacts
from saccade.data.causal.writing import causal_batches, write_set
from saccade.data.examples import SPLITS, Split
from saccade.data.pictures.labelled import check_request
from saccade.data.scenes import LICENCE
from saccade.data.scenes.drawing import COLOURS, Drawing
from saccade.data.scenes.glyphs import GlyphPolicy, glyphs_for
from saccade.data.scenes.hashing import derive_seed
from saccade.data.scenes.layout import other_background
from saccade.families.question.scenes import SceneDataConfig, SceneName

_STREAM = 107  # of scenes, beside those of training, validation and test
_PHOTOGRAPHS = "; photographs: those of the background, see NOTICE for the ones that ship with saccade"


@dataclass(frozen=True)
class CausalConfig:
    """Which scenes a causal set has."""

    name: Literal["causal"] = "causal"
    scenes: SceneName = "mref"
    glyphs: GlyphPolicy = "pack"
    """Which digits. By default those that ship with saccade, so that everyone can draw the set offline."""
    backgrounds: str | None = None
    """Folder of photographs for mbg."""
    drawing: Drawing = "blend"
    seed: Seed = 0


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
    spec = SceneDataConfig(config.scenes, config.glyphs, config.backgrounds, config.drawing).spec(split)
    glyphs = glyphs_for(split, config.glyphs)
    facts = CausalFacts(
        scenes=config.scenes,
        split=split,
        seed=config.seed,
        start=start,
        glyphs=glyphs.name,
        drawing=config.drawing,
        background=spec.background.name,
        other_background=other_background(spec.background, config.drawing).name,
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
