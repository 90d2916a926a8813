"""Scores of models that answer questions about stories: answers by task, looks at supporting facts, causal tests.

A score is a fraction, but for ``failed_tasks``, a number of tasks. Intervals resample whole stories.

Questions about one story lie side by side in a file, and the later ones of a story are harder. So neither the first
questions of a file nor every k-th one are a fair sample: a limit takes whole stories, and keeps the share of each task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor

from saccade.families.story import tensors
from saccade.families.story.causal import CausalTests, weight_edits
from saccade.families.story.stories import StoryExample, answer_tokens, words_of
from saccade.metrics import slots
from saccade.metrics.intervals import ByName, Interval, mean_interval
from saccade.metrics.result import CountValue, Scores, Summary, only_defined
from saccade.models.facts import ModelFacts
from saccade.models.story import StoryModel
from saccade.tasks.evaluate import Job, Kept, Scoring

FAILED = 0.05
"""A task with a larger error counts as failed, as in Weston et al. 2015."""
BEST = "support_hit_best_look"
CAUSAL = 500
"""Questions of the causal tests, drawn from those that are scored."""
SUPERVISED = "supervised: the looks were taught the supporting facts"
LEFT_OUT = "the supporting facts said which sentences of its training stories could be left out"
RECURRENT = "facts carry the sentences before them, so a look is not about one sentence alone"


def unknown_words(asked: Sequence[StoryExample], words: Sequence[str], *, by_word: bool = False) -> str:
    """Which words of questions, stories and answers a model with these ``words`` does not know; "" for none."""
    known = frozenset(words)
    texts = {text for each in asked for text in (*each.sentences, each.question)}
    unknown = sorted({word for text in texts for word in words_of(text)} - known)
    unanswerable = sum(not known.issuperset(answer_tokens(each.answer, by_word=by_word)) for each in asked)
    some = f"{', '.join(unknown[:10])}{' …' if len(unknown) > 10 else ''}"
    missing = [f"{len(unknown)} of the words ({some})"] if unknown else []
    missing += [f"a word of {unanswerable:,} answers"] if unanswerable else []
    return f"the model does not know {', nor '.join(missing)}" if missing else ""


def taught_note(facts: ModelFacts) -> str:
    """What has to be said with the scores of a model that learned from supporting facts; "" of others."""
    phases = facts.recipe.get("phases", ())
    is_supervised = any((phase.get("loss") or {}).get("name") == "gated" for phase in phases)
    return "; ".join([SUPERVISED] * is_supervised + [LEFT_OUT] * bool(facts.data.get("leave_out", 0)))


def story_numbers(asked: Sequence[StoryExample]) -> Tensor:
    """Which story each question is about (N,). It is that of the question before if it goes on with its sentences."""
    is_new = [not each.goes_on(before) for before, each in pairwise(asked)]
    return torch.tensor([False, *is_new][: len(asked)], dtype=torch.long).cumsum(0)


def sample_questions(asked: Sequence[StoryExample], limit: int) -> list[StoryExample]:
    """At most ``limit`` questions, in their order; every task gets its share of them.

    Within a task, stories are taken in the order of a hash of task and number. Of the last story there may be room for
    some questions only; a hash says which.
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
    for task in sorted(places, key=lambda task: (shares[task] - exact[task], _hash(task)))[:left]:
        shares[task] += 1
    kept: list[int] = []
    for task, own in places.items():
        keys = {}
        for number, place in enumerate(own):
            story = numbers[place] - numbers[own[0]]  # the same whichever tasks are asked beside this one
            keys[place] = (_hash(task, story), _hash(task, story, number))
        kept += sorted(own, key=keys.__getitem__)[: shares[task]]
    return [asked[place] for place in sorted(kept)]


