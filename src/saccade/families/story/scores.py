"""Scores of models that answer questions about stories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from saccade.families.splits import config_of
from saccade.families.story.data import StoryDataConfig, StorySource
from saccade.families.story.tensors import StoryTensors, sizes_of
from saccade.metrics.columns import Columns, Values
from saccade.metrics.summary import summarise
from saccade.models.story import StoryModel

BATCH = 500
FAILED = 0.95
"""A task with a lower accuracy counts as failed, as in Weston et al. 2015."""


def score_stories(
    model: StoryModel,
    data: Mapping[str, Any],
    split: str,
    *,
    words: Sequence[str],
    limit: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Accuracy in all and for each task."""
    config = config_of(StoryDataConfig, data)
    asked = StorySource(config).questions(split)  # type: ignore[arg-type]
    asked = asked if limit is None else asked[:: max(1, len(asked) // limit)][:limit]
    memory = int(model.config.memory)
    sizes = sizes_of(asked, memory)
    device = next(model.parameters()).device
    tensors = StoryTensors(asked, words, sizes, split=split, device=device, by_word=model.says_words)
    values, columns = Values(), Columns()
    for indices in torch.split(torch.arange(tensors.size), BATCH):
        batch = tensors.take(indices)
        story = torch.nn.functional.pad(batch["story"], (0, 0, 0, memory - batch["story"].shape[1]))  # (B,S,J)
        logits = model.forward_raw(story, batch["query"])["logits"]
        logits = logits if logits.dim() == 3 else logits.unsqueeze(1)  # (B,A,V)
        most = min(logits.shape[1], batch["answer"].shape[1])
        right = (logits.argmax(-1)[:, :most] == batch["answer"][:, :most]).all(1)
        right &= (batch["answer"][:, most:] == 0).all(1)
        values.add_values({"accuracy": right})
        columns.keep(task=batch["task"], number=indices)
        progress(int(indices[-1]) + 1, tensors.size)
    by_task = {
        f"accuracy_{name}": float(values["accuracy"][columns["task"] == number].mean())
        for number, name in enumerate(tensors.task_names)
        if name
    }
    metrics: dict[str, Any] = {**values.means(), **by_task}
    if by_task:
        metrics["mean_error"] = 1 - sum(by_task.values()) / len(by_task)
        metrics["failed_tasks"] = sum(each < FAILED for each in by_task.values())
    return {
        "data": config.name.partition(":")[0],
        "split": split,
        **summarise(n=tensors.size, metrics=metrics, measured=[(values, columns["number"])]),
    }
