"""Scores of models that answer questions about stories: answers, task by task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from saccade.families.splits import config_of
from saccade.families.story.data import StoryDataConfig, StorySource
from saccade.families.story.stories import Asked
from saccade.families.story.tensors import StoryTensors, sizes_of
from saccade.metrics.columns import Columns, Values
from saccade.metrics.intervals import bootstrap
from saccade.metrics.summary import summarise
from saccade.models.base import Raw
from saccade.models.story import StoryModel

BATCH = 500
FAILED = 0.05
"""A task with a larger error counts as failed, as in Weston et al. 2015."""

Progress = Callable[[int, int], None]


def score_stories(
    model: StoryModel,
    data: Mapping[str, Any],
    split: str,
    *,
    words: Sequence[str],
    limit: int | None = None,
    progress: Progress = lambda done, total: None,
) -> dict[str, Any]:
    """Every score of a model on a split, as plain numbers."""
    config = config_of(StoryDataConfig, data)
    scores = StoryScores()
    scores.add(model, scored_questions(model, config, split, words=words, limit=limit), progress)
    return {"data": config.name.partition(":")[0], "split": split, **scores.summary()}


# ---------------------------------------------------------------- questions and answers


def scored_questions(
    model: StoryModel, config: StoryDataConfig, split: str, *, words: Sequence[str], limit: int | None = None
) -> StoryTensors:
    """The questions that a model is scored on, as wide as its memory; of more than ``limit``, evenly spread ones."""
    asked = StorySource(config).questions(split)  # type: ignore[arg-type]
    asked = asked if limit is None else asked[:: max(1, len(asked) // limit)][:limit]
    return as_tensors(model, asked, words, split)


def as_tensors(model: StoryModel, asked: Sequence[Asked], words: Sequence[str], split: str = "test") -> StoryTensors:
    """Questions on the device of the model, in its words."""
    device = next(model.parameters()).device
    sizes = sizes_of(asked, int(model.config.memory))
    return StoryTensors(asked, words, sizes, split=split, device=device, by_word=model.says_words)


def batches(tensors: StoryTensors) -> Sequence[Tensor]:
    """Numbers of the questions, batch by batch."""
    return torch.split(torch.arange(tensors.size), BATCH)


def respond(model: StoryModel, batch: Mapping[str, Tensor]) -> Raw:
    """What the model computes for a batch; stories are padded to the slots of its memory."""
    empty = int(model.config.memory) - batch["story"].shape[1]
    return model.forward_raw(torch.nn.functional.pad(batch["story"], (0, 0, 0, empty)), batch["query"])


def said(raw: Raw) -> Tensor:
    """Ids of the words that were said: (B,A), A = 1 for one entry of the vocabulary."""
    logits = raw["logits"]
    return logits.argmax(-1) if logits.dim() == 3 else logits.argmax(-1, keepdim=True)


def is_right(spoken: Tensor, answer: Tensor) -> Tensor:
    """Whether the words that were said (B,A) are those of the answer (B,A'): (B,). Word 0 ends an answer."""
    most = min(spoken.shape[1], answer.shape[1])
    same = (spoken[:, :most] == answer[:, :most]).all(1)
    return same & (spoken[:, most:] == 0).all(1) & (answer[:, most:] == 0).all(1)


@torch.no_grad()
def errors_by_task(model: StoryModel, tensors: StoryTensors) -> dict[str, float]:
    """The share of wrong answers in each task."""
    right = torch.cat([
        is_right(said(respond(model, batch)), batch["answer"])
        for batch in map(tensors.take, batches(tensors))
    ])  # fmt: skip
    wrong, names = (~right).double(), tensors.task_names
    return {name: float(wrong[tensors.task == number].mean()) for number, name in enumerate(names)}


def story_numbers(asked: Sequence[Asked]) -> Tensor:
    """Which story each question is about (N,). It is that of the question before if it goes on with its sentences."""
    numbers = [0] if asked else []
    for before, each in pairwise(asked):
        goes_on = before.task == each.task and each.sentences[: len(before.sentences)] == before.sentences
        numbers.append(numbers[-1] + (not goes_on))
    return torch.tensor(numbers, dtype=torch.long)


# ---------------------------------------------------------------- the scores


class StoryScores:
    """Scores of one model, or of one model for each task, on all of their questions together."""

    def __init__(self) -> None:
        self.values, self.columns = Values(), Columns()
        self.tasks: list[str] = []
        self._stories = 0

    @torch.no_grad()
    def add(self, model: StoryModel, tensors: StoryTensors, progress: Progress = lambda done, total: None) -> None:
        """Score the questions of ``tensors``."""
        self.tasks += [name for name in tensors.task_names if name not in self.tasks]
        place = torch.tensor([self.tasks.index(name) for name in tensors.task_names])
        stories = story_numbers(tensors.asked) + self._stories
        self._stories = int(stories.max()) + 1
        for indices in batches(tensors):
            batch = tensors.take(indices)
            raw = respond(model, batch)
            self.values.add_values({"accuracy": is_right(said(raw), batch["answer"])})
            self.columns.keep(task=place[batch["task"].cpu()], story=stories[indices])
            progress(int(indices[-1]) + 1, tensors.size)

    def summary(self) -> dict[str, Any]:
        """Plain numbers, with intervals from resampling stories."""
        right, task, story = self.values["accuracy"], self.columns["task"], self.columns["story"]
        metrics: dict[str, Any] = self.values.means()
        intervals, counts = {}, {}
        for number, name in enumerate(self.tasks):
            own = task == number
            if name:
                held = bootstrap(right[own], story[own])
                metrics[f"accuracy_{name}"], intervals[f"accuracy_{name}"] = held.mean, held
                counts[f"accuracy_{name}"] = held.n
        if intervals:
            shares = torch.bincount(task, minlength=len(self.tasks)).double()  # (T,) questions of each task
            even = len(right) / (len(self.tasks) * shares[task])  # (N,): every task counts alike
            held = bootstrap((1 - right) * even, story)
            metrics["mean_error"], intervals["mean_error"] = held.mean, held
            metrics["failed_tasks"] = sum(1 - metrics[f"accuracy_{name}"] > FAILED for name in self.tasks)
        measured = [(self.values, story)]
        return summarise(n=len(right), metrics=metrics, measured=measured, intervals=intervals, counts=counts)
