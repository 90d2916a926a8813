"""Splits of question data: opened for display, and generated scenes written to disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from saccade.data.examples import Example, seen_masks
from saccade.data.pictures.export import check_request
from saccade.data.scenes.drawing import drawing_of
from saccade.data.scenes.export import object_facts, write_stream
from saccade.data.scenes.glyphs import pack_if_missing
from saccade.data.scenes.layout import SceneLayout
from saccade.data.tables.splits import Split
from saccade.errors import DataError
from saccade.families.question.readers import read_questions
from saccade.families.question.scenes.causal_set import CausalConfig, write_causal
from saccade.families.question.scenes.data import SPECS, SceneData, SceneDataConfig
from saccade.families.question.tables.causal_table import CAUSAL
from saccade.families.question.tables.data import TableData, TableDataConfig
from saccade.families.splits import OpenedSplit, Progress, config_of
from saccade.models.io.facts import ModelFacts


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
    table = read_questions(config.name, config.options)
    words: dict[str, Any] = {} if facts is None else {"queries": facts.queries, "answers": facts.answers}
    shown = table if count is None else table.some(split, count)
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
