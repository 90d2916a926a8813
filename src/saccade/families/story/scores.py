"""Scores of models that answer questions about stories: answers by task, looks at supporting facts, causal tests.

A score is a fraction, but for ``failed_tasks``, a number of tasks. Intervals resample whole stories.

The later questions of a story are harder, so a limit takes whole stories, and keeps the share of each task.
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
from saccade.tasks.evaluate import Job, Measurements, Scoring

FAILED = 0.05  # Tasks with a larger error have failed, as in Weston et al. 2015.
BEST = "support_hit_best_look"
CAUSAL = 500  # Questions of the causal tests, a sample
SUPERVISED = "supervised: the looks were taught the supporting facts"
LEFT_OUT = "the supporting facts said which sentences of its training stories could be left out"
RECURRENT = "facts carry the sentences before them, so a look is not about one sentence alone"


def unknown_words(examples: Sequence[StoryExample], words: Sequence[str], *, by_word: bool = False) -> str:
    """A note on the words of questions, stories and answers outside ``words``; "" if there are none."""
    vocabulary = frozenset(words)
    texts = {text for example in examples for text in (*example.sentences, example.question)}
    unknown = sorted({word for text in texts for word in words_of(text)} - vocabulary)
    answers = [answer_tokens(example.answer, by_word=by_word) for example in examples]
    unanswerable = sum(not vocabulary.issuperset(tokens) for tokens in answers)
    some = f"{', '.join(unknown[:10])}{' …' if len(unknown) > 10 else ''}"
    missing = [f"{len(unknown)} of the words ({some})"] if unknown else []
    missing += [f"a word of {unanswerable:,} answers"] if unanswerable else []
    return f"the model does not know {', nor '.join(missing)}" if missing else ""


def taught_note(facts: ModelFacts) -> str:
    """A note for a model that learned from supporting facts; else ""."""
    phases = facts.recipe.get("phases", ())
    is_supervised = any((phase.get("loss") or {}).get("name") == "gated" for phase in phases)
    return "; ".join([SUPERVISED] * is_supervised + [LEFT_OUT] * bool(facts.data.get("leave_out", 0)))


def story_numbers(examples: Sequence[StoryExample]) -> Tensor:
    """The story of each question (N,): the previous one's if its sentences go on."""
    is_new = [not example.goes_on(before) for before, example in pairwise(examples)]
    return torch.tensor([False, *is_new][: len(examples)], dtype=torch.long).cumsum(0)


def sample_questions(examples: Sequence[StoryExample], limit: int) -> list[StoryExample]:
    """At most ``limit`` questions, in order; every task keeps its share.

    Within a task, stories are ordered by a hash of task and number.
    """
    if limit >= len(examples):
        return list(examples)
    numbers = story_numbers(examples).tolist()
    places: dict[str, list[int]] = {}
    for place, example in enumerate(examples):
        places.setdefault(example.task, []).append(place)
    exact = {task: limit * len(task_places) / len(examples) for task, task_places in places.items()}
    shares = {task: int(share) for task, share in exact.items()}
    left = limit - sum(shares.values())
    for task in sorted(places, key=lambda task: (shares[task] - exact[task], _hash(task)))[:left]:
        shares[task] += 1
    chosen: list[int] = []
    for task, task_places in places.items():
        keys = {}
        for number, place in enumerate(task_places):
            story = numbers[place] - numbers[task_places[0]]  # the same whichever tasks are asked beside this one
            keys[place] = (_hash(task, story), _hash(task, story, number))
        chosen += sorted(task_places, key=keys.__getitem__)[: shares[task]]
    return [examples[place] for place in sorted(chosen)]


def _hash(*parts: object) -> bytes:
    text = "\n".join(map(str, (0, *parts)))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


SCORES = {
    "support_hit": slots.support_hit, "support_rank": slots.support_rank, "support_mass": slots.support_mass
}  # fmt: skip
RANDOM = "random_looks"  # A rival with as many looks, each at a random sentence


