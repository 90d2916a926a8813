"""Questions as the tensors of a model, what it computes for them, and the words that it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from saccade.families.story.stories import StoryExample
from saccade.families.story.tensors import StoryTensors, sizes_of
from saccade.models.base import Given, Raw, attention_kwargs
from saccade.models.story import StoryModel

BATCH = 500
PART = 50
"""Stories of like length that a model reads together if it reads from sentence to sentence."""
BAGS = ("bags", "query_bags")


def as_tensors(
    model: StoryModel, asked: Sequence[StoryExample], words: Sequence[str], split: str = "test"
) -> StoryTensors:
    """Questions on the device of the model, in its words."""
    device = next(model.parameters()).device
    sizes = sizes_of(asked, int(model.config.memory))
    return StoryTensors(asked, words, sizes, split=split, device=device, by_word=model.answers_word_by_word)


def batches(tensors: StoryTensors) -> Sequence[Tensor]:
    """Numbers of the questions, batch by batch."""
    return torch.split(torch.arange(tensors.size), BATCH)


def batch_for(model: StoryModel, tensors: StoryTensors, indices: Tensor) -> dict[str, Tensor]:
    """Questions ``indices`` (B,), their stories with as many slots as the memory of the model has.

    A model that reads bags of words gets them: every sentence is made into one only once.
    """
    batch = tensors.take(indices)
    empty = int(model.config.memory) - batch["story"].shape[1]
    batch["story"] = torch.nn.functional.pad(batch["story"], (0, 0, 0, empty))  # (B,S,J)
    if BAGS[0] in model.training_inputs:
        bags, of_query = (tensors.bags(batch[which], model.bags) for which in ("rows", "query_row"))
        batch |= {BAGS[0]: torch.nn.functional.pad(bags, (0, 0, 0, empty)), BAGS[1]: of_query}  # (B,S,W), (B,W)
    return batch


def respond(model: StoryModel, batch: Mapping[str, Tensor], attention: Given | None = None) -> Raw:
    """What the model computes for a batch of :func:`batch_for`, perhaps with weights that are given."""
    if model.slots_include_past and len(batch["story"]) > PART:
        return _by_length(model, batch, attention)
    options: dict[str, Any] = {name: batch[name] for name in BAGS if name in batch}
    return model.forward_raw(batch["story"], batch["query"], **options, **attention_kwargs(attention))


def _by_length(model: StoryModel, batch: Mapping[str, Tensor], attention: Given | None) -> Raw:
    """The same, stories of like length together and without the slots that they leave empty.

    A model whose facts carry the past reads from sentence to sentence, and empty slots are nothing to it. Stories of
    task 3 have 4 to 228 sentences, so most of a batch would be empty slots.
    """
    story, query = batch["story"], batch["query"]
    slots = story.shape[1]
    length = ((story != 0).any(-1) * torch.arange(1, slots + 1, device=story.device)).amax(1)  # (B,)
    order = length.argsort()
    parts = []
    for chosen in torch.split(order, PART):
        most = max(1, int(length[chosen[-1]]))
        given = None if attention is None else {name: each[chosen, : most + 1] for name, each in attention.items()}
        options: dict[str, Any] = {}
        if "rows" in model.training_inputs:
            options = {"rows": batch["rows"][chosen, :most], "query_row": batch["query_row"][chosen]}
        raw = model.forward_raw(story[chosen, :most], query[chosen], **options, **attention_kwargs(given))
        parts.append({name: _with_empty(name, each, slots - most) for name, each in raw.items()})
    back = order.argsort()
    return {name: torch.cat([part[name] for part in parts])[back] for name in parts[0]}


def _with_empty(name: str, values: Tensor, empty: int) -> Tensor:
    """Weights and scores of looks (B,S'+1) with the empty slots that were left out (B,S+1); others as they are."""
    fill = {"weights": 0.0, "scores": -torch.inf}.get(name.rpartition(".")[2])
    return values if fill is None else torch.nn.functional.pad(values, (0, empty), value=fill)


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
    found = []
    for indices in batches(tensors):
        batch = batch_for(model, tensors, indices)
        found.append(is_right(said(respond(model, batch)), batch["answer"]))
    wrong = (~torch.cat(found)).double()  # (N,)
    return {name: float(wrong[tensors.task == number].mean()) for number, name in enumerate(tensors.task_names)}
