"""Scores of models that answer questions about stories: answers by task, looks at supporting facts, causal tests.

A score is a fraction, but for ``failed_tasks``, a number of tasks. Intervals resample whole stories.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from saccade.families.splits import config_of
from saccade.families.story.causal import CausalTests
from saccade.families.story.data import StoryDataConfig, StorySource
from saccade.families.story.edits import weight_edits
from saccade.families.story.sentence_scores import (
    BATCH,
    SupportScores,
    as_tensors,
    batch_for,
    batches,
    is_right,
    respond,
    said,
    sample_questions,
    sentence_weights,
    story_numbers,
)
from saccade.families.story.stories import AnswerForm, StoryExample, answer_tokens, words_of
from saccade.families.story.tensors import StoryTensors
from saccade.metrics.intervals import ColumnBuffer, Interval, Values, mean_interval
from saccade.metrics.maps.edits import EditScores
from saccade.metrics.result import (
    CountValue,
    Evaluation,
    Scores,
    Summary,
    evaluation,
    only_defined,
    summarise,
    without_nan,
)
from saccade.models.facts import ModelFacts
from saccade.models.story import StoryModel

FAILED = 0.05
"""A task with a larger error counts as failed, as in Weston et al. 2015."""
CAUSAL = 500
"""Questions of the causal tests, drawn from those that are scored."""
SUPERVISED = "supervised: the looks were taught the supporting facts"
LEFT_OUT = "the supporting facts said which sentences of its training stories could be left out"
RECURRENT = "facts carry the sentences before them, so a look is not about one sentence alone"

Progress = Callable[[int, int], None]


def score_stories(
    model: StoryModel,
    data: Mapping[str, object],
    split: str,
    *,
    words: Sequence[str],
    supervised: bool = False,
    left_out: bool = False,
    limit: int | None = None,
    sweeps: int | None = None,
    progress: Progress = lambda done, total: None,
) -> Evaluation:
    """Every score of a model on a split, as plain numbers.

    Args:
        model: what is scored.
        data: settings of :class:`StoryDataConfig`.
        split: train, val or test.
        words: the vocabulary of the model.
        supervised: whether its looks were taught the supporting facts; see :func:`is_supervised`.
        left_out: whether sentences of its training stories were left out; see :func:`has_left_out`.
        limit: at most so many questions: whole stories, drawn by a hash, with the share of each task kept.
        sweeps: questions of the causal tests; None: 500.
        progress: called with questions done and questions in all.
    """
    config = config_of(StoryDataConfig, data)
    scores = StoryScores(causal=CAUSAL if sweeps is None else sweeps)
    questions = scored_questions(model, config, split, words=words, limit=limit)
    scores.add(model, questions, words, progress)
    found = evaluation(scores.summary(), data=config.name.partition(":")[0], split=split)
    note = note_on(model, supervised=supervised, left_out=left_out)
    unknown = unknown_words(questions.asked, words, by_word=model.answers_word_by_word)
    notes = [each for each in (unknown, note) if each]
    if notes:
        found["note"] = "; ".join(notes)
    return found


def unknown_words(asked: Sequence[StoryExample], words: Sequence[str], *, by_word: bool = False) -> str:
    """Which words of the questions, stories and answers the model does not know; nothing where it knows all.

    Args:
        asked: the questions with their stories.
        words: the vocabulary of the model.
        by_word: whether it says answers word by word; otherwise an answer is one entry of the vocabulary.
    """
    known = frozenset(words)
    texts = {text for each in asked for text in (*each.sentences, each.question)}
    found = sorted({word for text in texts for word in words_of(text)} - known)
    form: AnswerForm = "split" if by_word else "joined"
    unanswerable = sum(not known.issuperset(answer_tokens(each.answer, form)) for each in asked)
    some = f"{', '.join(found[:10])}{' …' if len(found) > 10 else ''}"
    missing = [f"{len(found)} of the words ({some})"] if found else []
    missing += [f"a word of {unanswerable:,} answers"] if unanswerable else []
    return f"the model does not know {', nor '.join(missing)}" if missing else ""


def scored_questions(
    model: StoryModel, config: StoryDataConfig, split: str, *, words: Sequence[str], limit: int | None = None
) -> StoryTensors:
    """The questions that a model is scored on; of more than ``limit``, those that :func:`sample_questions` draws."""
    asked = StorySource(config).questions(split)  # type: ignore[arg-type]  # callers name a split
    asked = asked if limit is None else sample_questions(asked, limit)
    return as_tensors(model, asked, words, split)


def is_supervised(facts: ModelFacts) -> bool:
    """Whether the looks of a model were taught the supporting facts."""
    phases = facts.recipe.get("phases", ())
    return any((phase.get("loss") or {}).get("name") == "gated" for phase in phases)


def has_left_out(facts: ModelFacts) -> bool:
    """Whether sentences were left out while training: supporting facts say which, so it learned from these."""
    return bool(facts.data.get("leave_out", 0))


def note_on(model: StoryModel, *, supervised: bool, left_out: bool = False) -> str:
    """What has to be said with the scores of a model."""
    return "; ".join([SUPERVISED] * supervised + [LEFT_OUT] * left_out + [RECURRENT] * model.slots_include_past)


def has_failed(error: float) -> bool:
    """Whether a task with this error counts as failed; one of exactly 5 % does not."""
    return round(error, 9) > FAILED


class StoryScores:
    """Scores of one model, or of one model for each task, on all of their questions together.

    Args:
        causal: questions of the causal tests, of each model that is added.
        seed: of drawing these.
    """

    def __init__(self, *, causal: int = CAUSAL, seed: int = 0) -> None:
        self.causal, self.seed = causal, seed
        self.values, self.columns = Values(), ColumnBuffer()
        self.support: SupportScores | None = None
        self._tests: list[dict[str, Tensor]] = []
        self.tested = ColumnBuffer()
        self.edits = EditScores()
        self.test_rivals: dict[str, Values] = {}
        self.tasks: list[str] = []
        self._stories = 0

    @torch.no_grad()
    def add(
        self,
        model: StoryModel,
        tensors: StoryTensors,
        words: Sequence[str],
        progress: Progress = lambda done, total: None,
    ) -> None:
        """Score the questions of ``tensors``; ``words`` are the vocabulary of the model."""
        self.tasks += [name for name in tensors.task_names if name not in self.tasks]
        place = torch.tensor([self.tasks.index(name) for name in tensors.task_names])
        stories = story_numbers(tensors.asked) + self._stories
        self._stories = int(stories.max()) + 1
        for indices in batches(tensors):
            batch = batch_for(model, tensors, indices)
            raw = respond(model, batch)
            self.values.add_values({"accuracy": is_right(said(raw), batch["answer"])})
            self.columns.append(task=place[batch["task"].cpu()], story=stories[indices])
            if (seen := sentence_weights(model, raw, batch["story"])) is not None:
                self.support = self.support or SupportScores()
                self.support.add(seen, batch)
            progress(int(indices[-1]) + 1, tensors.size)
        self._test(model, tensors, words, stories, place)

    def _test(
        self, model: StoryModel, tensors: StoryTensors, words: Sequence[str], stories: Tensor, place: Tensor
    ) -> None:
        """The causal tests, on questions that are drawn."""
        generator = torch.Generator().manual_seed(self.seed)
        drawn = torch.randperm(tensors.size, generator=generator)[: self.causal].sort().values
        for indices in torch.split(drawn, BATCH) if len(drawn) else ():
            asked = [tensors.asked[number] for number in indices.tolist()]
            tests = CausalTests(model, asked, words, seed=self.seed)
            self._tests.append(tests.scores())
            for name, found in tests.rivals().items():
                self.test_rivals.setdefault(name, Values()).add_values(found)
            self.tested.append(story=stories[indices], task=place[tensors.task[indices].cpu()])
            self._edit(model, asked, words, stories[indices])

    def _edit(self, model: StoryModel, asked: Sequence[StoryExample], words: Sequence[str], stories: Tensor) -> None:
        """Weights on sentences are edited; models of several tasks may differ in their looks, and the first counts."""
        found = weight_edits(model, asked, words, stories)
        if not len(self.edits) or found.looks == self.edits.looks:
            self.edits.join(found)

    @property
    def tests(self) -> Values:
        """Scores of the causal tests. Models of several tasks may differ in their looks: NaN for one without a look."""
        names = dict.fromkeys(name for part in self._tests for name in part)
        found = Values()
        for part in self._tests:
            nothing = torch.full_like(next(iter(part.values())), torch.nan)
            found.add_values({name: part.get(name, nothing) for name in names})
        return found

    def summary(self) -> Summary:
        """Plain numbers, with intervals from resampling stories."""
        story = self.columns["story"]
        metrics, intervals = self._answers()
        measured = [(self.values, story)]
        attention: Scores = {}
        baselines: dict[str, dict[str, float]] = {}
        if self.support is not None:
            attention, baselines = self.support.attention(), self.support.baselines()
            measured.append((self.support.total, story))
        if self._tests:
            tests = self.tests
            attention = {**only_defined(tests.means()), **attention}
            measured.append((tests, self.tested["story"]))
            for name, values in self.test_rivals.items():
                baselines[name] = {**baselines.get(name, {}), **only_defined(values.means())}
        found = summarise(
            n=len(story),
            metrics=metrics,
            measured=measured,
            attention=attention,
            baselines=baselines,
            intervals=intervals,
            counts={"stories": self._stories, **self._without(), **{name: held.n for name, held in intervals.items()}},
            units={"failed_tasks": "task"} if "failed_tasks" in metrics else {},
        )
        if len(self.edits):
            found["interventions"] = without_nan(self.edits.interventions())
        return found

    def _without(self) -> dict[str, CountValue]:
        """``tasks_without``: by score, the tasks that were tested and of which no question has it."""
        if not self._tests or not any(self.tasks):
            return {}
        task = self.tested["task"]
        tested = [(number, name) for number, name in enumerate(self.tasks) if bool((task == number).any())]
        found = {
            score: [name for number, name in tested if bool(values[task == number].isnan().all())]
            for score, values in self.tests.values().items()
        }
        lacking = {score: tasks for score, tasks in found.items() if tasks}
        return {"tasks_without": lacking} if lacking else {}

    def _answers(self) -> tuple[Scores, dict[str, Interval]]:
        """Scores of answers, and the intervals of those that are no mean over all questions."""
        right, task, story = self.values["accuracy"], self.columns["task"], self.columns["story"]
        metrics: Scores = {**self.values.means()}
        found: dict[str, Interval] = {}
        for number, name in enumerate(self.tasks):
            if name:
                own = task == number
                found[f"accuracy_{name}"] = mean_interval(right[own], story[own])
        metrics |= {name: held.mean for name, held in found.items()}
        if found:
            failed = sum(has_failed(1 - held.mean) for held in found.values())
            size = torch.bincount(task, minlength=len(self.tasks)).double()  # (T,) questions of each task
            even = len(right) / (len(self.tasks) * size[task])  # (N,): every task counts alike
            found["mean_error"] = mean_interval((1 - right) * even, story, ends=(0.0, float(even.max())))
            metrics |= {"mean_error": found["mean_error"].mean, "failed_tasks": failed}
        return metrics, found