ScoresOf = dict[str, dict[str, Tensor]]


def look_scores(
    looks: tensors.SentenceWeights, batch: Mapping[str, Tensor]
) -> tuple[dict[str, Tensor], ScoresOf, ScoresOf]:
    """Scores (B,) by the ``supporting`` facts (B,F) of a batch: of all looks, of each look, and of each rival."""
    facts = tensors.supporting_slots(batch["supporting"].cpu(), looks.present)  # (B,S) bool
    on_sentences = torch.nn.functional.pad(looks.present, (0, 1))  # (B,S+1)
    elsewhere = "end_mass" if looks.has_end else "empty_mass"

    def rated(weights: Tensor) -> dict[str, Tensor]:
        return {score: scored(weights[:, :-1], facts, looks.present) for score, scored in SCORES.items()}

    def rated_whole(weights: Tensor) -> dict[str, Tensor]:
        return rated(weights) | {elsewhere: slots.mass_elsewhere(weights, on_sentences)}

    def found_facts(other: tensors.SentenceWeights) -> dict[str, Tensor]:
        taken = [weights[:, :-1] * other.active[name].unsqueeze(1) for name, weights in other.looks.items()]
        return {"support_found": slots.support_found(taken, facts, looks.present)}

    by_look = {}
    for name, weights in looks.looks.items():
        active = looks.active[name]
        by_look[name] = {score: torch.where(active, value, torch.nan) for score, value in rated_whole(weights).items()}
        by_look[name] |= {"active": active} if looks.has_end else {}
    maps = tensors.rival_maps(batch)
    rivals = {name: rated(rival.total) | found_facts(rival) for name, rival in maps.items()}
    rivals[RANDOM] = found_facts(looks._replace(looks=dict.fromkeys(looks.looks, maps["uniform"].total)))
    return rated_whole(looks.total) | found_facts(looks), by_look, rivals


BATCH = 500


@dataclass
class StoryMeasurements(Measurements):
    """Adds looks at sentences; ``tested`` and ``tested_task`` are story and task of the causally tested questions."""

    by_look: ByName = field(default_factory=ByName)  # Scores of single looks; those of all looks are ``acts``


