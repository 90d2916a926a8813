"""Splits of captioned data: opened for display, and generated scenes written to disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from saccade.data.examples import Example, seen_masks
from saccade.data.pictures.export import check_request
from saccade.data.scenes.export import object_facts, write_stream
from saccade.data.scenes.glyphs import pack_if_missing
from saccade.data.scenes.layout import SceneLayout
from saccade.data.tables.references import read_reference
from saccade.data.tables.splits import Split
from saccade.errors import DataError
from saccade.families.caption.data import CaptionData, CaptionDataConfig, CaptionScenes, vocabulary_of
from saccade.families.caption.published import CAPTION_READERS
from saccade.families.caption.scenes import SCENE_VOCABULARY
from saccade.families.caption.table import summary_of
from saccade.families.caption.vocabulary import Vocabulary
from saccade.families.splits import OpenedSplit, Progress, config_of
from saccade.models.facts import ModelFacts


def open_split(
    settings: Mapping[str, object],
    split: Split,
    *,
    facts: ModelFacts | None = None,
    count: int | None = None,
    progress: Progress | None = None,
) -> OpenedSplit:
    """Generated scenes, or the captions of a table; for a model's own look, scenes do without MNIST."""
    config = config_of(CaptionDataConfig, settings)
    words = None if facts is None else Vocabulary.of_model(facts.answers)
    if config.is_generated:
        settings, remark = (settings, "") if facts is None else pack_if_missing(settings, split)
        config = config_of(CaptionDataConfig, settings)
        scenes = CaptionData(config, split, vocabulary=words, allow_pack=True)
        return OpenedSplit(lambda many: examples(scenes, many), remark)
    table = read_reference(config.name, CAPTION_READERS, config.options)
    if words is None:
        config = (
            config if "at_least" in settings else replace(config, at_least=1)
        )  # a short table has no frequent words
        words = vocabulary_of(table, config)
    shown = table if count is None else table.first(split, count)
    data = CaptionData(config, split, vocabulary=words, table=shown, progress=progress)
    return OpenedSplit(lambda many: examples(data, many), summary_of(table, len(words.words)))


def write_split(
    settings: Mapping[str, object],
    split: Split,
    count: int,
    out: Path,
    *,
    start: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write captioned scenes as PNGs and ``scenes.jsonl``, which ``jsonl:`` reads again.

    Each line holds image, caption, seed, split, index, glyphs and objects in the order in which they are named.
    """
    config = config_of(CaptionDataConfig, settings)
    if not config.is_generated:
        raise DataError(f"{config.name} is read, not generated; it cannot be made")
    check_request(count, start, out)
    scenes = CaptionScenes(config, split, torch.device("cpu"), SCENE_VOCABULARY, allow_pack=True)

    def facts(layout: SceneLayout, scene: int, file: str) -> dict[str, object]:
        words = scenes.grammar.describe(layout[scene : scene + 1]).words[0].tolist()
        named = {"image": file, "caption": SCENE_VOCABULARY.decode(words), "seed": config.seed, "split": split}
        index = int(layout.index[scene])
        return {**named, "index": index, "glyphs": scenes.glyphs.name, "objects": object_facts(layout, scene)}

    what = f"{config.name} {split}"
    return write_stream(scenes.stream, facts, what, range(start, start + count), Path(out), progress)


def examples(data: CaptionData, count: int) -> list[Example]:
    """The first ``count`` pictures, each with its first caption."""
    size = data.picture_count
    numbers = torch.arange(count if size is None else min(count, size))
    batch = data.pictures(numbers)
    truths = [data.references(number)[0] for number in numbers.tolist()]
    masks = [()] * len(truths) if batch.layout is None else [seen_masks(each) for each in batch.layout.masks()]
    return [Example(*each) for each in zip(batch.images, truths, masks)]
