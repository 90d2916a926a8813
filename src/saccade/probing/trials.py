"""One rival on all splits: trained over a grid of settings, chosen on validation, tested once.

For each split, the settings are compared on its validation pictures with the first seed. The best goes on: the other
seeds, and smaller shares of the training pictures for the learning curve, are trained with it. Test pictures choose
nothing. Statistics of the features come from the training pictures of the split.

Axes: J splits, S seeds, N examples (pictures, or questions about them), K classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import ConfigError
from saccade.metrics.intervals import Resplit
from saccade.models.probe_heads import HEADS, LINEAR, PYRAMID, TITLES, HeadName, ProbeHead, new_head
from saccade.probing.data import Examples, Split, some_of
from saccade.probing.features import CLASS_TOKEN, Features
from saccade.probing.heads import Places, Setting, fresh_heads, logits_of, members_at_once, train_heads

RIVALS: tuple[str, ...] = (*HEADS, CLASS_TOKEN)
"""All rivals that are trained."""
NEIGHBOURS = (1, 5, 20)
"""How many neighbours vote; validation chooses."""


@dataclass(frozen=True)
class Plan:
    """What is trained."""

    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2, 3e-2)
    """Learning rates of the grid."""
    linear_rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
    """Learning rates of the linear head. It is cheap and the baseline to beat, so it is tuned the most."""
    decays: tuple[float, ...] = (1e-2, 1.0)
    """Weight decays of the grid."""
    seeds: int = 3
    """Trainings with the best setting."""
    splits: int = 5
    shares: tuple[float, ...] = (0.25, 0.5)
    """Shares of the training pictures for the learning curve; the full set is added."""
    steps: int | None = None
    """Batches to learn from; None: :attr:`epochs` times through the training pictures."""
    epochs: int | None = None
    """How often to see all training pictures; None: ten times, and at least 150 batches."""
    batch_size: int = 64
    hidden: int = 32
    queries: int = 4
    evidence_weight: float = 0.0
    """Weight of an extra loss that trains the attention heads to look at boxes and masks; 0: no such loss."""

    def __post_init__(self) -> None:
        if self.steps is not None and self.epochs is not None:
            raise ConfigError("give epochs or steps, not both")

    def steps_for(self, pictures: int) -> int:
        """Batches for that many training pictures."""
        batches = -(-pictures // self.batch_size)
        return self.steps or (self.epochs * batches if self.epochs else max(150, 10 * batches))


SIMPLE = {
    "majority": "commonest class",
    "prior": "commonest answer to the question",
    "knn": "nearest neighbours",
    CLASS_TOKEN: "linear on the class token",
}
"""Rivals that are not heads of a model, in words."""


def title_of(name: str) -> str:
    """What a rival is called in a sentence."""
    return SIMPLE.get(name) or TITLES[name]


@dataclass
class Trial:
    """What came of one rival."""

    name: str
    val: list[float] = field(default_factory=list)
    """Accuracy of the chosen setting on the validation pictures of each split, (J,)."""
    test: list[list[float]] = field(default_factory=list)
    """Accuracy on the test pictures of each split, for each seed: (J,S)."""
    shares: dict[float, list[float]] = field(default_factory=dict)
    """Share of the training pictures → accuracy on the test pictures of each split, (J,), of the first seed."""
    settings: list[Setting] = field(default_factory=list)
    """What validation chose in each split."""
    probabilities: Tensor | None = None
    """(N,K) of the first seed: each picture as its own split tested it."""
    heads: list[ProbeHead] = field(default_factory=list)
    """The heads of the first seed, one for each split."""
    statistics: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """Mean and standard deviation of each channel, for each split."""
    score: Resplit = field(init=False)
    """Mean test accuracy."""
    difference: Resplit | None = None
    """Test accuracy less that of the linear head; None for the linear head itself."""

    @property
    def title(self) -> str:
        """What it is called in a sentence."""
        return title_of(self.name)

    @property
    def mean_val(self) -> float:
        """Mean validation accuracy of what was chosen."""
        return sum(self.val) / len(self.val)

    @property
    def by_split(self) -> Tensor:
        """Test accuracy of each split, the mean of its seeds: (J,)."""
        return torch.tensor(self.test, dtype=torch.float64).mean(1)

    @property
    def seed_spread(self) -> float:
        """Standard deviation over seeds of the same split, the mean over splits; NaN for one seed."""
        by_seed = torch.tensor(self.test, dtype=torch.float64)  # (J,S)
        return float(by_seed.std(1).mean()) if by_seed.shape[1] > 1 else float("nan")


class Material(NamedTuple):
    """What rivals learn from."""

    features: Features
    examples: Examples
    plan: Plan
    places: Places | None = None
    """Where labels can be seen, for heads that are taught where to look."""


class Training:
    """Heads of one kind on one set of features, standardised by the examples ``train`` (n,)."""

    def __init__(self, name: str, material: Material, train: Tensor, seed: int) -> None:
        self._material, self._seed = material, seed
        self._name: HeadName = LINEAR if name == CLASS_TOKEN else cast(HeadName, name)
        view, questions = material.features.view(name), material.examples.questions
        self.statistics = view.statistics(questions.pictures_of(train))
        self._channels = view.shape[0]
        self._batch = view.batches(*self.statistics)
        asked = len(material.examples) / len(torch.unique(questions.picture))
        answers, size = len(material.examples.classes), material.plan.batch_size
        self._at_once = members_at_once(self._new(), view.shape, answers, size * asked)
        self._places = None if name == PYRAMID else material.places  # those are of one grid

    def _new(self) -> ProbeHead:
        features, examples, plan, _ = self._material
        return new_head(
            self._name,
            self._channels,
            len(examples.classes),
            hidden=plan.hidden,
            queries=plan.queries,
            levels=features.levels,
            asked=len(examples.questions.words),
        )

    def run(self, seeds: Sequence[int], sets: Sequence[Tensor], settings: Sequence[Setting]) -> list[ProbeHead]:
        """A trained head for each seed, set of training examples and setting."""
        _, examples, plan, _ = self._material
        learns = torch.zeros(len(seeds), len(examples), dtype=torch.bool)
        for member, numbers in enumerate(sets):
            learns[member, numbers] = True
        return train_heads(
            fresh_heads(self._new, seeds),
            self._batch,
            examples,
            learns,
            settings,
            steps=plan.steps_for(max(len(examples.questions.pictures_of(numbers)) for numbers in sets)),
            batch_size=plan.batch_size,
            seed=self._seed,
            at_once=self._at_once,
            places=self._places,
        )

    def logits(self, heads: Sequence[ProbeHead], numbers: Tensor) -> Tensor:
        """(M,n,K) of the examples ``numbers`` (n,)."""
        size, questions = self._material.plan.batch_size, self._material.examples.questions
        return logits_of(heads, self._batch, numbers, size, self._at_once, questions)


def head_trial(
    name: str, material: Material, splits: Sequence[Split], on_split: Callable[[int], None] = lambda done: None
) -> Trial:
    """Train one of :data:`RIVALS` on all splits; ``on_split`` is called with the number of splits done."""
    _, examples, plan, _ = material
    labels = examples.labels
    trial = Trial(name, shares={share: [] for share in plan.shares})
    trial.probabilities = torch.zeros(len(labels), len(examples.classes))
    rates = plan.linear_rates if name in (LINEAR, CLASS_TOKEN) else plan.rates
    grid = [Setting(rate, decay) for rate in rates for decay in plan.decays]
    for number, split in enumerate(splits):
        training = Training(name, material, split.train, number)
        first = training.run([0] * len(grid), [split.train] * len(grid), grid)
        scores = training.logits(first, split.val)  # (M,n,K)
        best = _best(scores, labels[split.val])
        more = [*range(1, plan.seeds)]
        parts = [some_of(split, share, labels, examples.questions) for share in plan.shares]
        sets = [split.train] * len(more) + parts
        rest = training.run(more + [0] * len(parts), sets, [grid[best]] * len(sets)) if sets else []
        heads = [first[best], *rest]
        tested = training.logits(heads, split.test)  # (M,n,K)
        right = (tested.argmax(-1) == labels[split.test]).double().mean(1).tolist()  # (M,)
        trial.val.append(accuracy(scores[best].argmax(-1), labels[split.val]))
        trial.test.append(right[: plan.seeds])
        for share, score in zip(plan.shares, right[plan.seeds :]):
            trial.shares[share].append(score)
        trial.settings.append(grid[best])
        trial.probabilities[split.test] = tested[0].softmax(-1)
        trial.heads.append(heads[0])
        trial.statistics.append(training.statistics)
        on_split(number + 1)
    return trial


def _best(scores: Tensor, truth: Tensor) -> int:
    """The member of ``scores`` (M,n,K) with the most right answers; of equal ones, that with the lowest loss."""
    right = (scores.argmax(-1) == truth).sum(1).tolist()
    loss = [float(F.cross_entropy(own, truth)) for own in scores]
    return max(range(len(scores)), key=lambda member: (right[member], -loss[member]))


def accuracy(answers: Tensor, truth: Tensor) -> float:
    """The share of right answers."""
    return float((answers == truth).double().mean())


def habits(labels: Tensor, rows: Tensor, kinds: Tensor, count: int) -> Tensor:
    """The commonest class of the examples ``rows`` (n,) of each kind (n,): (count,); of all where a kind has none."""
    votes = torch.zeros(count, int(labels.max()) + 1, dtype=torch.long)
    votes.index_put_((kinds, labels[rows]), torch.ones_like(rows), accumulate=True)
    return torch.where(votes.sum(1) > 0, votes.argmax(1), votes.sum(0).argmax())


def habit_trial(name: str, labels: Tensor, splits: Sequence[Split], kinds: Tensor) -> Trial:
    """Always the commonest class of the training examples of the same kind (N,), such as the same question."""
    trial = Trial(name)
    for split in splits:
        common = habits(labels, split.train, kinds[split.train], 1 + int(kinds.max()))  # (count,)
        trial.val.append(accuracy(common[kinds[split.val]], labels[split.val]))
        trial.test.append([accuracy(common[kinds[split.test]], labels[split.test])])
    return trial


def neighbour_trial(material: Material, splits: Sequence[Split]) -> Trial:
    """The nearest training pictures vote, by the cosine of standardised pooled features.

    With questions, the pictures vote that are asked the same; where none is, all do.
    """
    features, examples, trial = material.features, material.examples, Trial("knn")
    labels, questions, query = examples.labels, examples.questions, examples.questions.query
    for split in splits:
        centre, spread = features.map.statistics(questions.pictures_of(split.train))
        values = F.normalize((features.pooled - centre) / spread, dim=1)  # (P,C)
        right: dict[int, list[float]] = {count: [] for count in NEIGHBOURS}
        for rows in (split.val, split.test):
            said = {count: torch.zeros_like(rows) for count in NEIGHBOURS}
            for number in torch.unique(query[rows]).tolist():
                own = (query[rows] == number).nonzero()[:, 0]
                voters = split.train[query[split.train] == number]
                voters = voters if len(voters) else split.train
                near = values[questions.picture[rows[own]]] @ values[questions.picture[voters]].T
                for count, answers in said.items():
                    answers[own] = _voted(near, labels[voters], min(count, len(voters)), len(examples.classes))
            for count, answers in said.items():
                right[count].append(accuracy(answers, labels[rows]))
        val, test = max(right.values(), key=lambda scores: scores[0])  # of equal ones the fewest neighbours
        trial.val.append(val)
        trial.test.append([test])
    return trial


def _voted(likeness: Tensor, known: Tensor, voters: int, answers: int) -> Tensor:
    """The class (n,) that most of the nearest vote for, from likenesses (n,T); of equal ones the nearest decides."""
    near = likeness.topk(voters, dim=1)
    votes = torch.zeros(len(likeness), answers, dtype=torch.float64)
    weight = 1 + 1e-6 * near.values.double()  # closeness counts for less than one vote in all
    return votes.scatter_add_(1, known[near.indices], weight).argmax(1)
