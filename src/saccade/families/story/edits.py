"""What is changed to test a story model: the sentences of a story, and the weights of its hops.

Stories with one thing changed, for causal tests: a sentence taken out, or two names exchanged.

The rules of :mod:`saccade.families.story.world` compute the answer of a changed story from its sentences. They
are trusted for a question only if they also find its answer before the change.

Edits the weights of hops or passes on sentences: does the answer depend on the supporting facts?

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

import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from saccade.families.story.sentence_scores import batch_of, respond, said, supporting_slots
from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world import derive
from saccade.families.story.world.state import LINKS, TIMES
from saccade.metrics.maps.edits import ALONE, REMOVED, EditScores, cells_among, edited_weights, one_by_one
from saccade.models.base import Given
from saccade.models.story import StoryModel

OPENERS = frozenset({"the", "a", "an", "he", "she", "they", "it", "in", "if"}) | {
    word for phrase in (*LINKS, *TIMES) for word in phrase.split()
}
"""Words that open a sentence and are no names."""
TRIES = 8
"""Sentences, or pairs of names, that are tried until one changes the story as wanted."""


@dataclass(frozen=True)
class Edit:
    """A changed story."""

    asked: StoryExample
    kept: tuple[int, ...]
    """For each sentence, its index in the story as it was; −1 for a new one."""
    truth: str | None = None
    """The answer, by the rules; None where they give none."""
    facts: tuple[int, ...] = ()
    """Indices of the sentences that this follows from."""
    names: tuple[str, str] | None = None
    """Two names that were exchanged."""


def rules_know(asked: StoryExample) -> bool:
    """Whether the rules find the answer of ``asked``."""
    known = derive(asked.sentences, asked.question)
    return known is not None and known.answer == asked.answer.lower()


def removed(asked: StoryExample, place: int) -> Edit:
    """The story without sentence ``place``."""
    kept = tuple(number for number in range(len(asked.sentences)) if number != place)
    return _edit(asked, tuple(asked.sentences[number] for number in kept), kept)


def names_in(asked: Collection[StoryExample], words: Collection[str]) -> frozenset[str]:
    """Names among ``words``: what opens a sentence with a capital letter and is never written small in one."""
    first, small = set(), set()
    for sentence in {text for each in asked for text in each.sentences}:
        raw = [word.strip(".,?!") for word in sentence.split()]
        first |= {word.lower() for word in raw[:1] if word[:1].isupper()}
        small |= {word for word in raw if word[:1].islower()}
    return frozenset((first - small - OPENERS) & set(words))


def exchanged(asked: StoryExample, one: str, two: str) -> Edit:
    """The story, question and answer with two names exchanged."""
    pair = {one: two, two: one}
    either = re.compile(rf"\b({re.escape(one)}|{re.escape(two)})\b", re.IGNORECASE)

    def other(match: re.Match[str]) -> str:
        name = pair[match[0].lower()]
        return name.capitalize() if match[0][0].isupper() else name

    def changed(text: str) -> str:
        return either.sub(other, text)

    new = replace(asked, question=changed(asked.question), answer=changed(asked.answer))
    sentences = tuple(changed(sentence) for sentence in asked.sentences)
    edit = _edit(new, sentences, tuple(range(len(sentences))))
    return replace(edit, names=(one, two))


def pairs_of_names(asked: StoryExample, names: Collection[str], draw: random.Random) -> list[tuple[str, str]]:
    """Pairs to exchange, in a drawn order: a name that the question or a supporting fact has, and another.

    The other one is in the story if any is. Pairs with the name that is the answer come first.
    """
    told = _words_in(asked.sentences) & set(names)
    central = sorted(_words_in([asked.question, *(asked.sentences[at] for at in asked.supporting)]) & set(names))
    pairs = [(one, two) for one in central for two in sorted(told or names) if one != two]
    pairs = pairs or [(one, two) for one in central for two in sorted(names) if one != two]
    draw.shuffle(pairs)
    pairs.sort(key=lambda pair: not set(pair) & set(words_of(asked.answer)))
    return pairs[:TRIES]


def _words_in(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in words_of(text)}


def _edit(asked: StoryExample, sentences: tuple[str, ...], kept: tuple[int, ...]) -> Edit:
    known = derive(sentences, asked.question)
    supporting = tuple(kept.index(number) for number in asked.supporting if number in kept)
    new = replace(asked, sentences=sentences, supporting=supporting)
    return Edit(new, kept, None, ()) if known is None else Edit(new, kept, known.answer, known.supporting)


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
    batch = batch_of(model, asked, words)
    raw = respond(model, batch)
    present = (batch["story"] != 0).any(-1)  # (N,S)
    facts = supporting_slots(batch["supporting"], present)  # (N,S)
    count = facts.sum(1)  # (N,)
    counts = (count > 0) & (2 * count <= present.sum(1))  # (N,)
    looks = [look for look in model.looks(raw) if look.name in model.look_names and look.weights is not None]
    if not looks or not bool(counts.any()):
        return scores
    own = {look.name: torch.as_tensor(look.weights) for look in looks}  # (N,S') each
    chance = torch.rand(facts.shape, generator=torch.Generator().manual_seed(0)).to(facts.device)  # (N,S)
    edited: dict[str, dict[str, Tensor]] = {}  # the same with each edit
    for look in looks:
        beyond = own[look.name].shape[1] - facts.shape[1]  # slots of the look that no sentence has
        on, there, draw = (torch.nn.functional.pad(each, (0, beyond)) for each in (facts, present, chance))  # (N,S')
        permuted = {"permuted": _permuted(own[look.name], present, chance)}
        edited[look.name] = edited_weights(look, cells_among(on, there, own[look.name], draw)) | permuted
    before = said(raw)  # (N,A)

    def changed(attention: Given | None, batch: Mapping[str, Tensor] = batch) -> Tensor:
        """Whether answers changed: (N,), NaN where a question does not count; on the CPU."""
        after = said(respond(model, batch, attention))
        return torch.where(counts, (after != before).any(1).double(), torch.nan).cpu()

    edits = next(iter(edited.values()))
    found = {"all": {edit: changed({name: edited[name][edit] for name in own}) for edit in edits}}
    for name, keeps in ((REMOVED, False), (ALONE, True)):
        reduced = [_reduced(each, keeps=keeps) for each in asked]
        found["all"][name] = changed(None, batch_of(model, reduced, words))
    for way, name, kept in one_by_one(own):
        found[way] = {edit: changed({**kept, name: edited[name][edit]}) for edit in ONE_LOOK}
    scores.add_changes(stories, found)
    return scores


def _permuted(weights: Tensor, present: Tensor, chance: Tensor) -> Tensor:
    """Weights (N,S') whose sentences (N,S) changed places, as ``chance`` (N,S) orders them."""
    own, rest = weights[:, : present.shape[1]], weights[:, present.shape[1] :]
    # Not stable: of more than sixteen slots the empty ones change places too, and recorded scores hold that.
    order = torch.where(present, chance, 2.0).argsort(1)  # (N,S): the sentences in another order, then the rest
    place = torch.where(present, 0.0, 2.0).argsort(dim=1, stable=True)  # the same slots in their own order
    return torch.cat([own.scatter(1, place, own.gather(1, order)), rest], 1)


def _reduced(asked: StoryExample, *, keeps: bool) -> StoryExample:
    """The story without its supporting facts, or with ``keeps`` of nothing but these."""
    kept = [text for place, text in enumerate(asked.sentences) if (place in asked.supporting) == keeps]
    return replace(asked, sentences=tuple(kept), supporting=())
