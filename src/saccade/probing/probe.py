"""The whole probe: rivals on the features of a frozen backbone, a verdict, and the head that is kept.

Every rival is compared with the linear head on the same splits: differences of the test accuracies, split by split,
with the corrected interval of :mod:`saccade.metrics.intervals`. The head that is kept, and that the verdict is about,
is the attention head with the best validation accuracy. So the verdict rests on one comparison, not on the best of
many. The kept head is trained once more, on all pictures, with the setting that validation chose most often. Its
expected score is that of the splits; nothing is left to test it on.

Everything here is in memory; :mod:`saccade.probing.run` reads pictures and writes a folder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import torch
from torch import Tensor

from saccade.errors import ConfigError, nearest
from saccade.metrics.intervals import resplit_interval
from saccade.metrics.labels import calibration_error, details_of
from saccade.metrics.result import Part, without_nan
from saccade.models.probe_heads import HEADS, LINEAR, TITLES, HeadName, ProbeHead
from saccade.probing.data import Examples, OnProgress, Split, deal, splits_of
from saccade.probing.features import CLASS_TOKEN, Features
from saccade.probing.heads import Places, Setting
from saccade.probing.trials import (
    RIVALS,
    Material,
    Plan,
    Training,
    Trial,
    accuracy,
    habit_trial,
    habits,
    head_trial,
    neighbour_trial,
    title_of,
)

GUESSES = ("prior", "majority")
"""What answers without looking; the first that there is."""


def compare(trials: Mapping[str, Trial], splits: Sequence[Split]) -> None:
    """Put the test accuracy of every rival, and how it differs from that of the linear head, beside its trial."""
    trained, tested = (sum(len(split[part]) for split in splits) / len(splits) for part in (0, 2))
    for trial in trials.values():
        trial.score = resplit_interval(trial.by_split, trained=trained, tested=tested)
        if trial.name != LINEAR:
            difference = trial.by_split - trials[LINEAR].by_split
            trial.difference = resplit_interval(difference, trained=trained, tested=tested)


def sentence(trials: Mapping[str, Trial], chosen: str) -> str:
    """The verdict.

    It tells the chosen head, the linear head and whether they differ; and it says so where the features tell nothing
    that guessing would not.
    """
    base, guess = trials[LINEAR], next(trials[name] for name in GUESSES if name in trials)
    head, against = trials[chosen], guess.difference
    text = f"{head.title} {100 * head.score.mean:.1f} ± {100 * head.score.half:.1f} %"
    if head.difference is not None:
        points, half = 100 * head.difference.mean, 100 * head.difference.half
        differs = f"{'better' if points > 0 else 'worse'} by {abs(points):.1f} ± {half:.1f} points"
        if not head.difference.is_beyond_zero:
            differs = f"no difference detected (± {half:.1f})"
        text += f", {base.title} {100 * base.score.mean:.1f} %: {differs}"
    gains = head.difference is not None and head.difference.low > 0  # then the features do tell something
    if against is None or against.high < 0 or gains:
        return f"{text}; the {guess.title} alone is {100 * guess.score.mean:.1f} %"
    return (
        f"{text}; {base.title} is not detectably better than always giving the {guess.title} "
        f"({100 * guess.score.mean:.1f} %): these features do not tell the classes apart, or there are too few pictures"
    )


class TrainedHead(NamedTuple):
    """The head that was trained on all pictures."""

    name: HeadName
    head: ProbeHead
    centre: Tensor
    """(C,) means of the channels."""
    spread: Tensor
    """(C,) standard deviations."""
    setting: Setting


@dataclass(frozen=True)
class ProbeResult:
    """All that came of it."""

    examples: Examples
    splits: Sequence[Split]
    plan: Plan
    trials: dict[str, Trial]
    kept: TrainedHead
    details: Part
    """Confusions, scores of classes, and the worst mistakes by the number of the example."""
    calibration: float
    """Expected calibration error of the kept head."""
    verdict: str
    rests_on: Part = field(default_factory=dict)
    """Answers without the evidence and without the rest; empty where no evidence is known."""
    maps: Part = field(default_factory=dict)
    """Maps of the kept head against chance; empty where no evidence is known."""

    def to_json(self, place: Callable[[int], Part] = lambda number: {"example": number}) -> Part:
        """Plain values; scores are fractions. ``place`` says what tells an example."""
        examples, plan = self.examples, self.plan
        questions = {"examples": len(examples), "questions": self.by_question()} if examples.questions.are_asked else {}
        taught = {"evidence_weight": plan.evidence_weight} if plan.evidence_weight else {}
        mistakes = []
        for mistake in self.details["mistakes"]:
            facts = dict(mistake)
            mistakes.append({**place(facts.pop("example")), **facts})
        return without_nan({
            "verdict": self.verdict,
            **questions,
            "classes": dict(zip(examples.classes, torch.bincount(examples.labels).tolist())),
            "plan": {
                "splits": len(self.splits),
                "seeds": plan.seeds,
                "rates": list(plan.rates),
                "decays": list(plan.decays),
                "steps": self.steps,
                "batch_size": plan.batch_size,
                **taught,
            },
            "kept": {"head": self.kept.name, **self.kept.setting._asdict()},
            "rivals": {name: self._rival(trial) for name, trial in self.trials.items()},
            "calibration_error": self.calibration,
            **self.details,
            "mistakes": mistakes,
            **({"rests_on": self.rests_on} if self.rests_on else {}),
            **({"maps": self.maps} if self.maps else {}),
        })  # fmt: skip

    @property
    def steps(self) -> int:
        """Batches that each head learned from."""
        questions = self.examples.questions
        return self.plan.steps_for(max(len(questions.pictures_of(split.train)) for split in self.splits))

    def by_question(self) -> dict[str, dict[str, float]]:
        """Question → how often it was asked, and the test accuracy on it of the kept head, linear and guessing."""
        questions, labels = self.examples.questions, self.examples.labels
        if not questions.are_asked:
            return {}
        guessed = torch.zeros_like(labels)
        for split in self.splits:
            common = habits(labels, split.train, questions.query[split.train], len(questions.words))
            guessed[split.test] = common[questions.query[split.test]]
        answers = {"commonest_answer": guessed}
        for name in (LINEAR, self.kept.name):
            answers[name] = cast(Tensor, self.trials[name].probabilities).argmax(1)
        scores = {}
        for number, word in enumerate(questions.words):
            own = questions.query == number
            right = {name: accuracy(said[own], labels[own]) for name, said in answers.items()}
            scores[word] = {"n": int(own.sum()), **right}
        return scores

    def _rival(self, trial: Trial) -> Part:
        difference = trial.difference
        scores: Part = {
            "title": trial.title,
            "accuracy": trial.score.mean,
            "half": trial.score.half,
            "validation": trial.mean_val,
            "seed_spread": trial.seed_spread,
            "by_split": trial.test,
        }
        if difference is not None:
            scores |= {"difference": difference.mean, "difference_half": difference.half}
            scores["differs"] = difference.is_beyond_zero
        if trial.shares:
            scores["learning_curve"] = {str(share): accuracies for share, accuracies in trial.shares.items()}
        return scores


def checked_heads(names: Sequence[str]) -> tuple[str, ...]:
    """The rivals called so, the linear head among them in any case."""
    for name in names:
        if name not in RIVALS:
            raise ConfigError(f"heads: no head '{name}': {nearest(name, RIVALS)}")
    wanted = tuple(head for head in RIVALS if head in names or head == LINEAR)
    if not {*wanted} - {LINEAR, CLASS_TOKEN}:
        raise ConfigError(f"heads: name at least one that attends: {', '.join(HEADS[1:])}")
    return wanted


def probe(
    examples: Examples,
    features: Features,
    *,
    plan: Plan,
    heads: Sequence[str],
    keep: HeadName | None = None,
    places: Places | None = None,
    on_progress: OnProgress = lambda what, done, total: None,
) -> ProbeResult:
    """Compare all rivals.

    Args:
        examples: what is learned.
        features: of the pictures, by their numbers.
        plan: splits, seeds and settings.
        heads: which heads are trained; the linear one is among them.
        keep: the head to keep; None: the attention head with the best validation accuracy.
        places: where labels can be seen, for heads that are taught where to look; None: they are not.
        on_progress: called with what is going on, how far it is, and how far it goes.
    """
    labels, questions = examples.labels, examples.questions
    if (groups := len({*examples.groups})) < plan.splits:
        raise ConfigError(
            f"splits: {groups} different pictures cannot be split {plan.splits} ways; ask for fewer splits"
        )
    splits = splits_of(deal(labels.tolist(), examples.groups, plan.splits), plan.splits)
    material = Material(features, examples, plan, places)
    trials = {"majority": habit_trial("majority", labels, splits, torch.zeros_like(labels))}
    if len(questions.words) > 1:
        trials["prior"] = habit_trial("prior", labels, splits, questions.query)
    trials["knn"] = neighbour_trial(material, splits)
    for number, head in enumerate(heads):

        def on_split(done: int, what: str = f"training {title_of(head)}", before: int = number * len(splits)) -> None:
            on_progress(what, before + done, len(heads) * len(splits))

        on_split(0)
        trials[head] = head_trial(head, material, splits, on_split)
    compare(trials, splits)
    heads_that_attend = [head for head in trials if head in TITLES and head != LINEAR]
    name = keep or cast(HeadName, max(heads_that_attend, key=lambda head: trials[head].mean_val))
    shares = cast(Tensor, trials[name].probabilities)  # (N,K): each example by the head of the split that tests it
    confidence, answers = shares.max(1)  # (N,)
    of_true = shares.gather(1, labels[:, None])[:, 0]  # (N,)
    details = details_of(answers, labels, confidence, of_true, examples.classes, lambda number: {"example": number})
    calibration = calibration_error(confidence, answers == labels)
    setting = Counter(trials[name].settings).most_common(1)[0][0]
    every = torch.arange(len(labels))
    training = Training(name, material, every, len(splits))
    (final,) = training.run([0], [every], [setting])
    kept = TrainedHead(name, final, *training.statistics, setting)
    return ProbeResult(examples, splits, plan, trials, kept, details, calibration, sentence(trials, name))
