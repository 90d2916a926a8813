"""Causal tests of models of stories: the story is changed and asked again; answer and weights are read both times.

=====================  =========================================================================================
a supporting fact is removed
``causal_change``      the answer changes, among questions whose answer is then another one by the rules
``causal_follow``      it becomes that other one
``change_rate``        the answer changes, among all questions
``weight_follow``      the share of the gained weight that lies on the facts which the new answer follows from; 0 where
                       no weight was gained
``weight_to_nothing``  the share of the gained weight that lies on no sentence: on empty slots or the end fact
another sentence is removed, reworded or replaced (``_removed``, ``_reworded``, ``_replaced``; without: their mean)
``causal_hold``        the answer stays, right or wrong
``weights_hold``       1 − total variation of the weights over the sentences that stayed, mean over the looks
two names are exchanged in story, question and answer
``swap_follow``        among questions whose answer is one of the two: the answer was one of them, and becomes the other
``swap_hold``          among the others: the answer stays
``swap_weights_hold``  1 − total variation of the weights, mean over the looks
weights are edited: the heaviest sentence gets none
``edit_agrees_LOOK``   in one look: the answer is that to the story without this sentence
``edit_agrees_all``    the heaviest sentence of all looks together, in all of them: likewise
``edit_agrees_where``  the same among questions whose answer changes when that sentence is removed
``…_random``           beside each of these: the weight is taken from another sentence, drawn at random
=====================  =========================================================================================

``weight_follow``, ``weights_hold`` and ``swap_weights_hold`` have rivals: maps that need no model, made for the story
before and after the same change. Weights that hold say nothing by themselves, as those of a constant map hold too; they
count beside weights that follow. Agreement near its random row means that the weights do not tell what the answer rests
on: an answer that no edit changes agrees with any.

Edited weights are used as they are: nothing is normalised again, and in ``all`` the later looks keep the weights that
they had. A dynamic memory network reads the story with a recurrent net, so each of its facts carries the sentences
before. Its weights are not about one sentence alone, and taking a sentence out changes all facts after it. A lower
agreement is to be expected there.

How a sentence is reworded: "went to" for "moved to" and the like. How it is replaced: by a sentence of another story of
the task, never of its own, that shares no name or thing with question, answer and supporting facts. Where the rules say
that such a change would change the answer, another one is drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
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
    replaced,
    reworded,
    rules_know,
)
from saccade.families.story.sentence_scores import (
    BATCH,
    SentenceWeights,
    as_tensors,
    batch_for,
    heaviest_sentence,
    respond,
    rival_maps,
    said,
    sentence_weights,
    story_numbers,
)
from saccade.families.story.stories import StoryExample, words_of
from saccade.metrics.slots import moved_to, weights_hold
from saccade.models.base import Given
from saccade.models.story import StoryModel
from saccade.outputs import ModelOutput

WAYS = ("removed", "reworded", "replaced")
OF_MAPS = ("weight_follow", *(f"weights_hold{way}" for way in ("", *(f"_{way}" for way in WAYS))), "swap_weights_hold")
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
        self.batch, self.raw = self._respond(asked)
        self.answers, self.seen, self.rival_seen = self._read(self.batch, self.raw)
        self._scored: dict[str, dict[str, Tensor]] = {name: {} for name in self.rival_seen}

    def scores(self) -> dict[str, Tensor]:
        """Every score (N,), NaN for a question that it is not defined for."""
        found = (
            self._without_fact() | self._without_other() | self._with_names_exchanged() | self._with_edited_weights()
        )
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
        hold = [name + way for name in ("causal_hold", "weights_hold") for way in ("", *(f"_{way}" for way in WAYS))]
        looks = () if self.seen is None else (*self.seen.looks, "all", "where")
        names = ("causal_change", "causal_follow", "change_rate", "weight_follow", "weight_to_nothing", *hold)
        edits = [f"edit_agrees_{look}{which}" for look in looks for which in ("", "_random")]
        return (*names, "swap_follow", "swap_hold", "swap_weights_hold", *edits)

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
        """A sentence that the answer does not need is taken out, reworded or replaced."""
        vocabulary = set(self.words) - {""}
        stories = story_numbers(self.asked).tolist()
        pool = {(each.task, story, text): None for each, story in zip(self.asked, stories) for text in each.sentences}
        elsewhere = {
            (task, own): [text for other, story, text in pool if other == task and story != own]
            for task, own, _ in pool
        }  # sentences of other stories of the task
        numbers = {id(each): story for each, story in zip(self.asked, stories)}
        makes: dict[str, Callable[[StoryExample, int], Edit | None]] = {
            "removed": removed,
            "reworded": lambda asked, place: reworded(asked, place, vocabulary, self.draw),
            "replaced": lambda asked, place: replaced(
                asked, place, elsewhere[asked.task, numbers[id(asked)]], self.draw
            ),
        }
        found: dict[str, Tensor] = {}
        for way, make in makes.items():
            edits = {row: edit for row, each in enumerate(self.asked) if (edit := self._harmless(row, each, make))}
            rows, changed, (answers, seen, rivals) = self._changed(edits)
            stays = (answers == self.answers[rows]).all(1).double()
            found[f"causal_hold_{way}"] = self._spread(stays, rows)
            if seen is not None and self.seen is not None and rows:
                found |= self._holds(f"weights_hold_{way}", self.seen, seen, rivals, rows, changed)
        for score, held in (
            ("causal_hold", found),
            *(("weights_hold", each) for each in (found, *self._scored.values())),
        ):
            ways = [held[f"{score}_{way}"] for way in WAYS if f"{score}_{way}" in held]
            if ways:
                held[score] = torch.stack(ways).nanmean(0)
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

    def _with_edited_weights(self) -> dict[str, Tensor]:
        """The heaviest sentence gets no weight, in one look and in all; beside the story without that sentence."""
        if self.seen is None:
            return {}
        total = heaviest_sentence(self.seen.total, self.seen.present)
        slots = {**self.seen.heaviest, "all": total}  # by look: (N,)
        removals = dict.fromkeys(
            (row, at) for slot in slots.values() for row, at in enumerate(slot.tolist()) if self.asked[row].sentences
        )  # looks often agree, so each story is asked once
        stories = [removed(self.asked[row], self._place(row, at)).asked for row, at in removals]
        parts = (stories[start : start + BATCH] for start in range(0, len(stories), BATCH))
        without = dict(zip(removals, (each for part in parts for each in self._ask(part).answers)))
        found: dict[str, Tensor] = {}
        for name, slot in slots.items():
            looks = tuple(self.seen.looks) if name == "all" else (name,)
            target = torch.stack([without.get((row, at), self.answers[row]) for row, at in enumerate(slot.tolist())])
            other = self._another(slot, self.seen.present)
            took_place = self.seen.present.any(1) & self.seen.active.get(name, torch.tensor(True))
            drawn = ("_random", other.clamp(min=0), took_place & (other >= 0))
            for which, at, is_there in (("", slot, took_place), drawn):
                same = (self._edited(looks, at) == target).all(1).double()
                found[f"edit_agrees_{name}{which}"] = torch.where(is_there, same, torch.nan)
                if name == "all":
                    matters = is_there & (target != self.answers).any(1)
                    found[f"edit_agrees_where{which}"] = torch.where(matters, same, torch.nan)
        return found

    def _another(self, slot: Tensor, present: Tensor) -> Tensor:
        """A slot (N,) drawn from the sentences in memory but ``slot`` (N,); −1 where there is no other."""
        found = []
        for row, own in enumerate(slot.tolist()):
            others = [at for at in range(int(present[row].sum())) if at != own]
            found.append(self.draw.choice(others) if others else -1)
        return torch.tensor(found, dtype=torch.long)

    def _edited(self, looks: Sequence[str], slot: Tensor) -> Tensor:
        """Ids of the answers (N,A) when sentence ``slot`` (N,) gets no weight in ``looks``."""
        at = slot.to(self.raw["logits"].device).unsqueeze(1)  # (N,1)
        attention: Given = {name: self.raw[f"{name}.weights"].scatter(1, at, 0.0) for name in looks}
        return said(respond(self.model, self.batch, attention)).cpu()

    @property
    def _memory(self) -> int:
        return int(self.model.config.memory)

    def _place(self, row: int, slot: int) -> int:
        """The number of the sentence in a slot."""
        return slot + max(0, len(self.asked[row].sentences) - self._memory)

    def _ask(self, asked: Sequence[StoryExample]) -> Asking:
        """What the model says and sees."""
        if not asked:
            return Asking(torch.zeros(0, self._said_words, dtype=torch.long), None, {})
        return self._read(*self._respond(asked))

    def _respond(self, asked: Sequence[StoryExample]) -> tuple[dict[str, Tensor], ModelOutput]:
        """The questions as a batch, and what the model computes for it."""
        tensors = as_tensors(self.model, asked, self.words)
        batch = batch_for(self.model, tensors, torch.arange(tensors.size))
        return batch, respond(self.model, batch)

    def _read(self, batch: Mapping[str, Tensor], raw: ModelOutput) -> Asking:
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

    def _harmless(self, row: int, asked: StoryExample, make: Callable[[StoryExample, int], Edit | None]) -> Edit | None:
        """A change of a sentence that is no supporting fact, after which the answer is the same by the rules.

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
