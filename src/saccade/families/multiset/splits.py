"""Splits of multiset data: opened for display, and generated scenes written to disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from saccade.data.examples import Example, seen_masks
from saccade.data.pictures.export import check_request
from saccade.data.scenes.export import write_stream
from saccade.data.scenes.glyphs import pack_if_missing
from saccade.data.scenes.layout import Layout
from saccade.data.tables.references import read_reference
from saccade.data.tables.splits import Split
from saccade.errors import DataError
from saccade.families.multiset.data import MultisetData, MultisetDataConfig, MultisetScenes
from saccade.families.multiset.readers import MULTISET_READERS
from saccade.families.splits import OpenedSplit, Progress, config_of
from saccade.models.facts import ModelFacts


def open_split(
    settings: Mapping[str, Any],
    split: Split,
    *,
    facts: ModelFacts | None = None,
    count: int | None = None,
    progress: Progress | None = None,
) -> OpenedSplit:
    """Generated scenes, or the pictures of a table; for a model's own look, scenes do without MNIST."""
    config = config_of(MultisetDataConfig, settings)
    words: dict[str, Any] = {} if facts is None else {"classes": facts.answers}
    if config.is_generated:
        settings, remark = (settings, "") if facts is None else pack_if_missing(settings, split)
        config = config_of(MultisetDataConfig, settings)
        scenes = MultisetData(config, split, allow_pack=True, **words)
        return OpenedSplit(lambda many: examples(scenes, many), remark)
    table = read_reference(config.name, MULTISET_READERS, config.options)
    shown = table if count is None else table.first(split, count)
    data = MultisetData(config, split, table=shown, progress=progress, **words)
    return OpenedSplit(lambda many: examples(data, many), table.summary())


def write_split(
    settings: Mapping[str, object],
    split: Split,
    count: int,
    out: Path,
    *,
    start: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write scenes as PNGs and ``scenes.jsonl``, which ``jsonl:`` reads again.

    Each line holds image, labels and boxes in reading order, seed, split, index and glyphs.
    """
    config = config_of(MultisetDataConfig, settings)
    if not config.is_generated:
        raise DataError(f"{config.name} is read, not generated; it cannot be made")
    check_request(count, start, out)
    scenes = MultisetScenes(config, split, torch.device("cpu"), allow_pack=True)

    def facts(layout: Layout, scene: int, file: str) -> dict[str, object]:
        present = layout.present[scene]
        labels = [scenes.answers[label] for label in layout.classes[scene][present].tolist()]
        named = {"image": file, "labels": labels, "boxes": layout.boxes[scene][present].tolist()}
        index = int(layout.index[scene])
        return {**named, "seed": config.seed, "split": split, "index": index, "glyphs": scenes.glyphs.name}

    what = f"{config.name} {split}"
    return write_stream(scenes.stream, facts, what, range(start, start + count), Path(out), progress)


def examples(data: MultisetData, count: int) -> list[Example]:
    """The first ``count`` pictures with their labels."""
    batch = data.take(torch.arange(count if data.size is None else min(count, data.size)))
    words = [[data.classes[label] for label in row if label >= 0] for row in batch.labels.tolist()]
    truths = [", ".join(said) if data.kind == "list" else f"{{{', '.join(sorted(said))}}}" for said in words]
    return [Example(*each) for each in zip(batch.images, truths, map(seen_masks, batch.masks()))]
