"""Causal tests of models of stories: the story is changed and asked again; answer and weights are read both times.

=====================  =========================================================================================
a supporting fact is removed
``causal_change``      the answer changes, among questions whose answer is then another one by the rules
``causal_follow``      it becomes that other one
``change_rate``        the answer changes, among all questions
``weight_follow``      the share of the gained weight that lies on the facts which the new answer follows from
``weight_to_nothing``  the share of the gained weight that lies on no sentence: on empty slots or the end fact
another sentence is removed, reworded or replaced (``_removed``, ``_reworded``, ``_replaced``; without: their mean)
``causal_hold``        the answer stays, right or wrong
``weights_hold``       1 − total variation of the weights over the sentences that stayed, mean over the looks
two names are exchanged in story, question and answer
``swap_follow``        the answer is the first one with the names exchanged
``swap_weights_hold``  1 − total variation of the weights, mean over the looks
weights are edited: the heaviest sentence gets none
``edit_agrees_LOOK``   in one look: the answer is that to the story without this sentence
``edit_agrees_all``    the heaviest sentence of all looks together, in all of them: likewise
``edit_agrees_where``  the same among questions whose answer changes when that sentence is removed
=====================  =========================================================================================

Edited weights are used as they are: nothing is normalised again, and in ``all`` the later looks keep the weights that
they had. A dynamic memory network reads the story with a recurrent net, so each of its facts carries the sentences
before. Its weights are not about one sentence alone, and taking a sentence out changes all facts after it. A lower
agreement is to be expected there.

How a sentence is reworded: "went to" for "moved to" and the like. How it is replaced: by a sentence of another story of
the task that shares no name or thing with question, answer and supporting facts. Where the rules say that such a change
would change the answer, another one is drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from saccade.families.story.edits import (
    TRIES,
    Edit,
    exchanged,
    names_in,
    pairs_of_names,
    removed,
    replaced,
    reworded,
    rules_know,
)
from saccade.families.story.responding import as_tensors, batch_for, respond, said
from saccade.families.story.sentence_weights import SentenceWeights, heaviest_sentence, sentence_weights
from saccade.families.story.stories import Asked
from saccade.metrics.slots.changes import moved_to, weights_hold
from saccade.models.base import Given
from saccade.models.story import StoryModel

WAYS = ("removed", "reworded", "replaced")


class CausalTests:
    """Causal tests of one model on a sample of questions.

    Args:
        model: what is tested.
        asked: the sample.
        words: the vocabulary of the model.
        seed: of what is drawn: sentences, wordings, names.
    """

    def __init__(self, model: StoryModel, asked: Sequence[Asked], words: Sequence[str], *, seed: int = 0) -> None:
        self.model, self.asked, self.words = model, asked, words
        self.numbers = {word: number for number, word in enumerate(words)}
        self.draw = random.Random(seed)
        self.known = [rules_know(each) for each in asked]
        self.answers, self.seen = self._ask(asked)

    def scores(self) -> dict[str, Tensor]:
        """Every score (N,), NaN for a question that it is not defined for."""
        found = (
            self._without_fact() | self._without_other() | self._with_names_exchanged() | self._with_edited_weights()
        )
        undefined = torch.full((len(self.asked),), torch.nan, dtype=torch.double)
        return {name: found.get(name, undefined) for name in self._names}

    @property
    def _names(self) -> tuple[str, ...]:
        """Every score that a model of this kind can have, whatever questions there are."""
        hold = [name + way for name in ("causal_hold", "weights_hold") for way in ("", *(f"_{way}" for way in WAYS))]
        looks = () if self.seen is None else (*self.seen.looks, "all", "where")
        names = ("causal_change", "causal_follow", "change_rate", "weight_follow", "weight_to_nothing", *hold)
        return (*names, "swap_follow", "swap_weights_hold", *(f"edit_agrees_{look}" for look in looks))

    # ------------------------------------------------------------ changes

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
        rows, changed, answers, seen = self._changed(edits)
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
            follows = moved_to(before, after, kept, facts_now)
            result["weight_follow"] = torch.where(facts_now.any(1), follows, torch.nan)
            result["weight_to_nothing"] = moved_to(before, after, kept, nowhere)
        return {name: self._spread(values, rows) for name, values in result.items()}

    def _without_other(self) -> dict[str, Tensor]:
        """A sentence that the answer does not need is taken out, reworded or replaced."""
        vocabulary = set(self.words) - {""}
        pool: dict[str, list[str]] = {}
        for each in self.asked:
            pool.setdefault(each.task, []).extend(each.sentences)
        makes: dict[str, Callable[[Asked, int], Edit | None]] = {
            "removed": removed,
            "reworded": lambda asked, place: reworded(asked, place, vocabulary, self.draw),
            "replaced": lambda asked, place: replaced(asked, place, pool[asked.task], self.draw),
        }
        found: dict[str, Tensor] = {}
        for way, make in makes.items():
            edits = {row: edit for row, each in enumerate(self.asked) if (edit := self._harmless(row, each, make))}
            rows, changed, answers, seen = self._changed(edits)
            stays = (answers == self.answers[rows]).all(1).double()
            found[f"causal_hold_{way}"] = self._spread(stays, rows)
            if seen is not None and self.seen is not None and rows:
                held = self._hold(self.seen, seen, rows, self._kept(rows, changed, elsewhere=False))
                found[f"weights_hold_{way}"] = self._spread(held, rows)
        for score in ("causal_hold", "weights_hold"):
            ways = [found[f"{score}_{way}"] for way in WAYS if f"{score}_{way}" in found]
            if ways:
                found[score] = torch.stack(ways).nanmean(0)
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
        rows, changed, answers, seen = self._changed(edits)
        expected = self.answers[rows].clone()  # (B,A)
        for at, edit in enumerate(changed):
            first, second = (self.numbers[name] for name in edit.names or ())
            before = self.answers[rows[at]]
            expected[at] = torch.where(before == first, second, torch.where(before == second, first, before))
        found = {"swap_follow": self._spread((answers == expected).all(1).double(), rows)}
        if seen is not None and self.seen is not None and rows:
            held = self._hold(self.seen, seen, rows, self._kept(rows, changed, elsewhere=False))
            found["swap_weights_hold"] = self._spread(held, rows)
        return found

    def _with_edited_weights(self) -> dict[str, Tensor]:
        """The heaviest sentence gets no weight, in one look and in all; beside the story without that sentence."""
        if self.seen is None:
            return {}
        found: dict[str, Tensor] = {}
        for name, slot in self.seen.heaviest.items():
            same, _ = self._edited_agrees(slot, (name,))
            found[f"edit_agrees_{name}"] = torch.where(self.seen.active[name], same, torch.nan)
        slot = heaviest_sentence(self.seen.total, self.seen.present)
        found["edit_agrees_all"], changes = self._edited_agrees(slot, tuple(self.seen.looks))
        found["edit_agrees_where"] = torch.where(changes, found["edit_agrees_all"], torch.nan)
        return found

    def _edited_agrees(self, slot: Tensor, names: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Whether taking weight from ``slot`` (N,) gives the answer to the story without it (N,); if that is new."""
        places = [int(at) + max(0, len(each.sentences) - self._memory) for at, each in zip(slot.tolist(), self.asked)]
        rows = [row for row, each in enumerate(self.asked) if each.sentences]
        stories = [removed(self.asked[row], places[row]).asked for row in rows]
        without, _ = self._ask(stories)
        with_edit, _ = self._ask([self.asked[row] for row in rows], zeroed=(names, slot[rows]))
        same = (without == with_edit).all(1).double()
        changes = (without != self.answers[rows]).any(1).double()
        return self._spread(same, rows), self._spread(changes, rows).nan_to_num().bool()

    # ------------------------------------------------------------ what they share

    @property
    def _memory(self) -> int:
        return int(self.model.config.memory)

    def _ask(
        self, asked: Sequence[Asked], *, zeroed: tuple[Sequence[str], Tensor] | None = None
    ) -> tuple[Tensor, SentenceWeights | None]:
        """Ids of the answers (N,A), and the looks; ``zeroed``: looks, and the slot (N,) that gets no weight in them."""
        if not asked:
            return torch.zeros(0, self._said_words, dtype=torch.long), None
        tensors = as_tensors(self.model, asked, self.words)
        batch = batch_for(self.model, tensors, torch.arange(tensors.size))
        raw = respond(self.model, batch)
        if zeroed is not None:
            names, slot = zeroed
            attention: Given = {
                name: raw[f"{name}.weights"].scatter(1, slot.to(raw["logits"].device).unsqueeze(1), 0.0)
                for name in names
            }
            raw = respond(self.model, batch, attention)
        return said(raw).cpu(), sentence_weights(self.model, raw, batch["story"])

    @property
    def _said_words(self) -> int:
        return int(getattr(self.model.config, "answer_words", 1))

    def _changed(self, edits: Mapping[int, Edit]) -> tuple[list[int], list[Edit], Tensor, SentenceWeights | None]:
        """Rows and edits in order, and what the model says and sees then."""
        answers, seen = self._ask([edit.asked for edit in edits.values()])
        return list(edits), list(edits.values()), answers, seen

    def _harmless(self, row: int, asked: Asked, make: Callable[[Asked, int], Edit | None]) -> Edit | None:
        """A change of a sentence that is no supporting fact, after which the answer is the same by the rules."""
        others = [
            place
            for place in range(max(0, len(asked.sentences) - self._memory), len(asked.sentences))
            if place not in asked.supporting
        ]
        self.draw.shuffle(others)
        for place in others[:TRIES]:
            edit = make(asked, place)
            if edit is not None and (not self.known[row] or edit.truth == asked.answer.lower()):
                return edit
        return None

    def _is_other(self, row: int, edit: Edit) -> bool:
        """Whether the rules give another answer, one that the model can say."""
        return edit.truth not in (None, self.asked[row].answer.lower()) and self._ids(edit.truth) is not None

    def _ids(self, answer: str | None) -> list[int] | None:
        """Ids of the words of an answer, as the model says them; None for one that it cannot say."""
        parts = (answer or "").split(",") if self.model.says_words else [answer or ""]
        ids = [self.numbers.get(part, 0) for part in parts]
        return ids if all(ids) and len(ids) <= self._said_words else None

    def _slot(self, asked: Asked, place: int) -> int:
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
