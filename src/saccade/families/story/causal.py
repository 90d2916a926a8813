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

from saccade.families.story.edits import (
    TRIES,
    Edit,
    exchanged,
    names_in,
    pairs_of_names,
    removed,
    rules_know,
)
from saccade.families.story.sentence_scores import (
    SentenceWeights,
    as_tensors,
    batch_for,
    respond,
    rival_maps,
    said,
    sentence_weights,
)
from saccade.families.story.stories import StoryExample, words_of
from saccade.metrics.slots import moved_to, weights_hold
from saccade.models.story import StoryModel

OF_MAPS = ("weight_follow", "weights_hold", "swap_weights_hold")
"""Scores that rivals have too."""


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
        self.draw = random.Random(seed)
        self.known = [rules_know(each) for each in asked]
        self.answers, self.seen, self.rival_seen = self._ask(asked)
        self._scored: dict[str, dict[str, Tensor]] = {name: {} for name in self.rival_seen}

    def scores(self) -> dict[str, Tensor]:
        """Every score (N,), NaN for a question that it is not defined for."""
        found = self._without_fact() | self._without_other() | self._with_names_exchanged()
        return {name: found.get(name, self._undefined) for name in self._names}

    def rivals(self) -> dict[str, dict[str, Tensor]]:
        """By the name of a rival: its scores (N,) of the changes that :meth:`scores` made, where the model has one."""
        return {
            rival: {name: found.get(name, self._undefined) for name in OF_MAPS} for rival, found in self._scored.items()
        }

    @property
    def _undefined(self) -> Tensor:
        return torch.full((len(self.asked),), torch.nan, dtype=torch.double)

    @property
    def _names(self) -> tuple[str, ...]:
        """Every score that a model of this kind can have, whatever questions there are."""
        change = ("causal_change", "causal_follow", "change_rate", "weight_follow", "weight_to_nothing")
        return (*change, "causal_hold", "weights_hold", "swap_follow", "swap_hold", "swap_weights_hold")

    def _without_fact(self) -> dict[str, Tensor]:
        """A supporting fact is taken out, drawn from those that matter by the rules if they know the question."""
        edits: dict[int, Edit] = {}
        for row, each in enumerate(self.asked):
            facts = [place for place in each.supporting if self._slot(each, place) >= 0]
            self.draw.shuffle(facts)
            tried = [removed(each, place) for place in facts]
            counts = [edit for edit in tried if edit.truth not in (None, each.answer.lower())]
            if tried:
                edits[row] = (counts or tried)[0]
        rows, changed, (answers, seen, rivals) = self._changed(edits)
        differs = (answers != self.answers[rows]).any(1).double()
        other = [self._ids(edit.truth) if self.known[row] and self._is_other(row, edit) else None
                 for row, edit in edits.items()]  # fmt: skip
        has_other = torch.tensor([ids is not None for ids in other], dtype=torch.bool)
        becomes = torch.tensor([
            ids is not None and answers[at, : len(ids)].tolist() == ids and not bool(answers[at, len(ids) :].any())
            for at, ids in enumerate(other)
        ], dtype=torch.double)  # fmt: skip
        result = {
            "causal_change": torch.where(has_other, differs, torch.nan),
            "causal_follow": torch.where(has_other, becomes, torch.nan),
            "change_rate": differs,
        }
        if seen is not None and self.seen is not None and rows:
            before, after = self.seen.total[rows], seen.total
            kept = self._kept(rows, changed)  # (B,S+1)
            facts_now = torch.zeros_like(after, dtype=torch.bool)
            for at, edit in enumerate(changed):
                for place in edit.facts if bool(has_other[at]) else ():
                    if (slot := self._slot(edit.asked, place)) >= 0:
                        facts_now[at, slot] = True
            nowhere = torch.zeros_like(facts_now)
            nowhere[:, -1] = True
            is_told = facts_now.any(1)
            result["weight_follow"] = torch.where(is_told, moved_to(before, after, kept, facts_now), torch.nan)
            for name, first in self.rival_seen.items():
                follows = moved_to(first.total[rows], rivals[name].total, kept, facts_now)
                self._scored[name]["weight_follow"] = self._spread(torch.where(is_told, follows, torch.nan), rows)
            result["weight_to_nothing"] = moved_to(before, after, kept, nowhere)
        return {name: self._spread(values, rows) for name, values in result.items()}

    def _without_other(self) -> dict[str, Tensor]:
        """A sentence that the answer does not need is taken out."""
        edits = {row: edit for row, each in enumerate(self.asked) if (edit := self._harmless(row, each))}
        rows, changed, (answers, seen, rivals) = self._changed(edits)
        found = {"causal_hold": self._spread((answers == self.answers[rows]).all(1).double(), rows)}
        if seen is not None and self.seen is not None and rows:
            found |= self._holds("weights_hold", self.seen, seen, rivals, rows, changed)
        return found

    def _with_names_exchanged(self) -> dict[str, Tensor]:
        """Two names are exchanged everywhere."""
        names = names_in(self.asked, set(self.words) - {""})
        edits: dict[int, Edit] = {}
        for row, each in enumerate(self.asked):
            for one, two in pairs_of_names(each, names, self.draw):
                edit = exchanged(each, one, two)
                if not self.known[row] or edit.truth == edit.asked.answer.lower():
                    edits[row] = edit
                    break
        rows, changed, (answers, seen, rivals) = self._changed(edits)
        before = self.answers[rows]  # (B,A)
        names_of = torch.tensor([[self.numbers[name] for name in edit.names or ()] for edit in changed]).view(-1, 2, 1)
        first, second = names_of.unbind(1)  # (B,1) each
        expected = torch.where(before == first, second, torch.where(before == second, first, before))  # (B,A)
        same = (answers == expected).all(1)
        follows = same & (before != expected).any(1)
        asks_name = torch.tensor([
            bool(set(edit.names or ()) & set(words_of(edit.asked.answer))) for edit in changed
        ], dtype=torch.bool)  # fmt: skip
        found = {
            "swap_follow": self._spread(torch.where(asks_name, follows.double(), torch.nan), rows),
            "swap_hold": self._spread(torch.where(asks_name, torch.nan, same.double()), rows),
        }
        if seen is not None and self.seen is not None and rows:
            found |= self._holds("swap_weights_hold", self.seen, seen, rivals, rows, changed)
        return found

    @property
    def _memory(self) -> int:
        return int(self.model.config.memory)

    def _ask(self, asked: Sequence[StoryExample]) -> Asking:
        """What the model says and sees."""
        if not asked:
            return Asking(torch.zeros(0, self._said_words, dtype=torch.long), None, {})
        tensors = as_tensors(self.model, asked, self.words)
        batch = batch_for(self.model, tensors, torch.arange(tensors.size))
        raw = respond(self.model, batch)
        seen = sentence_weights(self.model, raw, batch["story"])
        return Asking(said(raw).cpu(), seen, {} if seen is None else rival_maps(batch))

    @property
    def _said_words(self) -> int:
        return int(getattr(self.model.config, "answer_words", 1))

    def _changed(self, edits: Mapping[int, Edit]) -> tuple[list[int], list[Edit], Asking]:
        """Rows and edits in order, and what the model says and sees then."""
        return list(edits), list(edits.values()), self._ask([edit.asked for edit in edits.values()])

    def _holds(
        self,
        score: str,
        before: SentenceWeights,
        after: SentenceWeights,
        rivals: Mapping[str, SentenceWeights],
        rows: Sequence[int],
        edits: Sequence[Edit],
    ) -> dict[str, Tensor]:
        """How much of the weights held, as ``score`` (N,); that of the rivals is kept beside it."""
        kept = self._kept(rows, edits, elsewhere=False)
        held = self._hold(before, after, rows, kept)
        for name, first in self.rival_seen.items():
            own = torch.where(held.isnan(), torch.nan, self._hold(first, rivals[name], rows, kept))
            self._scored[name][score] = self._spread(own, rows)
        return {score: self._spread(held, rows)}

    def _harmless(self, row: int, asked: StoryExample) -> Edit | None:
        """The story without a sentence that is no supporting fact, where the answer stays the same by the rules.

        None where neither supporting facts nor rules say which sentences do not matter.
        """
        if not asked.supporting and not self.known[row]:
            return None
        others = [
            place
            for place in range(max(0, len(asked.sentences) - self._memory), len(asked.sentences))
            if place not in asked.supporting
        ]
        self.draw.shuffle(others)
        tried = (removed(asked, place) for place in others[:TRIES])
        return next((edit for edit in tried if not self.known[row] or edit.truth == asked.answer.lower()), None)

    def _is_other(self, row: int, edit: Edit) -> bool:
        """Whether the rules give another answer, one that the model can say."""
        return edit.truth not in (None, self.asked[row].answer.lower()) and self._ids(edit.truth) is not None

    def _ids(self, answer: str | None) -> list[int] | None:
        """Ids of the words of an answer, as the model says them; None for one that it cannot say."""
        parts = (answer or "").split(",") if self.model.answers_word_by_word else [answer or ""]
        ids = [self.numbers.get(part, 0) for part in parts]
        return ids if all(ids) and len(ids) <= self._said_words else None

    def _slot(self, asked: StoryExample, place: int) -> int:
        """The slot of a sentence; below 0 for one that the memory dropped."""
        return place - max(0, len(asked.sentences) - self._memory)

    def _kept(self, rows: Sequence[int], edits: Sequence[Edit], *, elsewhere: bool = True) -> Tensor:
        """Which slot each slot of the changed stories comes from (B,S+1), −1 for none.

        Args:
            rows: the questions that were changed.
            edits: the changed stories.
            elsewhere: count the last column, weight on no sentence, as the same in both.
        """
        kept = torch.full((len(edits), self._memory + 1), -1)
        for at, (row, edit) in enumerate(zip(rows, edits)):
            for place, source in enumerate(edit.kept):
                slot = self._slot(edit.asked, place)
                if slot >= 0 and source >= 0:
                    kept[at, slot] = max(-1, self._slot(self.asked[row], source))
        if elsewhere:
            kept[:, -1] = self._memory
        return kept

    @staticmethod
    def _hold(first: SentenceWeights, seen: SentenceWeights, rows: Sequence[int], kept: Tensor) -> Tensor:
        """Mean over the looks of how much of their weights held (B,); a look counts where it took place both times."""
        held = []
        for name, after in seen.looks.items():
            both = seen.active[name] & first.active[name][rows]
            held.append(torch.where(both, weights_hold(first.looks[name][rows], after, kept), torch.nan))
        return torch.stack(held).nanmean(0)

    def _spread(self, values: Tensor, rows: Sequence[int]) -> Tensor:
        """Values of some rows among all questions (N,), NaN elsewhere."""
        spread = torch.full((len(self.asked),), torch.nan, dtype=torch.double)
        spread[torch.tensor(rows, dtype=torch.long)] = values.double()
        return spread
