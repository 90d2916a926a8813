"""Splits of labelled pictures: opened for display, and generated ones written to disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from saccade.data.examples import Example, seen_masks
from saccade.data.pictures.export import write_drawn
from saccade.data.pictures.labelled import DrawnSplit
from saccade.data.tables.splits import Split
from saccade.errors import DataError
from saccade.families.classify.data import GENERATORS, LabelData, LabelDataConfig, read_table
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
    """The pictures of a split with their labels, to be looked at; of files at a size to be seen."""
    config = config_of(LabelDataConfig, {**_seen_well(settings, facts), **settings})
    table = read_table(config)
    shown = table if table is None or count is None else table.some(split, count)
    words = None if facts is None else facts.answers
    data = LabelData(config, split, table=shown, classes=words, progress=progress)
    summary = config.remark if table is None else table.summary()
    return OpenedSplit(lambda many: examples(data, many), summary)


def _seen_well(settings: Mapping[str, object], facts: ModelFacts | None = None) -> dict[str, object]:
    """A size at which a person can see pictures, where nobody says one: generated ones have a side of their own."""
    if (drawn := GENERATORS.get(str(settings.get("name", "")))) is not None:
        return {"size": (drawn.side, drawn.side)}
    is_file = ":" in str(settings.get("name", "")) and not LabelDataConfig(name=str(settings["name"])).is_cifar
    return {"size": (224, 224)} if facts is None and is_file else {}


def write_split(
    settings: Mapping[str, object],
    split: Split,
    count: int,
    out: Path,
    *,
    start: int = 0,
    progress: Progress | None = None,
) -> Path:
    """Write generated pictures as PNGs, and ``scenes.jsonl``, which ``jsonl:`` reads again."""
    config = config_of(LabelDataConfig, {**_seen_well(settings), **settings})
    if not config.is_generated:
        raise DataError(f"{config.name} is read, not generated; it cannot be made")
    return write_drawn(DrawnSplit(config.drawn(), split), count, out, start=start, progress=progress)


def examples(data: LabelData, count: int) -> list[Example]:
    """The first ``count`` pictures with their labels."""
    made = data.take(torch.arange(count if data.size is None else min(count, data.size)))
    masks = [()] * len(made) if made.evidence is None else [seen_masks(mask[None]) for mask in made.evidence]
    truths = [data.classes[label] for label in made.label.tolist()]
    return [Example(*each) for each in zip(made.images, truths, masks)]
