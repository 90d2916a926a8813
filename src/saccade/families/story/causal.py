"""Causal tests of models of stories: a story, or the weights of its hops, are changed and the model is asked again.

**The story is changed.** The rules of :mod:`saccade.families.story.world` say the answer of a changed story; they are
trusted for a question only if they also find its answer before the change.

=====================  =========================================================================================
a supporting fact is removed
``causal_change``      the answer changes, among questions whose answer is then another one by the rules
``causal_follow``      it becomes that other one
``change_rate``        the answer changes, among all questions
``weight_follow``      the share of the gained weight that lies on the facts of the new answer; 0 where none was gained
``weight_to_nothing``  the share of the gained weight that lies on empty slots or the end fact
another sentence is removed
``causal_hold``        the answer stays, right or wrong
``weights_hold``       1 − total variation of the weights over the sentences that stayed, mean over the looks
two names are exchanged in story, question and answer
``swap_follow``        the answer was one of the two and becomes the other, among questions whose answer is one of them
``swap_hold``          the answer stays, among the other questions
``swap_weights_hold``  1 − total variation of the weights, mean over the looks
=====================  =========================================================================================

``weight_follow``, ``weights_hold`` and ``swap_weights_hold`` have rivals, maps that need no model: a constant map holds
too.

**The weights are edited** (:mod:`saccade.metrics.maps.edits`), those of hops or passes on sentences; the target are the
supporting facts. "all" edits every look. After a single edited look, the others are computed again ("recomputed"), or
keep the weights of the unedited pass ("frozen"). Weight on no sentence stays. A question without a supporting fact in
memory, or with fewer other sentences than facts, does not count.

Axes: N questions, B changed ones, S slots, S' slots of the look, A words of an answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.families.story import tensors
from saccade.families.story.stories import StoryExample, words_of
from saccade.families.story.world import derive
from saccade.families.story.world.state import LINKS, TIMES
from saccade.metrics.maps.edits import ALONE, REMOVED, EditScores, cells_among, edited_weights, one_by_one
from saccade.metrics.slots import moved_to, weights_hold
from saccade.models.base import Given
from saccade.models.story import StoryModel

OF_MAPS = ("weight_follow", "weights_hold", "swap_weights_hold")  # Scores of rivals too
SCORES = (
    "causal_change", "causal_follow", "change_rate", "weight_follow", "weight_to_nothing", "causal_hold",
    "weights_hold", "swap_follow", "swap_hold", "swap_weights_hold",
)  # fmt: skip
# Openers of sentences that are no names.
OPENERS = frozenset({"the", "a", "an", "he", "she", "they", "it", "in", "if"}) | {
    word for phrase in (*LINKS, *TIMES) for word in phrase.split()
}
TRIES = 8  # Most sentences, or pairs of names, tried for one change


class Edit(NamedTuple):
    """A changed story."""

    example: StoryExample
    sources: tuple[int, ...]  # The index of each sentence in the original story
    truth: str | None  # The answer by the rules, if any
    facts: tuple[int, ...]  # Indices of the sentences that imply it
    names: tuple[str, str] | tuple[()] = ()  # Exchanged names


def _edit(example: StoryExample, places: tuple[int, ...]) -> Edit:
    sentences = tuple(example.sentences[number] for number in places)
    supporting = tuple(places.index(number) for number in example.supporting if number in places)
    truth, facts = derive(sentences, example.question) or (None, ())
    return Edit(replace(example, sentences=sentences, supporting=supporting), places, truth, facts)


def rules_know(example: StoryExample) -> bool:
    """Whether the rules find the answer of ``example``."""
    derived = derive(example.sentences, example.question)
    return derived is not None and derived.answer == example.answer.lower()


def removed(example: StoryExample, place: int) -> Edit:
    """The story without sentence ``place``."""
    return _edit(example, tuple(number for number in range(len(example.sentences)) if number != place))


def names_in(examples: Collection[StoryExample], words: Collection[str]) -> frozenset[str]:
    """Names among ``words``: capitalised openers of sentences that never occur in lower case."""
    first, small = set(), set()
    for sentence in {text for example in examples for text in example.sentences}:
        raw = [word.strip(".,?!") for word in sentence.split()]
        first |= {word.lower() for word in raw[:1] if word[:1].isupper()}
        small |= {word for word in raw if word[:1].islower()}
    return frozenset((first - small - OPENERS) & set(words))


def exchanged(example: StoryExample, one: str, two: str) -> Edit:
    """The story, question and answer with two names exchanged."""
    pair = {one: two, two: one}
    either = re.compile(rf"\b({re.escape(one)}|{re.escape(two)})\b", re.IGNORECASE)

    def other(match: re.Match[str]) -> str:
        name = pair[match[0].lower()]
        return name.capitalize() if match[0][0].isupper() else name

    changed = partial(either.sub, other)
    sentences = tuple(map(changed, example.sentences))
    new = replace(example, sentences=sentences, question=changed(example.question), answer=changed(example.answer))
    return _edit(new, tuple(range(len(sentences))))._replace(names=(one, two))


def pairs_of_names(example: StoryExample, names: Collection[str], draw: random.Random) -> list[tuple[str, str]]:
    """Pairs to exchange, in a drawn order: a name of the question or a supporting fact, and another of the story.

    Pairs with the answer come first.
    """
    mentioned = _words_in(example.sentences) & set(names)
    central = sorted(_words_in([example.question, *(example.sentences[at] for at in example.supporting)]) & set(names))
    pairs = [(one, two) for one in central for two in sorted(mentioned or names) if one != two]
    pairs = pairs or [(one, two) for one in central for two in sorted(names) if one != two]
    draw.shuffle(pairs)
    pairs.sort(key=lambda pair: not set(pair) & set(words_of(example.answer)))
    return pairs[:TRIES]


def _words_in(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in words_of(text)}


class Responses(NamedTuple):
    """Answers and maps of some questions."""

    answers: Tensor  # Ids of the words (N,A)
    # The model's under "", then those of rivals; empty for a model without looks.
    maps: dict[str, tensors.SentenceWeights]


class CausalTests:
    """Causal tests of one model with these ``words`` on sampled questions."""

    def __init__(self, model: StoryModel, examples: Sequence[StoryExample], words: Sequence[str]) -> None:
        self.model, self.examples, self.words = model, examples, words
        self.numbers = {word: number for number, word in enumerate(words)}
        self.memory = int(model.config.memory)
        self.answer_words = int(getattr(model.config, "answer_words", 1))
        self.draw = random.Random(0)
        self.is_derivable = [rules_know(example) for example in examples]
        self.before = self._ask(examples)
        undefined = torch.full((len(examples),), torch.nan, dtype=torch.double)  # (N,)
        self.scores = {score: undefined.clone() for score in SCORES}  # Every score (N,), NaN if undefined
        rivals = [name for name in self.before.maps if name]
        # By rival: its scores (N,) of the same changes.
        self.rivals = {rival: {score: undefined.clone() for score in OF_MAPS} for rival in rivals}
        self._remove_fact()
        self._remove_other()
        self._exchange_names()

    def _ask(self, examples: Sequence[StoryExample]) -> Responses:
        if not examples:
            return Responses(torch.zeros(0, self.answer_words, dtype=torch.long), {})
        batch = tensors.batch_of(self.model, examples, self.words)
        raw = tensors.respond(self.model, batch)
        looks = tensors.sentence_weights(self.model, raw, batch["story"])
        maps = {} if looks is None else {"": looks, **tensors.rival_maps(batch)}
        return Responses(tensors.predictions(raw).cpu(), maps)

    def _ask_again(self, edits: Mapping[int, Edit]) -> tuple[Tensor, Responses]:
        return torch.tensor(list(edits), dtype=torch.long), self._ask([edit.example for edit in edits.values()])

    def _put(self, score: str, values: Tensor, rows: Tensor, rival: str = "") -> None:
        (self.rivals[rival] if rival else self.scores)[score][rows] = values.double()

    def _remove_fact(self) -> None:
        edits: dict[int, Edit] = {}
        for row, example in enumerate(self.examples):
            facts = [place for place in example.supporting if self._slot(example, place) >= 0]
            self.draw.shuffle(facts)
            tried = [removed(example, place) for place in facts]
            counts = [edit for edit in tried if edit.truth not in (None, example.answer.lower())]
            if tried:
                edits[row] = (counts or tried)[0]
        rows, after = self._ask_again(edits)
        other = torch.tensor([self._other_answer(row, edit) for row, edit in edits.items()], dtype=torch.long)
        other = other.view(-1, self.answer_words)  # (B,A), -1 where there is none
        has_other = (other >= 0).all(1)  # (B,)
        differs = (after.answers != self.before.answers[rows]).any(1).double()
        becomes = (after.answers == other).all(1).double()
        self._put("causal_change", torch.where(has_other, differs, torch.nan), rows)
        self._put("causal_follow", torch.where(has_other, becomes, torch.nan), rows)
        self._put("change_rate", differs, rows)
        sources = self._sources(edits)  # (B,S+1)
        sources[:, -1] = self.memory  # weight on no sentence is the same place in both
        facts_now, nowhere = torch.zeros_like(sources, dtype=torch.bool), torch.zeros_like(sources, dtype=torch.bool)
        nowhere[:, -1] = True
        for at, edit in enumerate(edits.values()):
            slots = [self._slot(edit.example, place) for place in edit.facts if bool(has_other[at])]
            facts_now[at, [slot for slot in slots if slot >= 0]] = True
        for rival, now in after.maps.items():
            first = self.before.maps[rival].total[rows]  # (B,S+1)
            follows = torch.where(facts_now.any(1), moved_to(first, now.total, sources, facts_now), torch.nan)
            self._put("weight_follow", follows, rows, rival)
            if not rival:
                self._put("weight_to_nothing", moved_to(first, now.total, sources, nowhere), rows)

    def _remove_other(self) -> None:
        edits: dict[int, Edit] = {}
        for row, example in enumerate(self.examples):
            if not example.supporting and not self.is_derivable[row]:
                continue
            first = max(0, len(example.sentences) - self.memory)
            others = [place for place in range(first, len(example.sentences)) if place not in example.supporting]
            self.draw.shuffle(others)
            for edit in (removed(example, place) for place in others[:TRIES]):
                if not self.is_derivable[row] or edit.truth == example.answer.lower():
                    edits[row] = edit
                    break
        rows, after = self._ask_again(edits)
        self._put("causal_hold", (after.answers == self.before.answers[rows]).all(1), rows)
        self._compare("weights_hold", after, edits, rows)

    def _exchange_names(self) -> None:
        names = names_in(self.examples, set(self.words) - {""})
        edits: dict[int, Edit] = {}
        for row, example in enumerate(self.examples):
            for one, two in pairs_of_names(example, names, self.draw):
                edit = exchanged(example, one, two)
                if not self.is_derivable[row] or edit.truth == edit.example.answer.lower():
                    edits[row] = edit
                    break
        rows, after = self._ask_again(edits)
        before = self.before.answers[rows]  # (B,A)
        names_of = [[self.numbers[name] for name in edit.names] for edit in edits.values()]
        first, second = torch.tensor(names_of, dtype=torch.long).view(-1, 2, 1).unbind(1)  # (B,1) each
        expected = torch.where(before == first, second, torch.where(before == second, first, before))  # (B,A)
        same = (after.answers == expected).all(1)
        follows = same & (before != expected).any(1)
        of_names = [bool(set(edit.names) & set(words_of(edit.example.answer))) for edit in edits.values()]
        asks_name = torch.tensor(of_names, dtype=torch.bool)
        self._put("swap_follow", torch.where(asks_name, follows.double(), torch.nan), rows)
        self._put("swap_hold", torch.where(asks_name, torch.nan, same.double()), rows)
        self._compare("swap_weights_hold", after, edits, rows)

    def _compare(self, score: str, after: Responses, edits: Mapping[int, Edit], rows: Tensor) -> None:
        """How much of the weights held, mean over the looks that took place both times."""
        sources, model_hold = self._sources(edits), torch.zeros(len(rows))
        for rival, now in after.maps.items():
            first, looks = self.before.maps[rival], list[Tensor]()
            for name, weights in now.looks.items():
                both = now.active[name] & first.active[name][rows]
                looks.append(torch.where(both, weights_hold(first.looks[name][rows], weights, sources), torch.nan))
            hold = torch.stack(looks).nanmean(0)  # (B,)
            model_hold = model_hold if rival else hold
            self._put(score, torch.where(model_hold.isnan(), torch.nan, hold), rows, rival)

    def _other_answer(self, row: int, edit: Edit) -> list[int]:
        """Ids (A) of the answer by the rules; -1 if there is none, it is the old one, or the model cannot say it."""
        truth, most = edit.truth, self.answer_words
        if self.is_derivable[row] and truth not in (None, self.examples[row].answer.lower()):
            parts = str(truth).split(",") if self.model.answers_word_by_word else [str(truth)]
            ids = [self.numbers.get(part, 0) for part in parts]
            if all(ids) and len(ids) <= most:
                return ids + [0] * (most - len(ids))
        return [-1] * most

    def _slot(self, example: StoryExample, place: int) -> int:
        """The slot of a sentence, below 0 if the memory dropped it."""
        return place - max(0, len(example.sentences) - self.memory)

    def _sources(self, edits: Mapping[int, Edit]) -> Tensor:
        """The original slot of each slot of the changed stories (B,S+1), −1 for none."""
        sources = torch.full((len(edits), self.memory + 1), -1)
        for at, (row, edit) in enumerate(edits.items()):
            for place, source in enumerate(edit.sources):
                if (slot := self._slot(edit.example, place)) >= 0:
                    sources[at, slot] = max(-1, self._slot(self.examples[row], source))
        return sources


ONE_LOOK = ("zero_target", "zero_random", "even", "permuted")  # Edits of a look alone


@torch.no_grad()
def weight_edits(
    model: StoryModel, examples: Sequence[StoryExample], words: Sequence[str], stories: Tensor
) -> EditScores:
    """Answers to ``examples`` on edited weights; none if the model has no looks, or no fact is known.

    ``words`` is the vocabulary of the model; ``stories`` (N,) are the ids of the questions' stories.
    """
    scores = EditScores()
    batch = tensors.batch_of(model, examples, words)
    raw = tensors.respond(model, batch)
    present = (batch["story"] != 0).any(-1)  # (N,S)
    facts = tensors.supporting_slots(batch["supporting"], present)  # (N,S)
    count = facts.sum(1)  # (N,)
    counts = (count > 0) & (2 * count <= present.sum(1))  # (N,)
    looks = [look for look in model.looks(raw) if look.name in model.look_names and look.weights is not None]
    if not looks or not bool(counts.any()):
        return scores
    originals = {look.name: torch.as_tensor(look.weights) for look in looks}  # (N,S') each
    chance = torch.rand(facts.shape, generator=torch.Generator().manual_seed(0)).to(facts.device)  # (N,S)
    edited: dict[str, dict[str, Tensor]] = {}  # the same with each edit
    for look in looks:
        beyond = originals[look.name].shape[1] - facts.shape[1]  # slots of the look that no sentence has
        on, there, draw = (F.pad(tensor, (0, beyond)) for tensor in (facts, present, chance))  # (N,S')
        permuted = {"permuted": _permuted(originals[look.name], present, chance)}
        edited[look.name] = edited_weights(look, cells_among(on, there, originals[look.name], draw)) | permuted
    before = tensors.predictions(raw)  # (N,A)

    def changed(attention: Given | None, batch: Mapping[str, Tensor] = batch) -> Tensor:
        """Whether answers changed (N,), NaN for questions that do not count; on the CPU."""
        after = tensors.predictions(tensors.respond(model, batch, attention))
        return torch.where(counts, (after != before).any(1).double(), torch.nan).cpu()

    edits = next(iter(edited.values()))
    changes = {"all": {edit: changed({name: edited[name][edit] for name in originals}) for edit in edits}}
    for name, keeps in ((REMOVED, False), (ALONE, True)):
        reduced = [_reduced(example, keeps=keeps) for example in examples]
        changes["all"][name] = changed(None, tensors.batch_of(model, reduced, words))
    for title, name, fixed in one_by_one(originals):
        changes[title] = {edit: changed({**fixed, name: edited[name][edit]}) for edit in ONE_LOOK}
    scores.add_changes(stories, changes)
    return scores


def _permuted(weights: Tensor, present: Tensor, chance: Tensor) -> Tensor:
    """Weights (N,S') with the sentences (N,S) permuted by ``chance`` (N,S)."""
    on_sentences, rest = weights[:, : present.shape[1]], weights[:, present.shape[1] :]
    # Not stable: of more than sixteen slots the empty ones change places too, and recorded scores hold that.
    order = torch.where(present, chance, 2.0).argsort(1)  # (N,S): the sentences in another order, then the rest
    place = torch.where(present, 0.0, 2.0).argsort(dim=1, stable=True)  # the same slots in their own order
    return torch.cat([on_sentences.scatter(1, place, on_sentences.gather(1, order)), rest], 1)


def _reduced(example: StoryExample, *, keeps: bool) -> StoryExample:
    """The story without its supporting facts, or with only these (``keeps``)."""
    sentences = [text for place, text in enumerate(example.sentences) if (place in example.supporting) == keeps]
    return replace(example, sentences=tuple(sentences), supporting=())
