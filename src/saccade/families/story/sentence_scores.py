"""Answers of a story model and the weights of its sentences: how they are drawn, rated and asked for.

The looks of a model at the sentences of a story, as tensors of one form for every model.

A memory network may look at slots that hold no sentence, a dynamic memory network at an end-of-passes fact. What lies
on these is put together into one last column, so weights are (B,S+1) with S slots of sentences.

A sample of the questions of a split: whole stories, drawn by a hash, with the share of each task kept.

Questions about one story lie side by side in a file, and the later ones of a story are harder. So neither the first
questions of a file nor every k-th one are a fair sample.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.families.story.stories import StoryExample
from saccade.families.story.tensors import StoryTensors, sizes_of
from saccade.metrics import slots
from saccade.models.base import Given, attention_kwargs
from saccade.models.story import StoryModel
from saccade.trace import ModelOutput, joined


@dataclass(frozen=True)
class SentenceWeights:
    """The looks at a batch of stories."""

    looks: dict[str, Tensor]
    """By the name of the look: weights (B,S+1); slots without a sentence have 0, and the last column their weight."""
    active: dict[str, Tensor]
    """By the name of the look: (B,) whether it took place, and did not choose the end of the passes."""
    present: Tensor
    """(B,S) which slots hold a sentence."""
    has_end: bool
    """Whether what lies on no sentence lies on an end-of-passes fact, and not on empty slots."""

    @property
    def total(self) -> Tensor:
        """The mean over the looks that took place (B,S+1)."""
        count = torch.stack(list(self.active.values())).sum(0).clamp(min=1)  # (B,)
        added = sum(weights * self.active[name].unsqueeze(1) for name, weights in self.looks.items())
        return torch.as_tensor(added) / count.unsqueeze(1)


def sentence_weights(model: StoryModel, raw: ModelOutput, story: Tensor) -> SentenceWeights | None:
    """The looks at stories (B,S,J) in a result of ``forward_raw``, on the CPU; None for a model that does not look."""
    present = (story != 0).any(-1).cpu()  # (B,S)
    size = present.shape[1]
    looks, active, has_end = {}, {}, False
    for look in model.looks(raw):
        if look.weights is None:
            continue
        weights = look.weights.cpu().double()  # (B,S) or, with an end-of-passes fact, (B,S+1)
        has_end |= weights.shape[1] > size
        held = weights[:, :size] * present
        looks[look.name] = torch.cat([held, (weights.sum(1) - held.sum(1)).clamp(min=0).unsqueeze(1)], 1)
        took_place = torch.ones(len(weights), dtype=torch.bool) if look.active is None else look.active.bool().cpu()
        chose_end = weights.shape[1] > size and look.norm == "softmax"  # a pass that chooses the end looks no more
        active[look.name] = took_place & (looks[look.name].argmax(1) < size) if chose_end else took_place
    return SentenceWeights(looks, active, present, has_end) if looks else None


RIVALS = ("recency", "uniform", "word_overlap")


def rival_maps(batch: Mapping[str, Tensor]) -> dict[str, SentenceWeights]:
    """One look of each rival at the ``story`` (B,S,J) of a batch for its ``query`` (B,Q), with no weight elsewhere."""
    story, query = batch["story"].cpu(), batch["query"].cpu()
    present = (story != 0).any(-1)  # (B,S)
    maps = dict(zip(RIVALS, (slots.recency(present), slots.uniform(present), slots.word_overlap(story, query))))
    always = torch.ones(len(present), dtype=torch.bool)
    weights = {name: torch.nn.functional.pad(each.nan_to_num(), (0, 1)) for name, each in maps.items()}  # (B,S+1)
    return {name: SentenceWeights({name: each}, {name: always}, present, False) for name, each in weights.items()}


def story_numbers(asked: Sequence[StoryExample]) -> Tensor:
    """Which story each question is about (N,). It is that of the question before if it goes on with its sentences."""
    is_new = [not each.goes_on(before) for before, each in pairwise(asked)]
    return torch.tensor([False, *is_new][: len(asked)], dtype=torch.long).cumsum(0)


def sample_questions(asked: Sequence[StoryExample], limit: int, seed: int = 0) -> list[StoryExample]:
    """At most ``limit`` questions, in their order.

    Every task gets its share of them. Within a task, stories are taken in the order of a hash of seed, task and the
    number of the story. Of the last story that is taken there may be room for some questions only; a hash says which.
    """
    if limit >= len(asked):
        return list(asked)
    numbers = story_numbers(asked).tolist()
    places: dict[str, list[int]] = {}
    for place, each in enumerate(asked):
        places.setdefault(each.task, []).append(place)
    exact = {task: limit * len(own) / len(asked) for task, own in places.items()}
    shares = {task: int(share) for task, share in exact.items()}
    left = limit - sum(shares.values())
    for task in sorted(places, key=lambda task: (shares[task] - exact[task], _hash(seed, task)))[:left]:
        shares[task] += 1
    kept: list[int] = []
    for task, own in places.items():
        keys = {}
        for number, place in enumerate(own):
            story = numbers[place] - numbers[own[0]]  # the same whichever tasks are asked beside this one
            keys[place] = (_hash(seed, task, story), _hash(seed, task, story, number))
        kept += sorted(own, key=keys.__getitem__)[: shares[task]]
    return [asked[place] for place in sorted(kept)]


def _hash(*parts: object) -> bytes:
    text = "\n".join(map(str, parts))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


SCORES = {
    "support_hit": slots.support_hit, "support_rank": slots.support_rank, "support_mass": slots.support_mass
}  # fmt: skip
RANDOM = "random_looks"
"""The rival with as many looks as the model made, each at one sentence drawn at random."""


class LookScores(NamedTuple):
    """Scores of the looks at a batch, (B,) each."""

    total: dict[str, Tensor]
    """Of all looks together."""
    by_look: dict[str, dict[str, Tensor]]
    rivals: dict[str, dict[str, Tensor]]
    """Of maps that need no model."""


def look_scores(seen: SentenceWeights, batch: Mapping[str, Tensor]) -> LookScores:
    """Score the looks at a batch. What lies on no sentence lies on empty slots, or on the end-of-passes fact.

    Args:
        seen: the looks.
        batch: its ``story`` (B,S,J), ``query`` (B,Q) and slots of ``supporting`` facts (B,F), −1 for none.
    """
    present = seen.present
    facts = supporting_slots(batch["supporting"].cpu(), present)  # (B,S) bool
    on_sentences = torch.nn.functional.pad(present, (0, 1))  # (B,S+1)
    elsewhere = "end_mass" if seen.has_end else "empty_mass"

    def scores_of(weights: Tensor) -> dict[str, Tensor]:
        return {score: scored(weights[:, :-1], facts, present) for score, scored in SCORES.items()}

    def all_scores(weights: Tensor) -> dict[str, Tensor]:
        return scores_of(weights) | {elsewhere: slots.mass_elsewhere(weights, on_sentences)}

    def found_by(looks: Iterable[Tensor]) -> dict[str, Tensor]:
        return {"support_found": slots.support_found(list(looks), facts, present)}

    def taken(looks: SentenceWeights) -> list[Tensor]:
        """The looks (B,S), without weight where they did not take place."""
        return [weights[:, :-1] * looks.active[name].unsqueeze(1) for name, weights in looks.looks.items()]

    by_look = {}
    for name, weights in seen.looks.items():
        active = seen.active[name]
        by_look[name] = {score: torch.where(active, value, torch.nan) for score, value in all_scores(weights).items()}
        by_look[name] |= {"active": active} if seen.has_end else {}
    maps = rival_maps(batch)
    rivals = {name: scores_of(rival.total) | found_by(taken(rival)) for name, rival in maps.items()}
    even = maps["uniform"].total[:, :-1]
    rivals[RANDOM] = found_by(even * active.unsqueeze(1) for active in seen.active.values())
    return LookScores(all_scores(seen.total) | found_by(taken(seen)), by_look, rivals)


def supporting_slots(supporting: Tensor, present: Tensor) -> Tensor:
    """Slots (B,S) of the supporting facts that are in memory, from their numbers (B,F), below 0 for none."""
    places = torch.arange(present.shape[1], device=present.device)
    return (supporting.unsqueeze(2) == places).any(1) & present


BATCH = 500
PART = 50
"""Stories of like length that a model reads together if it reads from sentence to sentence."""


def as_tensors(model: StoryModel, asked: Sequence[StoryExample], words: Sequence[str]) -> StoryTensors:
    """Questions on the device of the model, in its words."""
    device = next(model.parameters()).device
    sizes = sizes_of(asked, int(model.config.memory))
    return StoryTensors(asked, words, sizes, device=device, by_word=model.answers_word_by_word)


def batch_of(model: StoryModel, asked: Sequence[StoryExample], words: Sequence[str]) -> dict[str, Tensor]:
    """All of these questions as one batch of :func:`batch_for`."""
    return batch_for(model, as_tensors(model, asked, words), torch.arange(len(asked)))


def batch_for(model: StoryModel, tensors: StoryTensors, indices: Tensor) -> dict[str, Tensor]:
    """Questions ``indices`` (B,), their stories with as many slots as the memory of the model has.

    A model that reads bags of words gets them: every sentence is made into one only once.
    """
    batch = tensors.take(indices)
    empty = int(model.config.memory) - batch["story"].shape[1]
    batch["story"] = torch.nn.functional.pad(batch["story"], (0, 0, 0, empty))  # (B,S,J)
    if "bags" in model.training_inputs:
        batch["bags"] = torch.nn.functional.pad(tensors.bags(batch["rows"], model.bags), (0, 0, 0, empty))  # (B,S,W)
        batch["query_bags"] = tensors.bags(batch["query_row"], model.bags)  # (B,W)
    return batch


def respond(model: StoryModel, batch: Mapping[str, Tensor], attention: Given | None = None) -> ModelOutput:
    """What the model computes for a batch of :func:`batch_for`, perhaps with weights that are given."""
    if model.slots_include_past and len(batch["story"]) > PART:
        return _by_length(model, batch, attention)
    options: dict[str, Any] = {name: batch[name] for name in ("bags", "query_bags") if name in batch}
    return model.forward_raw(batch["story"], batch["query"], **options, **attention_kwargs(attention))


def _by_length(model: StoryModel, batch: Mapping[str, Tensor], attention: Given | None) -> ModelOutput:
    """The same, stories of like length together and without the slots that they leave empty.

    A model whose facts carry the past reads from sentence to sentence, and empty slots are nothing to it. Stories of
    task 3 have 4 to 228 sentences, so most of a batch would be empty slots.
    """
    story, query = batch["story"], batch["query"]
    size = story.shape[1]
    length = ((story != 0).any(-1) * torch.arange(1, size + 1, device=story.device)).amax(1)  # (B,)
    order = length.argsort()
    parts = []
    for chosen in torch.split(order, PART):
        most = max(1, int(length[chosen[-1]]))
        given = None if attention is None else {name: each[chosen, : most + 1] for name, each in attention.items()}
        options: dict[str, Any] = {}
        if "rows" in model.training_inputs:
            options = {"rows": batch["rows"][chosen, :most], "query_row": batch["query_row"][chosen]}
        raw = model.forward_raw(story[chosen, :most], query[chosen], **options, **attention_kwargs(given))
        for act in raw.acts.values():  # the empty slots that were left out: (B,S'+1) → (B,S+1)
            act.weights = torch.nn.functional.pad(act.weights, (0, size - most))
            act.scores = torch.nn.functional.pad(act.scores, (0, size - most), value=-torch.inf)
        parts.append(raw)
    return joined(parts)[order.argsort()]


def said(raw: ModelOutput) -> Tensor:
    """Ids of the words that were said: (B,A), A = 1 for one entry of the vocabulary."""
    logits = raw.logits
    return logits.argmax(-1) if logits.dim() == 3 else logits.argmax(-1, keepdim=True)


def is_right(spoken: Tensor, answer: Tensor) -> Tensor:
    """Whether the words that were said (B,A) are those of the answer (B,A'): (B,). Word 0 ends an answer."""
    most = min(spoken.shape[1], answer.shape[1])
    same = (spoken[:, :most] == answer[:, :most]).all(1)
    return same & (spoken[:, most:] == 0).all(1) & (answer[:, most:] == 0).all(1)
