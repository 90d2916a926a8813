"""One rival on all splits: trained over a grid of settings, chosen on validation, tested once.

For each split, the settings are compared on its validation pictures with the first seed. The best goes on: the other
seeds, and smaller shares of the training pictures for the learning curve, are trained with it. Test pictures choose
nothing. Statistics of the features come from the training pictures of the split.

Axes: J splits, S seeds, N pictures, K classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import ConfigError
from saccade.models.probe_heads import HEADS, LINEAR, PYRAMID, HeadName, ProbeHead, new_head
from saccade.probing.folds import Split, some_of
from saccade.probing.head_stack import Batch, Places, fresh_heads, logits_of, members_at_once, train_heads
from saccade.probing.pictures import Features, View
from saccade.tasks.losses import check_weight

CLASS_TOKEN = "class-token"  # noqa: S105
"""A linear head on the class token of a transformer: a rival that looks nowhere, so no model is made of it."""
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
    """Of the linear head, which costs next to nothing: the rival that others must beat is tuned the most."""
    decays: tuple[float, ...] = (1e-2, 1.0)
    """Weight decays of the grid."""
    seeds: int = 3
    """Trainings with the best setting."""
    splits: int = 5
    shares: tuple[float, ...] = (0.25, 0.5)
    """Of the training pictures, for the learning curve; all of them come on top."""
    steps: int | None = None
    """Batches to learn from; None: ten times through the training pictures, and at least 150."""
    batch_size: int = 64
    hidden: int = 32
    queries: int = 4
    evidence_weight: float = 0.0
    """Of what maps miss of boxes and masks, as an extra loss of the attention heads; 0: nobody says where to look."""

    def __post_init__(self) -> None:
        check_weight("evidence_weight", self.evidence_weight)

    def steps_for(self, pictures: int) -> int:
        """Batches for that many training pictures."""
        return self.steps or max(150, 10 * -(-pictures // self.batch_size))


class Setting(NamedTuple):
    """How a head was trained."""

    rate: float
    decay: float


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
    settings: list[Setting | int] = field(default_factory=list)
    """What validation chose in each split; of neighbours, how many."""
    probabilities: Tensor | None = None
    """(N,K) of the first seed: each picture as its own split tested it."""
    heads: list[ProbeHead] = field(default_factory=list)
    """Of the first seed, one for each split."""
    statistics: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """Mean and standard deviation of each channel, for each split."""

    @property
    def by_split(self) -> Tensor:
        """Test accuracy of each split, the mean of its seeds: (J,)."""
        return torch.tensor(self.test, dtype=torch.float64).mean(1)


def head_trial(
    name: str,
    features: Features,
    labels: Tensor,
    answers: int,
    splits: Sequence[Split],
    plan: Plan,
    told: Callable[[int], None] = lambda done: None,
    places: Places | None = None,
) -> Trial:
    """Train one of :data:`RIVALS` on all splits; ``told`` is called with the number of splits done."""
    trial = Trial(name, shares={share: [] for share in plan.shares})
    trial.probabilities = torch.zeros(len(labels), answers)
    rates = plan.linear_rates if name in (LINEAR, CLASS_TOKEN) else plan.rates
    grid = [Setting(rate, decay) for rate in rates for decay in plan.decays]
    for number, split in enumerate(splits):
        centre, spread = view_of(name, features).statistics(split.train)
        training = Training(name, features, labels, answers, plan, (centre, spread), number, places)
        first = training.run([0] * len(grid), [split.train] * len(grid), grid)
        scores = training.logits(first, split.val)  # (M,n,K)
        best = _best(scores, labels[split.val])
        more = [*range(1, plan.seeds)]
        parts = [some_of(split, share, labels) for share in plan.shares]
        sets = [split.train] * len(more) + parts
        rest = training.run(more + [0] * len(parts), sets, [grid[best]] * len(sets)) if sets else []
        heads = [first[best], *rest]
        tested = training.logits(heads, split.test)  # (M,n,K)
        right = (tested.argmax(-1) == labels[split.test]).double().mean(1).tolist()  # (M,)
        trial.val.append(float((scores[best].argmax(-1) == labels[split.val]).double().mean()))
        trial.test.append(right[: plan.seeds])
        for share, accuracy in zip(plan.shares, right[plan.seeds :]):
            trial.shares[share].append(accuracy)
        trial.settings.append(grid[best])
        trial.probabilities[split.test] = tested[0].softmax(-1)
        trial.heads.append(heads[0])
        trial.statistics.append((centre, spread))
        told(number + 1)
    return trial


def view_of(name: str, features: Features) -> View:
    """What a rival reads."""
    found = {LINEAR: features.mean, PYRAMID: features.pyramid, CLASS_TOKEN: features.token}.get(name, features.map)
    if found is None:
        lacks = "no class token" if name == CLASS_TOKEN else "one stage only at this size"
        raise ConfigError(f"heads: '{name}' cannot be trained: this backbone has {lacks}; leave it out")
    return found


class Training:
    """Heads of one kind on one set of standardised features."""

    def __init__(
        self,
        name: str,
        features: Features,
        labels: Tensor,
        answers: int,
        plan: Plan,
        statistics: tuple[Tensor, Tensor],
        seed: int,
        places: Places | None = None,
    ) -> None:
        self._labels, self._answers, self._plan, self._seed = labels, answers, plan, seed
        self._name: HeadName = LINEAR if name == CLASS_TOKEN else next(head for head in HEADS if head == name)
        self._levels = features.levels
        view = view_of(name, features)
        self._channels = view.shape[0]
        self._batch: Batch = view.batches(*statistics)
        self._at_once = members_at_once(self._new(), view.shape, answers, plan.batch_size)
        self._places = None if name == PYRAMID else places  # those are of one grid

    def _new(self) -> ProbeHead:
        plan = self._plan
        sizes = {"hidden": plan.hidden, "queries": plan.queries}
        return new_head(self._name, self._channels, self._answers, **sizes, levels=self._levels)

    def run(self, seeds: Sequence[int], sets: Sequence[Tensor], settings: Sequence[Setting]) -> list[ProbeHead]:
        """A trained head for each seed, set of training pictures and setting."""
        learns = torch.zeros(len(seeds), len(self._labels), dtype=torch.bool)
        for member, pictures in enumerate(sets):
            learns[member, pictures] = True
        return train_heads(
            fresh_heads(self._new, seeds),
            self._batch,
            self._labels,
            learns,
            rates=[each.rate for each in settings],
            decays=[each.decay for each in settings],
            steps=self._plan.steps_for(max(map(len, sets))),
            batch_size=self._plan.batch_size,
            seed=self._seed,
            at_once=self._at_once,
            places=self._places,
        )

    def logits(self, heads: Sequence[ProbeHead], pictures: Tensor) -> Tensor:
        """(M,n,K)."""
        return logits_of(heads, self._batch, pictures, self._plan.batch_size, self._at_once)


def _best(scores: Tensor, truth: Tensor) -> int:
    """The member of ``scores`` (M,n,K) with the most right answers; of equal ones, that with the lowest loss."""
    right = (scores.argmax(-1) == truth).sum(1).tolist()
    loss = [float(F.cross_entropy(each, truth)) for each in scores]
    return max(range(len(scores)), key=lambda member: (right[member], -loss[member]))


def majority_trial(labels: Tensor, splits: Sequence[Split]) -> Trial:
    """Always the commonest class of the training pictures."""
    trial = Trial("majority")
    for split in splits:
        common = torch.bincount(labels[split.train]).argmax()
        trial.val.append(float((labels[split.val] == common).double().mean()))
        trial.test.append([float((labels[split.test] == common).double().mean())])
        trial.settings.append(0)
    return trial


def neighbour_trial(features: Features, labels: Tensor, answers: int, splits: Sequence[Split]) -> Trial:
    """The nearest training pictures vote, by the cosine of standardised pooled features."""
    trial = Trial("knn")
    for split in splits:
        centre, spread = features.statistics(split.train)
        values = F.normalize((features.pooled - centre) / spread, dim=1)  # (N,C)
        known = labels[split.train]
        scores = {}
        for count in NEIGHBOURS:
            voters = min(count, len(known))
            parts = [
                _voted(values[part] @ values[split.train].T, known, voters, answers) for part in (split.val, split.test)
            ]
            right = [
                float((found == labels[part]).double().mean()) for found, part in zip(parts, (split.val, split.test))
            ]
            scores[voters] = right
        best = max(scores, key=lambda voters: (scores[voters][0], -voters))
        trial.val.append(scores[best][0])
        trial.test.append([scores[best][1]])
        trial.settings.append(best)
    return trial


def _voted(likeness: Tensor, known: Tensor, voters: int, answers: int) -> Tensor:
    """The class (n,) that most of the nearest vote for, from likenesses (n,T); of equal ones the nearest decides."""
    near = likeness.topk(voters, dim=1)
    votes = torch.zeros(len(likeness), answers, dtype=torch.float64)
    weight = 1 + 1e-6 * near.values.double()  # closeness counts for less than one vote in all
    return votes.scatter_add_(1, known[near.indices], weight).argmax(1)
