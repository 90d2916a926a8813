"""Splits of question data: opened for display, and generated scenes written to disk.

Causal sets of questions about scenes: which scenes are drawn. ``readers.py`` reads them as a table.

The folder and what is in it are those of :mod:`saccade.data.causal`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from saccade.config import Seed
from saccade.data.causal.scenes import causal_batches
from saccade.data.causal.truth import CausalFacts
from saccade.data.causal.writing import write_set
from saccade.data.examples import Example, seen_masks
from saccade.data.pictures.export import check_request
from saccade.data.scenes import LICENCE
from saccade.data.scenes.drawing import COLOURS, Drawing, drawing_of
from saccade.data.scenes.export import object_facts, write_stream
from saccade.data.scenes.glyphs import GlyphPolicy, glyphs_for, pack_if_missing
from saccade.data.scenes.hashing import derive_seed
from saccade.data.scenes.layout import SceneLayout
from saccade.data.scenes.twins import other_background
from saccade.data.tables.references import read_reference
from saccade.data.tables.splits import SPLITS, Split
from saccade.errors import ConfigError, DataError, nearest
from saccade.families.question.readers import CAUSAL, READERS
from saccade.families.question.scenes.data import BACKGROUNDS, SPECS, SceneData, SceneDataConfig
from saccade.families.question.tables.data import TableData, TableDataConfig
from saccade.families.splits import OpenedSplit, Progress, config_of
from saccade.models.facts import ModelFacts

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


def open_split(
    settings: Mapping[str, Any],
    split: Split,
    *,
    facts: ModelFacts | None = None,
    count: int | None = None,
    progress: Progress | None = None,
) -> OpenedSplit:
    """Generated scenes, or the questions of a table; for a model's own look, scenes do without MNIST."""
    if settings["name"] in SPECS:
        settings, remark = (settings, "") if facts is None else pack_if_missing(settings, split)
        scenes = SceneData(config_of(SceneDataConfig, settings), split, allow_pack=True)
        return OpenedSplit(lambda many: scene_examples(scenes, many), remark)
    if settings["name"] == CAUSAL:
        raise DataError("'causal' is drawn by `saccade data make causal --out DIR`; then name it causal:DIR")
    config = config_of(TableDataConfig, settings)
    table = read_reference(config.name, READERS, config.options)
    words: dict[str, Any] = {} if facts is None else {"queries": facts.queries, "answers": facts.answers}
    shown = table if count is None else table.first(split, count)
    data = TableData(config, split, table=shown, progress=progress, **words)
    return OpenedSplit(lambda many: table_examples(data, many), table.summary())


def write_split(
    settings: Mapping[str, object],
    split: Split,
    count: int,
    out: Path,
    *,
    start: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write scenes as PNGs and ``scenes.jsonl``.

    Each line holds file, seed, split, index, glyphs, background, drawing and objects (class, colour, rgb, box, scale).
    A causal set has a folder of its own kind, see :mod:`saccade.data.causal`.
    """
    if settings["name"] == CAUSAL:
        return write_causal(config_of(CausalConfig, settings), split, count, Path(out), start=start, progress=progress)
    if settings["name"] not in SPECS:
        raise DataError(f"{settings['name']} is read, not generated; it cannot be made")
    check_request(count, start, out)
    config = config_of(SceneDataConfig, settings)
    stream = SceneData(config, split, allow_pack=True).stream
    material = {"glyphs": stream.glyphs.name, "background": stream.spec.background.name}

    def facts(layout: SceneLayout, scene: int, file: str) -> dict[str, object]:
        index = int(layout.index[scene])
        named = {"file": file, "seed": config.seed, "split": split, "index": index}
        return {
            **named,
            **material,
            "drawing": drawing_of(config.drawing, index),
            "objects": object_facts(layout, scene),
        }

    what = f"{config.name} {split} ({config.protocol})"
    return write_stream(stream, facts, what, range(start, start + count), Path(out), progress)


def scene_examples(data: SceneData, count: int) -> list[Example]:
    """The first ``count`` scenes, each with its first question."""
    batch = data.take(data.one_per_scene(count))
    asked = zip(batch.query.tolist(), batch.label.tolist())
    return [
        Example(image, data.answers[label], seen_masks(mask[None]), data.queries[query])
        for image, mask, (query, label) in zip(batch.images, batch.evidence(), asked)
    ]


def table_examples(data: TableData, count: int) -> list[Example]:
    """The first ``count`` pictures, each with its first question."""
    numbers = data.one_per_picture(count)
    batch = data.take(numbers)
    rows = [data.rows[number] for number in numbers.tolist()]
    return [
        Example(image, ", ".join(row.labels), seen_masks(mask[None]), row.query)
        for image, mask, row in zip(batch.images, batch.evidence(), rows)
    ]
