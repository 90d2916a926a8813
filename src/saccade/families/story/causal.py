"""Causal tests of models of stories: the story is changed and asked again; answer and weights are read both times.

=====================  =========================================================================================
a supporting fact is removed
``causal_change``      the answer changes, among questions whose answer is then another one by the rules
``causal_follow``      it becomes that other one
``change_rate``        the answer changes, among all questions
``weight_follow``      the share of the gained weight that lies on the facts which the new answer follows from; 0 where
                       no weight was gained
``weight_to_nothing``  the share of the gained weight that lies on no sentence: on empty slots or the end fact
another sentence is removed
``causal_hold``        the answer stays, right or wrong
``weights_hold``       1 − total variation of the weights over the sentences that stayed, mean over the looks
two names are exchanged in story, question and answer
``swap_follow``        among questions whose answer is one of the two: the answer was one of them, and becomes the other
``swap_hold``          among the others: the answer stays
``swap_weights_hold``  1 − total variation of the weights, mean over the looks
=====================  =========================================================================================

``weight_follow``, ``weights_hold`` and ``swap_weights_hold`` have rivals: maps that need no model, made for the story
before and after the same change. Weights that hold say nothing by themselves, as those of a constant map hold too; they
count beside weights that follow.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from saccade.families.story import sentence_scores
from saccade.families.story.edits import TRIES, Edit, exchanged, names_in, pairs_of_names, removed, rules_know
from saccade.families.story.sentence_scores import SentenceWeights, batch_of, respond, rival_maps, said
from saccade.families.story.stories import StoryExample, words_of
from saccade.metrics.slots import moved_to, weights_hold
from saccade.models.story import StoryModel

OF_MAPS = ("weight_follow", "weights_hold", "swap_weights_hold")
"""Scores that rivals have too."""
SCORES = (
    "causal_change", "causal_follow", "change_rate", "weight_follow", "weight_to_nothing", "causal_hold",
    "weights_hold", "swap_follow", "swap_hold", "swap_weights_hold",
)  # fmt: skip


class Asking(NamedTuple):
    """What was said and seen of some questions."""

    answers: Tensor
    """Ids of the words (N,A)."""
    seen: SentenceWeights | None
    """None of a model that does not look."""
    rivals: dict[str, SentenceWeights]
    """Maps that need no model; none beside a model that does not look."""


class CausalTests:
    """Causal tests of one model on a sample of questions.

    Args:
        model: what is tested.
        asked: the sample.
        words: the vocabulary of the model.
        seed: of what is drawn: sentences, wordings, names.
    """

    def __init__(
        self, model: StoryModel, asked: Sequence[StoryExample], words: Sequence[str], *, seed: int = 0
    ) -> None:
        self.model, self.asked, self.words = model, asked, words
        self.numbers = {word: number for number, word in enumerate(words)}
        self.memory = int(model.config.memory)
        self.answer_words = int(getattr(model.config, "answer_words", 1))
        self.draw = random.Random(seed)
        self.known = [rules_know(each) for each in asked]
        self.before = self._ask(asked)
        self.scores = self._undefined(SCORES)
        """Every score (N,), NaN for a question that it is not defined for."""
        self.rivals = {rival: self._undefined(OF_MAPS) for rival in self.before.rivals}
        """By the name of a rival: its scores (N,) of the same changes, where the model has one."""
        self._remove_fact()
        self._remove_other()
        self._exchange_names()

    def _undefined(self, names: Sequence[str]) -> dict[str, Tensor]:
        return {name: torch.full((len(self.asked),), torch.nan, dtype=torch.double) for name in names}

    def _remove_fact(self) -> None:
        """A supporting fact is taken out, drawn from those that matter by the rules if they know the question."""
        edits: dict[int, Edit] = {}
        for row, asked in enumerate(self.asked):
            facts = [place for place in asked.supporting if self._slot(asked, place) >= 0]
            self.draw.shuffle(facts)
            tried = [removed(asked, place) for place in facts]
            counts = [edit for edit in tried if edit.truth not in (None, asked.answer.lower())]
            if tried:
                edits[row] = (counts or tried)[0]
        rows, changed, after = list(edits), list(edits.values()), self._ask([edit.asked for edit in edits.values()])
        other = torch.tensor([self._other_answer(row, edit) for row, edit in edits.items()], dtype=torch.long)
        other = other.view(-1, self.answer_words)  # (B,A), -1 where there is none
        has_other = (other >= 0).all(1)  # (B,)
        differs = (after.answers != self.before.answers[rows]).any(1).double()
        becomes = (after.answers == other).all(1).double()
        self._put(self.scores, "causal_change", torch.where(has_other, differs, torch.nan), rows)
        self._put(self.scores, "causal_follow", torch.where(has_other, becomes, torch.nan), rows)
        self._put(self.scores, "change_rate", differs, rows)
        if after.seen is None or self.before.seen is None:
            return
        kept = self._kept(rows, changed)  # (B,S+1)
        kept[:, -1] = self.memory  # weight on no sentence is the same place in both
        facts_now, nowhere = torch.zeros_like(kept, dtype=torch.bool), torch.zeros_like(kept, dtype=torch.bool)
        nowhere[:, -1] = True
        for at, edit in enumerate(changed):
            slots = [self._slot(edit.asked, place) for place in edit.facts if bool(has_other[at])]
            facts_now[at, [slot for slot in slots if slot >= 0]] = True
        is_told = facts_now.any(1)

        def moved(first: SentenceWeights, now: SentenceWeights, where: Tensor) -> Tensor:
            return moved_to(first.total[rows], now.total, kept, where)

        follows = moved(self.before.seen, after.seen, facts_now)
        self._put(self.scores, "weight_follow", torch.where(is_told, follows, torch.nan), rows)
        self._put(self.scores, "weight_to_nothing", moved(self.before.seen, after.seen, nowhere), rows)
        for name, first in self.before.rivals.items():
            follows = moved(first, after.rivals[name], facts_now)
            self._put(self.rivals[name], "weight_follow", torch.where(is_told, follows, torch.nan), rows)

    def _remove_other(self) -> None:
        """A sentence that the answer does not need is taken out."""
        edits = {row: edit for row, asked in enumerate(self.asked) if (edit := self._harmless(row, asked))}
        rows, after = list(edits), self._ask([edit.asked for edit in edits.values()])
        same = (after.answers == self.before.answers[rows]).all(1)
        self._put(self.scores, "causal_hold", same.double(), rows)
        self._compare("weights_hold", after, edits)

    def _exchange_names(self) -> None:
        """Two names are exchanged everywhere."""
        names = names_in(self.asked, set(self.words) - {""})
        edits: dict[int, Edit] = {}
        for row, asked in enumerate(self.asked):
            for one, two in pairs_of_names(asked, names, self.draw):
                edit = exchanged(asked, one, two)
                if not self.known[row] or edit.truth == edit.asked.answer.lower():
                    edits[row] = edit
                    break
        rows, after = list(edits), self._ask([edit.asked for edit in edits.values()])
        before = self.before.answers[rows]  # (B,A)
        names_of = [[self.numbers[name] for name in edit.names or ()] for edit in edits.values()]
        first, second = torch.tensor(names_of, dtype=torch.long).view(-1, 2, 1).unbind(1)  # (B,1) each
        expected = torch.where(before == first, second, torch.where(before == second, first, before))  # (B,A)
        same = (after.answers == expected).all(1)
        follows = same & (before != expected).any(1)
        of_names = [bool(set(edit.names or ()) & set(words_of(edit.asked.answer))) for edit in edits.values()]
        asks_name = torch.tensor(of_names, dtype=torch.bool)
        self._put(self.scores, "swap_follow", torch.where(asks_name, follows.double(), torch.nan), rows)
        self._put(self.scores, "swap_hold", torch.where(asks_name, torch.nan, same.double()), rows)
        self._compare("swap_weights_hold", after, edits)

    def _ask(self, asked: Sequence[StoryExample]) -> Asking:
        """What the model says and sees."""
        if not asked:
            return Asking(torch.zeros(0, self.answer_words, dtype=torch.long), None, {})
        batch = batch_of(self.model, asked, self.words)
        raw = respond(self.model, batch)
        seen = sentence_scores.sentence_weights(self.model, raw, batch["story"])
        return Asking(said(raw).cpu(), seen, {} if seen is None else rival_maps(batch))

    def _compare(self, score: str, after: Asking, edits: Mapping[int, Edit]) -> None:
        """How much of the weights held, as ``score``; that of the rivals is kept beside it."""
        if after.seen is None or self.before.seen is None:
            return
        rows = list(edits)
        kept = self._kept(rows, list(edits.values()))
        own = _hold(self.before.seen, after.seen, rows, kept)
        self._put(self.scores, score, own, rows)
        for name, first in self.before.rivals.items():
            theirs = torch.where(own.isnan(), torch.nan, _hold(first, after.rivals[name], rows, kept))
            self._put(self.rivals[name], score, theirs, rows)

    def _harmless(self, row: int, asked: StoryExample) -> Edit | None:
        """The story without a sentence that is no supporting fact, where the answer stays the same by the rules.

        None where neither supporting facts nor rules say which sentences do not matter.
        """
        if not asked.supporting and not self.known[row]:
            return None
        first = max(0, len(asked.sentences) - self.memory)
        others = [place for place in range(first, len(asked.sentences)) if place not in asked.supporting]
        self.draw.shuffle(others)
        tried = (removed(asked, place) for place in others[:TRIES])
        return next((edit for edit in tried if not self.known[row] or edit.truth == asked.answer.lower()), None)

    def _other_answer(self, row: int, edit: Edit) -> list[int]:
        """Ids (A) of the answer by the rules; -1 where it is none, the old one, or one that the model cannot say."""
        truth, most = edit.truth, self.answer_words
        if self.known[row] and truth not in (None, self.asked[row].answer.lower()):
            parts = str(truth).split(",") if self.model.answers_word_by_word else [str(truth)]
            ids = [self.numbers.get(part, 0) for part in parts]
            if all(ids) and len(ids) <= most:
                return ids + [0] * (most - len(ids))
        return [-1] * most

    def _slot(self, asked: StoryExample, place: int) -> int:
        """The slot of a sentence; below 0 for one that the memory dropped."""
        return place - max(0, len(asked.sentences) - self.memory)

    def _kept(self, rows: Sequence[int], edits: Sequence[Edit]) -> Tensor:
        """Which slot each slot of the changed stories comes from (B,S+1), −1 for none."""
        kept = torch.full((len(edits), self.memory + 1), -1)
        for at, (row, edit) in enumerate(zip(rows, edits)):
            for place, source in enumerate(edit.kept):
                slot = self._slot(edit.asked, place)
                if slot >= 0 and source >= 0:
                    kept[at, slot] = max(-1, self._slot(self.asked[row], source))
        return kept

    @staticmethod
    def _put(scores: dict[str, Tensor], name: str, values: Tensor, rows: Sequence[int]) -> None:
        """Values (B,) of some questions become part of a score (N,)."""
        scores[name][torch.tensor(rows, dtype=torch.long)] = values.double()


def _hold(first: SentenceWeights, seen: SentenceWeights, rows: Sequence[int], kept: Tensor) -> Tensor:
    """Mean over the looks of how much of their weights held (B,); a look counts where it took place both times."""
    looks = []
    for name, after in seen.looks.items():
        both = seen.active[name] & first.active[name][rows]
        looks.append(torch.where(both, weights_hold(first.looks[name][rows], after, kept), torch.nan))
    return torch.stack(looks).nanmean(0)
