"""Edits the weights of hops or passes on sentences: does the answer depend on the supporting facts?

==================  ====================================================================================
``zero_target``     no weight on the supporting facts
``zero_random``     no weight on as many other sentences, drawn at random
``zero_heaviest``   no weight on as many other sentences, the heaviest ones of each look
``keep_target``     weight on the supporting facts alone
``keep_random``     weight on as many other sentences alone
``even``            the mean weight on every sentence
``permuted``        sentences change places at random
``target_removed``  no edit: the supporting facts are taken out of the story
``target_alone``    no edit: everything but the supporting facts is taken out of the story
==================  ====================================================================================

"all" edits every look. A look alone is edited in two ways: those after it are computed again ("recomputed"), or keep
the weights of the unedited pass ("frozen"). A softmax keeps its sum, gates are not scaled
(:meth:`saccade.looks.Look.edit`). Weight on no sentence, on empty slots or the end-of-passes fact, is left alone: a
model that ends when that is the heaviest may end sooner after an edit.

A question without a supporting fact in memory, or with fewer other sentences than facts, does not count.

Axes: B questions, S slots, S' slots of the look, A words of an answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from saccade.families.story.scoring.responding import as_tensors, batch_for, respond, said
from saccade.families.story.scoring.support_scores import supporting_slots
from saccade.families.story.stories import StoryExample
from saccade.looks import Look
from saccade.metrics.maps.edits import ALONE, REMOVED, EditScores, chosen_cells
from saccade.models.base import Given
from saccade.models.story import StoryModel

ONE_LOOK = ("zero_target", "zero_random", "even", "permuted")
"""Edits of a look alone."""


@torch.no_grad()
def weight_edits(model: StoryModel, asked: Sequence[StoryExample], words: Sequence[str], stories: Tensor) -> EditScores:
    """What becomes of the answers to ``asked``; none where the model has no looks, or no fact is known.

    Args:
        model: in eval mode.
        asked: the questions.
        words: the vocabulary of the model.
        stories: (N,) id of each question's story.
    """
    scores = EditScores()
    tensors = as_tensors(model, asked, words)
    batch = batch_for(model, tensors, torch.arange(tensors.size))
    raw = respond(model, batch)
    present = (batch["story"] != 0).any(-1)  # (N,S)
    facts = supporting_slots(batch["supporting"], present)  # (N,S)
    count = facts.sum(1)  # (N,)
    counts = (count > 0) & (2 * count <= present.sum(1))  # (N,)
    looks = [look for look in model.looks(raw) if look.name in model.look_names and look.weights is not None]
    if not looks or not bool(counts.any()):
        return scores
    own = {look.name: _weights(look) for look in looks}
    chance = torch.rand(facts.shape, generator=torch.Generator().manual_seed(0)).to(facts.device)  # (N,S)
    elsewhere = present & ~facts
    random = _chosen(chance, elsewhere, count)  # (N,S)

    def heaviest(look: Look) -> Tensor:
        return _chosen(_weights(look)[:, : facts.shape[1]], elsewhere, count)  # (N,S)

    edits: dict[str, Callable[[Look], Tensor]] = {
        "zero_target": lambda look: _without(look, facts),
        "zero_random": lambda look: _without(look, random),
        "zero_heaviest": lambda look: _without(look, heaviest(look)),
        "keep_target": lambda look: _without(look, present & ~facts),
        "keep_random": lambda look: _without(look, present & ~random),
        "even": lambda look: _evened(_weights(look), present),
        "permuted": lambda look: _permuted(_weights(look), present, chance),
    }
    before = said(raw)  # (N,A)

    def changed(attention: Given) -> Tensor:
        return _told(said(respond(model, batch, attention)), before, counts)

    found = {"all": {name: changed({look.name: change(look) for look in looks}) for name, change in edits.items()}}
    for name, keeps in ((REMOVED, False), (ALONE, True)):
        answers = _said_of(model, [_reduced(each, keeps=keeps) for each in asked], words)
        found["all"][name] = _told(answers, before, counts)
    for number, look in enumerate(looks if len(looks) > 1 else ()):
        earlier = {each.name: own[each.name] for each in looks[:number]}
        later = {each.name: own[each.name] for each in looks[number + 1 :]}
        for way, kept in (("recomputed", {}), ("frozen", later)):
            if way == "frozen" and not later:
                continue
            found[f"{look.name}, later {way}" if later else look.name] = {
                name: changed({**earlier, look.name: edits[name](look), **kept}) for name in ONE_LOOK
            }
    scores.add_changes(stories, found)
    return scores


def _weights(look: Look) -> Tensor:
    if look.weights is None:
        raise ValueError(f"look '{look.name}' has no weights")  # these were left out
    return look.weights


def _chosen(rank: Tensor, allowed: Tensor, count: Tensor) -> Tensor:
    """The ``count`` (N,) slots of the highest ``rank`` (N,S) among those ``allowed`` (N,S)."""
    return chosen_cells(rank[:, None], allowed[:, None], count)[:, 0]


def _without(look: Look, slots: Tensor) -> Tensor:
    """The weights (N,S') of a look without those on ``slots`` (N,S)."""
    wide = torch.nn.functional.pad(slots, (0, _weights(look).shape[1] - slots.shape[1]))  # (N,S')
    return _weights(look.edit(wide))


def _evened(weights: Tensor, present: Tensor) -> Tensor:
    """Weights (N,S') with their mean on every sentence (N,S)."""
    own, rest = weights[:, : present.shape[1]], weights[:, present.shape[1] :]
    mean = (own * present).sum(1, keepdim=True) / present.sum(1, keepdim=True).clamp(min=1)  # (N,1)
    return torch.cat([torch.where(present, mean, own), rest], 1)


def _permuted(weights: Tensor, present: Tensor, chance: Tensor) -> Tensor:
    """Weights (N,S') whose sentences (N,S) changed places, as ``chance`` (N,S) orders them."""
    own, rest = weights[:, : present.shape[1]], weights[:, present.shape[1] :]
    order = torch.where(present, chance, 2.0).argsort(1)  # (N,S): the sentences in another order, then the rest
    place = torch.where(present, 0.0, 2.0).argsort(dim=1, stable=True)  # the same slots in their own order
    return torch.cat([own.scatter(1, place, own.gather(1, order)), rest], 1)


def _reduced(asked: StoryExample, *, keeps: bool) -> StoryExample:
    """The story without its supporting facts, or with ``keeps`` of nothing but these."""
    kept = [text for place, text in enumerate(asked.sentences) if (place in asked.supporting) == keeps]
    return replace(asked, sentences=tuple(kept), supporting=())


def _said_of(model: StoryModel, asked: Sequence[StoryExample], words: Sequence[str]) -> Tensor:
    """Ids (N,A) of what is answered."""
    tensors = as_tensors(model, asked, words)
    return said(respond(model, batch_for(model, tensors, torch.arange(tensors.size))))


def _told(after: Tensor, before: Tensor, counts: Tensor) -> Tensor:
    """Whether answers (N,A) changed: (N,), NaN where a question does not count; on the CPU."""
    return torch.where(counts, (after != before).any(1).double(), torch.nan).cpu()