def _hash(*parts: object) -> bytes:
    text = "\n".join(map(str, (0, *parts)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


SCORES = {
    "support_hit": slots.support_hit, "support_rank": slots.support_rank, "support_mass": slots.support_mass
}  # fmt: skip
RANDOM = "random_looks"
"""The rival with as many looks as the model made, each at one sentence drawn at random."""


ScoresOf = dict[str, dict[str, Tensor]]


def look_scores(
    seen: tensors.SentenceWeights, batch: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], ScoresOf, ScoresOf]:
    """Scores (B,) by the ``supporting`` facts (B,F) of a batch: of all looks together, of each, and of each rival."""
    facts = tensors.supporting_slots(batch["supporting"].cpu(), seen.present)  # (B,S) bool
    on_sentences = torch.nn.functional.pad(seen.present, (0, 1))  # (B,S+1)
    elsewhere = "end_mass" if seen.has_end else "empty_mass"

    def rated(weights: Tensor) -> dict[str, Tensor]:
        return {score: scored(weights[:, :-1], facts, seen.present) for score, scored in SCORES.items()}

    def rated_whole(weights: Tensor) -> dict[str, Tensor]:
        return rated(weights) | {elsewhere: slots.mass_elsewhere(weights, on_sentences)}

    def found_by(looks: tensors.SentenceWeights) -> dict[str, Tensor]:
        taken = [weights[:, :-1] * looks.active[name].unsqueeze(1) for name, weights in looks.looks.items()]
        return {"support_found": slots.support_found(taken, facts, seen.present)}

    by_look = {}
    for name, weights in seen.looks.items():
        active = seen.active[name]
        by_look[name] = {score: torch.where(active, value, torch.nan) for score, value in rated_whole(weights).items()}
        by_look[name] |= {"active": active} if seen.has_end else {}
    maps = tensors.rival_maps(batch)
    rivals = {name: rated(rival.total) | found_by(rival) for name, rival in maps.items()}
    rivals[RANDOM] = found_by(seen._replace(looks=dict.fromkeys(seen.looks, maps["uniform"].total)))
    return rated_whole(seen.total) | found_by(seen), by_look, rivals


BATCH = 500


@dataclass
class StoryKept(Kept):
    """With the looks at sentences; ``tested`` and ``tested_task`` are story and task of the causal tests' questions."""

    by_look: ByName = field(default_factory=ByName)
    """Scores of single looks; those of all looks together are ``acts``."""


class StoryScoring(Scoring):
    """Measures a model, in eval mode and with these ``words``, on questions about stories.

    ``limit`` takes at most so many questions, as :func:`sample_questions` does; of these ``causal`` are drawn for the
    causal tests.
    """

    together, kept = BATCH, StoryKept
    note = ""
    """What must be known of the scores."""

    def __init__(
        self, model: StoryModel, asked: Sequence[StoryExample], words: Sequence[str], limit: int | None, causal: int
    ) -> None:
        self.asked = asked if limit is None else sample_questions(asked, limit)
        self.model, self.words, self.causal = model, words, causal
        self.tensors = tensors.as_tensors(model, self.asked, words)
        self.numbers = torch.arange(len(self.asked))
        self.stories = story_numbers(self.asked)  # (N,)

    def measure(self, numbers: Tensor, before: int) -> StoryKept:
        """Answers to the questions ``numbers`` (B,), and looks at their sentences."""
        kept, batch = StoryKept(), tensors.batch_for(self.model, self.tensors, numbers)
        raw = tensors.respond(self.model, batch)
        kept.answers.add_values({"accuracy": tensors.is_right(tensors.said(raw), batch["answer"])})
        kept.columns.append(task=batch["task"].cpu(), story=self.stories[numbers])
        if (seen := tensors.sentence_weights(self.model, raw, batch["story"])) is not None:
            total, by_look, rivals = look_scores(seen, batch)
            kept.columns.append(act_picture=self.stories[numbers])
            kept.acts.add_values(total)
            for into, by_name in ((kept.by_look, by_look), (kept.rivals, rivals)):
                for name, values in by_name.items():
                    into.add_values(name, values)
        return kept

    def further(self) -> Iterator[Job]:
        """The causal tests, and edited weights, of questions that are drawn."""
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randperm(len(self.asked), generator=generator)[: self.causal].sort().values
        yield from ((self._tested, part) for part in torch.split(drawn, BATCH) if len(part))

    def _tested(self, numbers: Tensor) -> StoryKept:
        kept, asked = StoryKept(), [self.asked[number] for number in numbers.tolist()]
        tests = CausalTests(self.model, asked, self.words)
        kept.causal.add_values(tests.scores)
        for name, scores in tests.rivals.items():
            kept.rivals.add_values(name, scores)
        kept.columns.append(tested=self.stories[numbers], tested_task=self.tensors.task[numbers].cpu())
        kept.edits.join(weight_edits(self.model, asked, self.words, self.stories[numbers]))
        return kept

    def scores(self, kept: Kept) -> dict[str, Any]:
        """Answers by task, looks at supporting facts, and the causal tests."""
        kept = cast(StoryKept, kept)
        story, (metrics, intervals) = kept.columns["story"], self._answers(kept)
        measured = [(kept.answers, story)]
        if kept.causal.names:
            measured.append((kept.causal, kept.columns["tested"]))
        attention: Scores = {**only_defined(kept.causal.means())}
        if kept.by_look:
            looks = {name: only_defined(means) for name, means in kept.by_look.means().items()}
            hits = [means["support_hit"] for means in looks.values() if "support_hit" in means]
            attention |= {**({BEST: max(hits)} if hits else {}), "by_look": looks}
        rivals = {name: only_defined(means) for name, means in kept.rivals.means().items()}
        counts = {"stories": int(self.stories.max()) + 1, **self._without(kept)}
        return {
            "n": len(story),
            "metrics": metrics,
            "measured": measured,
            "attention": attention,
            "baselines": {name: {BEST: each["support_hit"]} for name, each in rivals.items() if "support_hit" in each},
            "intervals": intervals,
            "counts": {**counts, **{name: held.n for name, held in intervals.items()}},
        }

    def details(self, kept: Kept, summary: Summary) -> Mapping[str, Any]:
        """The note, if there is one; and what a score counts that is no fraction."""
        units = {"units": {"failed_tasks": "task"}} if "failed_tasks" in summary["metrics"] else {}
        return units | ({"note": self.note} if self.note else {})

    def _without(self, kept: StoryKept) -> dict[str, CountValue]:
        """``tasks_without``: by score, the tasks that were tested and of which no question has it."""
        lacking: dict[str, list[str]] = {}
        if kept.causal.names and any(self.tensors.task_names):
            for score, values in kept.causal.values().items():
                for number, name in enumerate(self.tensors.task_names):
                    own = values[kept.columns["tested_task"] == number]
                    if len(own) and bool(own.isnan().all()):
                        lacking.setdefault(score, []).append(name)
        return {"tasks_without": lacking} if lacking else {}

    def _answers(self, kept: StoryKept) -> tuple[Scores, dict[str, Interval]]:
        """Scores of answers, and the intervals of those that are no mean over all questions."""
        right, task, story = kept.answers["accuracy"], kept.columns["task"], kept.columns["story"]
        names = self.tensors.task_names
        metrics: Scores = {**kept.answers.means()}
        intervals: dict[str, Interval] = {}
        for number, name in enumerate(names):
            if name:
                own = task == number
                intervals[f"accuracy_{name}"] = mean_interval(right[own], story[own])
        metrics |= {name: interval.mean for name, interval in intervals.items()}
        if intervals:
            errors = [round(1 - interval.mean, 9) for interval in intervals.values()]
            failed = sum(error > FAILED for error in errors)  # exactly 5 % has not failed
            size = torch.bincount(task, minlength=len(names)).double()  # (T,) questions of each task
            even = len(right) / (len(names) * size[task])  # (N,): every task counts alike
            intervals["mean_error"] = mean_interval((1 - right) * even, story, ends=(0.0, float(even.max())))
            metrics |= {"mean_error": intervals["mean_error"].mean, "failed_tasks": failed}
        return metrics, intervals
