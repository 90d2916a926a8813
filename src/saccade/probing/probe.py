"""The whole probe: pictures, features, rivals, a verdict, and the head that is kept.

The kept head is trained once more, on all pictures, with the setting that validation chose most often. Its expected
score is that of the splits; nothing is left to test it on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, cast

import torch
from torch import Tensor

from saccade.errors import ConfigError, nearest
from saccade.metrics.labels import Details, details_of
from saccade.metrics.result import Part
from saccade.models.probe_heads import HEADS, LINEAR, HeadName, ProbeHead
from saccade.probing.data import OnProgress, ProbedPictures, Split, deal, splits_of
from saccade.probing.features import Features
from saccade.probing.head_stack import Places
from saccade.probing.report import Compared, choose, compare, sentence, title_of
from saccade.probing.trials import (
    CLASS_TOKEN,
    RIVALS,
    Material,
    Plan,
    Setting,
    Training,
    Trial,
    habit_trial,
    habits,
    head_trial,
    neighbour_trial,
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

    pictures: ProbedPictures
    splits: Sequence[Split]
    plan: Plan
    trials: dict[str, Trial]
    rows: list[Compared]
    kept: TrainedHead
    details: Details
    verdict: str
    remarks: tuple[str, ...] = field(default=())
    rests_on: Part = field(default_factory=dict)
    """Answers without the evidence and without the rest; empty where no evidence is known."""
    maps: Part = field(default_factory=dict)
    """Maps of the kept head against chance; empty where no evidence is known."""

    def to_json(self) -> dict[str, object]:
        """Plain values; scores are fractions."""
        classes, details = self.pictures.classes, self.details
        return {
            "verdict": self.verdict,
            "pictures": len(self.pictures.paths),
            **self._asked(),
            "classes": {name: int(held) for name, held in zip(classes, torch.bincount(self.pictures.labels))},
            "remarks": list(self.remarks),
            "copies": [list(pair) for pair in self.pictures.copies],
            "plan": {
                "splits": len(self.splits),
                "seeds": self.plan.seeds,
                "rates": list(self.plan.rates),
                "decays": list(self.plan.decays),
                "steps": self.steps,
                "batch_size": self.plan.batch_size,
                **({"evidence_weight": self.plan.evidence_weight} if self.plan.evidence_weight else {}),
            },
            "kept": {"head": self.kept.name, "rate": self.kept.setting.rate, "decay": self.kept.setting.decay},
            "rivals": {row.name: self._rival(row) for row in self.rows},
            "calibration_error": details.calibration,
            **details.to_json(self._place),
            **({"rests_on": self.rests_on} if self.rests_on else {}),
            **({"maps": self.maps} if self.maps else {}),
        }

    @property
    def steps(self) -> int:
        """Batches that each head learned from."""
        questions = self.pictures.questions
        return self.plan.steps_for(max(len(questions.pictures_of(split.train)) for split in self.splits))

    def _place(self, number: int) -> Part:
        """What tells an example."""
        place: Part = {"picture": str(self.pictures.path(number))}
        if asked := self.pictures.asked(number):
            place["asked"] = asked
        return place

    def _asked(self) -> dict[str, object]:
        """What came of each question; nothing where nothing is asked."""
        if not self.pictures.questions.are_asked:
            return {}
        return {"examples": len(self.pictures), "questions": self.by_question()}

    def by_question(self) -> dict[str, dict[str, float | int]]:
        """Question → how often it was asked, and the test accuracy on it of the kept head, linear and guessing."""
        questions, labels = self.pictures.questions, self.pictures.labels
        if not questions.are_asked:
            return {}
        guessed = torch.zeros_like(labels)
        for split in self.splits:
            common = habits(labels, split.train, questions.query[split.train], len(questions.words))
            guessed[split.test] = common[questions.query[split.test]]
        said = {"commonest_answer": guessed}
        for name in dict.fromkeys((LINEAR, self.kept.name)):
            shares = self.trials[name].probabilities
            said |= {} if shares is None else {name: shares.argmax(1)}
        found: dict[str, dict[str, float | int]] = {}
        for number, word in enumerate(questions.words):
            own = questions.query == number
            right = {name: float((each[own] == labels[own]).double().mean()) for name, each in said.items()}
            found[word] = {"n": int(own.sum()), **right}
        return found

    def _rival(self, row: Compared) -> dict[str, object]:
        trial = self.trials[row.name]
        difference = row.difference
        against = (
            {}
            if difference is None
            else {
                "difference": difference.mean,
                "difference_half": _known(difference.half),
                "differs": difference.is_beyond_zero,
            }
        )
        curve = {"learning_curve": {str(share): found for share, found in trial.shares.items()}} if trial.shares else {}
        return {
            "title": row.title,
            "accuracy": row.test.mean,
            "half": _known(row.test.half),
            "validation": row.val,
            "seed_spread": _known(row.seed_spread),
            "by_split": trial.test,
            **against,
            **curve,
        }


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return value if value == value else None


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
    pictures: ProbedPictures,
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
        pictures: what is probed.
        features: of the pictures, by their numbers.
        plan: splits, seeds and settings.
        heads: which heads are trained; the linear one is among them.
        keep: the head to keep; None: the attention head with the best validation accuracy.
        places: where labels can be seen, for heads that are taught where to look; None: they are not.
        on_progress: called with what is going on, how far it is, and how far it goes.
    """
    labels, answers, questions = pictures.labels, len(pictures.classes), pictures.questions
    if (groups := len({*pictures.groups})) < plan.splits:
        raise ConfigError(
            f"splits: {groups} different pictures cannot be split {plan.splits} ways; ask for fewer splits"
        )
    splits = splits_of(deal(labels.tolist(), pictures.groups, plan.splits), plan.splits)
    material = Material(features, labels, answers, plan, questions, places)
    simple = [habit_trial("majority", labels, splits, torch.zeros_like(labels)), neighbour_trial(material, splits)]
    if len(questions.words) > 1:
        simple.insert(1, habit_trial("prior", labels, splits, questions.query))
    trials = {trial.name: trial for trial in simple}
    total = len(heads) * len(splits)
    for number, head in enumerate(heads):
        done = partial(_add_up, on_progress, f"training {title_of(head)}", number * len(splits), total)
        done(0)
        trials[head] = head_trial(head, material, splits, done)
    rows = compare(trials, splits)
    name = keep or choose(rows)
    kept = _kept(next(head for head in HEADS if head == name), trials[name], material)
    probabilities = cast(Tensor, trials[name].probabilities)  # as of every head
    return ProbeResult(
        pictures=pictures,
        splits=splits,
        plan=plan,
        trials=trials,
        rows=rows,
        kept=kept,
        details=_details(probabilities, labels, pictures.classes),
        verdict=sentence(rows, name),
        remarks=pictures.remarks,
    )


def _details(probabilities: Tensor, labels: Tensor, classes: Sequence[str]) -> Details:
    """From probabilities (N,K) and labels (N,): each example is answered by the head of the split that tests it."""
    confidence, said = probabilities.max(1)  # (N,)
    return details_of(said, labels, confidence, probabilities.gather(1, labels[:, None])[:, 0], classes)


def _add_up(on_progress: OnProgress, what: str, before: int, total: int, done: int) -> None:
    on_progress(what, before + done, total)


def _kept(name: HeadName, trial: Trial, material: Material) -> TrainedHead:
    """The head with the setting chosen most often, trained on all pictures."""
    setting = Counter(each for each in trial.settings if isinstance(each, Setting)).most_common(1)[0][0]
    every = torch.arange(len(material.labels))
    training = Training(name, material, every, len(trial.settings))
    (head,) = training.run([0], [every], [setting])
    return TrainedHead(name, head, *training.statistics, setting)
