"""All rivals on the features of a frozen backbone, compared on the same splits, and the head that is kept.

Every rival is compared with the linear head: differences of the test accuracies, split by split, with the corrected
interval of :mod:`saccade.metrics.intervals`. The head that is kept, and that the verdict is about, is the attention
head with the best validation accuracy. So the verdict rests on one comparison, not on the best of many. The kept head
is trained once more, on all pictures, with the setting that validation chose most often; its expected score is that of
the splits.

Axes: N examples, n examples of a part, P pictures, T training examples, C channels, K classes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import ConfigError, nearest
from saccade.metrics.intervals import resplit_interval
from saccade.metrics.labels import calibration_error, details_of
from saccade.metrics.result import Part, without_nan
from saccade.models.probe_heads import HEADS, LINEAR, PYRAMID, HeadName
from saccade.probing.examples import ProbedExamples, ProbeSplit, deal, splits_of
from saccade.probing.features import CLASS_TOKEN, Features
from saccade.probing.heads import EvidenceCells, Material, Trained, Training, Trial, accuracy, head_trial
from saccade.probing.plan import Plan, Setting

RIVALS: tuple[str, ...] = (*HEADS, CLASS_TOKEN)  # All rivals that are trained
NEIGHBOURS = (1, 5, 20)  # How many neighbours vote; validation chooses


def habit_trial(name: str, examples: ProbedExamples, splits: Sequence[ProbeSplit], kinds: Tensor) -> Trial:
    """Always the commonest class of the training examples of the same kind (N,), such as the same question."""
    labels, classes = examples.labels, len(examples.classes)
    trial = Trial(name, probabilities=torch.zeros(len(labels), classes))
    for split in splits:
        votes = torch.zeros(1 + int(kinds.max()), classes, dtype=torch.long)
        votes.index_put_((kinds[split.train], labels[split.train]), torch.ones_like(split.train), accumulate=True)
        common = torch.where(votes.sum(1) > 0, votes.argmax(1), votes.sum(0).argmax())  # of each kind
        trial.val.append(accuracy(common[kinds[split.val]], labels[split.val]))
        trial.test.append([accuracy(common[kinds[split.test]], labels[split.test])])
        trial.probabilities[split.test] = F.one_hot(common[kinds[split.test]], classes).float()
    return trial


def neighbour_trial(material: Material, splits: Sequence[ProbeSplit]) -> Trial:
    """The nearest training pictures, of the same question, vote, by the cosine of standardised pooled features."""
    features, examples, trial = material.features, material.examples, Trial("knn")
    labels, picture, query = examples.labels, examples.questions.picture, examples.questions.query
    for split in splits:
        centre, spread = features.map.statistics(examples.questions.pictures_of(split.train))
        values = F.normalize((features.pooled - centre) / spread, dim=1).cpu()  # (P,C)
        right: dict[int, list[float]] = {count: [] for count in NEIGHBOURS}
        for rows in (split.val, split.test):
            answers = {count: torch.zeros_like(rows) for count in NEIGHBOURS}
            for number in torch.unique(query[rows]).tolist():
                own = (query[rows] == number).nonzero()[:, 0]
                voters = split.train[query[split.train] == number]
                voters = voters if len(voters) else split.train
                likeness = values[picture[rows[own]]] @ values[picture[voters]].T  # (n,T)
                for count in NEIGHBOURS:
                    near = likeness.topk(min(count, len(voters)), dim=1)
                    weight = 1 + 1e-6 * near.values.double()  # of equal ones the nearest decides
                    votes = torch.zeros(len(own), len(examples.classes), dtype=torch.float64)
                    answers[count][own] = votes.scatter_add_(1, labels[voters][near.indices], weight).argmax(1)
            for count in NEIGHBOURS:
                right[count].append(accuracy(answers[count], labels[rows]))
        val, test = max(right.values(), key=lambda scores: scores[0])  # of equal ones the fewest neighbours
        trial.val.append(val)
        trial.test.append([test])
    return trial


@dataclass(frozen=True, repr=False)
class ProbeResult:
    """All that came of it."""

    examples: ProbedExamples
    splits: Sequence[ProbeSplit]
    plan: Plan
    trials: dict[str, Trial]
    kept: HeadName  # The name of the head that is kept
    setting: Setting  # How it is trained on all pictures
    final: Trained  # What came of that
    details: Part  # Confusions, scores of classes, and the worst mistakes by the number of the example
    calibration: float  # Expected calibration error of the kept head
    verdict: str
    rests_on: Part = field(default_factory=dict)
    """Answers without the evidence and without the rest; empty where no evidence is known."""
    maps: Part = field(default_factory=dict)
    """Maps of the kept head against chance; empty where no evidence is known."""

    def __repr__(self) -> str:
        return f"ProbeResult({self.kept}: {self.verdict})"

    @property
    def probabilities(self) -> Tensor:
        """(N,K) of the kept head: each example by the head of the split that tests it."""
        return self.trials[self.kept].probabilities

    @property
    def guesses(self) -> Tensor:
        """(N,) what is commonest in the training examples of the split that tests each, of the same question."""
        return guess_of(self.trials).probabilities.argmax(1)

    def to_json(self, place: Callable[[int], Part] = lambda number: {"example": number}) -> Part:
        """Plain values; scores are fractions. ``place`` says what tells an example."""
        examples, plan = self.examples, asdict(self.plan)
        questions = {"examples": len(examples), "questions": self.by_question()} if examples.questions.are_asked else {}
        rates, decays = zip(*self.plan.settings(PYRAMID))
        plan |= {"rates": sorted({*rates}), "decays": sorted({*decays})}
        facts = ("seeds", "rates", "decays", "batch_size", *(("evidence_weight",) if plan["evidence_weight"] else ()))
        mistakes = [dict(mistake) for mistake in self.details["mistakes"]]
        return without_nan({
            "verdict": self.verdict,
            **questions,
            "classes": dict(zip(examples.classes, torch.bincount(examples.labels).tolist())),
            "plan": {"splits": len(self.splits), "steps": self.steps, **{name: plan[name] for name in facts}},
            "kept": {"head": self.kept, **self.setting._asdict()},
            "rivals": {name: trial.to_json() for name, trial in self.trials.items()},
            "calibration_error": self.calibration,
            **self.details,
            "mistakes": [{**place(mistake.pop("example")), **mistake} for mistake in mistakes],
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
        answers: dict[str, Tensor] = {"commonest_answer": self.guesses}
        answers |= {name: self.trials[name].probabilities.argmax(1) for name in (LINEAR, self.kept)}
        scores = {}
        for number, word in enumerate(questions.words):
            own = questions.query == number
            right = {name: accuracy(answer[own], labels[own]) for name, answer in answers.items()}
            scores[word] = {"n": int(own.sum()), **right}
        return scores


def wanted_heads(plan: Plan) -> tuple[str, ...]:
    """The rivals to train, the linear head and the one to keep among them in any case."""
    named = {*plan.compared, *([plan.keep] if plan.keep else []), LINEAR}
    for name in sorted(named):
        if name not in RIVALS:
            raise ConfigError(f"heads: no head '{name}': {nearest(name, RIVALS)}")
    if plan.keep == CLASS_TOKEN or not named - {LINEAR, CLASS_TOKEN}:
        raise ConfigError(f"heads, keep: {CLASS_TOKEN} and {LINEAR} do not attend; name one of {', '.join(HEADS[1:])}")
    return tuple(head for head in RIVALS if head in named)


def compare_rivals(
    examples: ProbedExamples,
    features: Features,
    *,
    plan: Plan,
    heads: Sequence[str],
    places: EvidenceCells | None = None,
    on_split: Callable[[str, int], None] = lambda head, split: None,
) -> ProbeResult:
    """Train, test and compare ``heads``, the linear one among them, and rivals that are not trained.

    ``places`` is where labels can be seen, for heads that are taught where to look. ``on_split`` is called with a head
    and how many splits it has done.
    """
    labels, questions = examples.labels, examples.questions
    if (groups := len({*examples.groups})) < plan.splits:
        raise ConfigError(
            f"splits: {groups} different pictures cannot be split {plan.splits} ways; ask for fewer splits"
        )
    splits = splits_of(deal(labels.tolist(), examples.groups, plan.splits), plan.splits)
    material = Material(features, examples, plan, places)
    trials = {"majority": habit_trial("majority", examples, splits, torch.zeros_like(labels))}
    if len(questions.words) > 1:
        trials["prior"] = habit_trial("prior", examples, splits, questions.query)
    trials["knn"] = neighbour_trial(material, splits)
    for head in heads:
        trials[head] = head_trial(head, material, splits, partial(on_split, head))
    trained, tested = (sum(len(split[part]) for split in splits) / len(splits) for part in (0, 2))
    for trial in trials.values():
        trial.score = resplit_interval(trial.by_split, trained=trained, tested=tested)
        if trial.name != LINEAR:
            difference = trial.by_split - trials[LINEAR].by_split
            trial.difference = resplit_interval(difference, trained=trained, tested=tested)
    attending = [head for head in heads if head not in (LINEAR, CLASS_TOKEN)]
    name = cast(HeadName, plan.keep or max(attending, key=lambda head: trials[head].mean_val))
    shares = trials[name].probabilities  # (N,K)
    confidence, answers = shares.max(1)  # (N,)
    of_true = shares.gather(1, labels[:, None])[:, 0]  # (N,)
    details = details_of(answers, labels, confidence, of_true, examples.classes, lambda number: {"example": number})
    calibration = calibration_error(confidence, answers == labels)
    setting = Counter(trials[name].settings).most_common(1)[0][0]
    every = torch.arange(len(labels))
    training = Training(name, material, every, len(splits))
    (trained_head,) = training.run([0], [setting], every)
    final = training.trained(trained_head)
    verdict = sentence(trials, name)
    return ProbeResult(examples, splits, plan, trials, name, setting, final, details, calibration, verdict)


def guess_of(trials: dict[str, Trial]) -> Trial:
    """What answers without looking: by the question, where several are asked."""
    return trials.get("prior", trials["majority"])


def sentence(trials: dict[str, Trial], chosen: str) -> str:
    """The verdict: the chosen head, the linear head, and whether they differ.

    It says so where the features tell nothing that guessing would not.
    """
    base, guess = trials[LINEAR], guess_of(trials)
    head, against = trials[chosen], guess.difference
    share, interval = head.score.percent().split(" ", 1)
    text = f"{head.title} {share} % {interval.replace('(', '(95 % interval ')}"
    if head.difference is not None:
        points, interval = head.difference.percent(signed=True).split(" ", 1)
        differs = f"{'better' if head.difference.mean > 0 else 'worse'} by {points.strip('+-')} points {interval}"
        if not head.difference.is_beyond_zero:
            differs = f"no difference detected {interval.replace(')', ' points)')}"
        text += f", {base.title} {100 * base.score.mean:.1f} %: {differs}"
    gains = head.difference is not None and head.difference.low > 0  # then the features do tell something
    if against is None or against.high < 0 or gains:
        return f"{text}; the {guess.title} alone is {100 * guess.score.mean:.1f} %"
    return (
        f"{text}; {base.title} is not detectably better than always giving the {guess.title} "
        f"({100 * guess.score.mean:.1f} %): these features do not tell the classes apart, or there are too few pictures"
    )