class StoryScoring(Scoring):
    """Measures a model, in eval mode and with these ``words``, on questions about stories.

    ``limit`` is that of :func:`sample_questions`; ``causal`` of these questions are drawn for the causal tests.
    """

    together, measurements = BATCH, StoryMeasurements
    note = ""  # A note for the scores

    def __init__(
        self, model: StoryModel, examples: Sequence[StoryExample], words: Sequence[str], limit: int | None, causal: int
    ) -> None:
        self.examples = examples if limit is None else sample_questions(examples, limit)
        self.model, self.words, self.causal = model, words, causal
        self.tensors = tensors.as_tensors(model, self.examples, words)
        self.numbers = torch.arange(len(self.examples))
        self.stories = story_numbers(self.examples)  # (N,)

    def measure(self, numbers: Tensor, before: int) -> StoryMeasurements:
        """Answers to the questions ``numbers`` (B,), and looks at their sentences."""
        measured, batch = StoryMeasurements(), tensors.batch_for(self.model, self.tensors, numbers)
        raw = tensors.respond(self.model, batch)
        measured.answers.add_values({"accuracy": tensors.is_right(tensors.predictions(raw), batch["answer"])})
        measured.columns.append(task=batch["task"].cpu(), story=self.stories[numbers])
        if (looks := tensors.sentence_weights(self.model, raw, batch["story"])) is not None:
            total, by_look, rivals = look_scores(looks, batch)
            measured.columns.append(act_picture=self.stories[numbers])
            measured.acts.add_values(total)
            for into, by_name in ((measured.by_look, by_look), (measured.rivals, rivals)):
                for name, values in by_name.items():
                    into.add_values(name, values)
        return measured

    def further(self) -> Iterator[Job]:
        """Causal tests and edited weights of drawn questions."""
        generator = torch.Generator().manual_seed(0)
        drawn = torch.randperm(len(self.examples), generator=generator)[: self.causal].sort().values
        yield from ((self._tested, part) for part in torch.split(drawn, BATCH) if len(part))

    def _tested(self, numbers: Tensor) -> StoryMeasurements:
        measured, examples = StoryMeasurements(), [self.examples[number] for number in numbers.tolist()]
        tests = CausalTests(self.model, examples, self.words)
        measured.causal.add_values(tests.scores)
        for name, scores in tests.rivals.items():
            measured.rivals.add_values(name, scores)
        measured.columns.append(tested=self.stories[numbers], tested_task=self.tensors.task[numbers].cpu())
        measured.edits.join(weight_edits(self.model, examples, self.words, self.stories[numbers]))
        return measured

    def scores(self, measured: Measurements) -> dict[str, Any]:
        """Answers by task, looks at supporting facts, and the causal tests."""
        measured = cast(StoryMeasurements, measured)
        story, (metrics, intervals) = measured.columns["story"], self._answers(measured)
        values = [(measured.answers, story)]
        if measured.causal.names:
            values.append((measured.causal, measured.columns["tested"]))
        attention: Scores = {**only_defined(measured.causal.means())}
        if measured.by_look:
            looks = {name: only_defined(means) for name, means in measured.by_look.means().items()}
            hits = [means["support_hit"] for means in looks.values() if "support_hit" in means]
            attention |= {**({BEST: max(hits)} if hits else {}), "by_look": looks}
        rivals = {name: only_defined(means) for name, means in measured.rivals.means().items()}
        counts = {"stories": int(self.stories.max()) + 1, **self._without(measured)}
        return {
            "n": len(story),
            "metrics": metrics,
            "measured": values,
            "attention": attention,
            "baselines": {
                name: {BEST: means["support_hit"]} for name, means in rivals.items() if "support_hit" in means
            },
            "intervals": intervals,
            "counts": {**counts, **{name: interval.n for name, interval in intervals.items()}},
        }

    def details(self, measured: Measurements, summary: Summary) -> Mapping[str, Any]:
        """The note, if any, and units of scores that are no fractions."""
        units = {"units": {"failed_tasks": "task"}} if "failed_tasks" in summary["metrics"] else {}
        return units | ({"note": self.note} if self.note else {})

    def _without(self, measured: StoryMeasurements) -> dict[str, CountValue]:
        """``tasks_without``: by score, the tested tasks without a question that has it."""
        lacking: dict[str, list[str]] = {}
        if measured.causal.names and any(self.tensors.task_names):
            for score, values in measured.causal.values().items():
                for number, name in enumerate(self.tensors.task_names):
                    task_values = values[measured.columns["tested_task"] == number]
                    if len(task_values) and bool(task_values.isnan().all()):
                        lacking.setdefault(score, []).append(name)
        return {"tasks_without": lacking} if lacking else {}

    def _answers(self, measured: StoryMeasurements) -> tuple[Scores, dict[str, Interval]]:
        right, task, story = measured.answers["accuracy"], measured.columns["task"], measured.columns["story"]
        names = self.tensors.task_names
        metrics: Scores = {**measured.answers.means()}
        intervals: dict[str, Interval] = {}
        for number, name in enumerate(names):
            if name:
                is_task = task == number
                intervals[f"accuracy_{name}"] = mean_interval(right[is_task], story[is_task])
        metrics |= {name: interval.mean for name, interval in intervals.items()}
        if intervals:
            errors = [round(1 - interval.mean, 9) for interval in intervals.values()]
            failed = sum(error > FAILED for error in errors)  # exactly 5 % has not failed
            size = torch.bincount(task, minlength=len(names)).double()  # (T,) questions of each task
            even = len(right) / (len(names) * size[task])  # (N,): every task counts alike
            intervals["mean_error"] = mean_interval((1 - right) * even, story, ends=(0.0, float(even.max())))
            metrics |= {"mean_error": intervals["mean_error"].mean, "failed_tasks": failed}
        return metrics, intervals
