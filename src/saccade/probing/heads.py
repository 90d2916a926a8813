"""Heads on frozen features: many of one kind trained side by side, and one kind on all splits.

The members of a stack have weights, a learning rate and a weight decay of their own. They see the same batches of
features, so the large product of a step, features times weights, is one product for all of them. A member comes out as
it does alone, up to rounding. A batch has pictures with all their questions (:mod:`saccade.probing.examples`).

The optimiser is AdamW (Loshchilov and Hutter 2019, arXiv:1711.05101) with torch's usual constants. The learning rate
rises for a tenth of the steps and falls to 0 along a cosine.

For each split, the settings are compared on its validation pictures with the first seed. The other seeds, and smaller
shares of the training pictures for the learning curve, are trained with the best. Statistics of the features come from
the training pictures of the split.

Axes: M members, B pictures of a batch, R examples about them, N examples (pictures, or questions about them), K
classes, J splits, S seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.losses.maps import evidence_loss
from saccade.metrics.intervals import Resplit
from saccade.metrics.result import Part
from saccade.models.probe_heads import LINEAR, PYRAMID, TITLES, HeadName, ProbeHead, new_head
from saccade.probing.examples import ProbedExamples, ProbeSplit, some_of
from saccade.probing.features import CLASS_TOKEN, Features
from saccade.probing.plan import SHOTS, Plan, Setting

BETAS, EPSILON = (0.9, 0.999), 1e-8
BUDGET = 64 << 20  # Numbers that a step of a stack may keep at most; larger stacks are trained in parts


@dataclass(frozen=True)
class EvidenceCells:
    """Where labels can be seen, on the cells of the features; see :mod:`saccade.losses.maps`."""

    on_evidence: Tensor
    """(N,H,W): how much of the evidence each cell covers, nᵢ; 0 for an example without evidence."""
    everywhere: Tensor  # (1,H,W): how much each cell covers, dᵢ
    weight: float

    def missed(self, maps: Tensor, numbers: Tensor, counts: Tensor) -> Tensor:
        """What the maps (M,R,H,W) of the examples ``numbers`` (R,) miss, for each member: (M,).

        Only examples that are learned from count, as ``counts`` (R,) says.
        """
        on_evidence = self.on_evidence[numbers].to(maps.device) * counts[:, None, None]  # (R,H,W)
        everywhere = self.everywhere.to(maps.device)
        return torch.stack([evidence_loss(own, on_evidence, everywhere) for own in maps])


def stacked(heads: Sequence[ProbeHead], device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """The weights of heads of one kind and size side by side: name → (M,…); the heads stay as they are."""
    states = [dict(head.named_parameters()) for head in heads]
    return {
        name: torch.stack([state[name].detach() for state in states]).to(device).requires_grad_() for name in states[0]
    }


def rate_factor(step: int, steps: int) -> float:
    """The share of the learning rate at ``step``.

    >>> [round(rate_factor(step, 20), 2) for step in (0, 1, 2, 11, 19)]
    [0.5, 1.0, 1.0, 0.5, 0.01]
    """
    rising = max(1, steps // 10)
    if step < rising:
        return (step + 1) / rising
    return 0.5 * (1 + math.cos(math.pi * (step - rising) / (steps - rising)))


def batches_of(pictures: Tensor, batch_size: int, steps: int, seed: int) -> list[Tensor]:
    """The numbers of the pictures of every step: epoch after epoch in a new order, in batches of equal size."""
    generator = torch.Generator().manual_seed(seed)
    parts = max(1, math.ceil(len(pictures) / batch_size))
    batches: list[Tensor] = []
    while len(batches) < steps:
        order = pictures[torch.randperm(len(pictures), generator=generator)]
        batches += torch.tensor_split(order, parts)
    return batches[:steps]


class StackedAdamW:
    """AdamW with a learning rate and a weight decay for each member of the leading axis."""

    def __init__(self, parameters: dict[str, Tensor], settings: Sequence[Setting]) -> None:
        self._parameters = [*parameters.values()]
        self._rates, self._decays = torch.tensor(settings, dtype=torch.float64).unbind(1)  # (M,)
        self._means = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._squares = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._steps = 0

    @torch.no_grad()
    def step(self, gradients: Sequence[Tensor], factor: float) -> None:
        """One step along ``gradients``, with the learning rates times ``factor``."""
        self._steps += 1
        first, second = (1 - beta**self._steps for beta in BETAS)
        torch._foreach_lerp_(self._means, [*gradients], 1 - BETAS[0])
        torch._foreach_mul_(self._squares, BETAS[1])
        torch._foreach_addcmul_(self._squares, [*gradients], [*gradients], 1 - BETAS[1])
        for parameter, mean, square in zip(self._parameters, self._means, self._squares):
            shape = (-1, *[1] * (parameter.dim() - 1))
            rate = (self._rates * factor).to(parameter).view(shape)  # (M,1,…)
            parameter.mul_(1 - rate * self._decays.to(parameter).view(shape))
            parameter.sub_(rate / first * mean / ((square / second).sqrt() + EPSILON))


ALL_TITLES: dict[str, str] = {
    "majority": "commonest class",
    "prior": "commonest answer to the question",
    "knn": "nearest neighbours",
    CLASS_TOKEN: "linear on the class token",
    **TITLES,
}
"""What rivals are called in sentences."""


class Trained(NamedTuple):
    """A head with the statistics of the features that it learned from."""

    head: ProbeHead
    centre: Tensor  # (C,) means of the channels
    spread: Tensor  # (C,) standard deviations


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
    shots: dict[int, list[float]] = field(default_factory=dict)  # The same of so many training pictures a class
    settings: list[Setting] = field(default_factory=list)  # What validation chose in each split
    probabilities: Tensor = field(default_factory=lambda: torch.zeros(0))
    """(N,K) of the first seed: each picture as its own split tested it; nothing of neighbours."""
    trained: list[Trained] = field(default_factory=list)  # The heads of the first seed, one for each split
    score: Resplit = field(init=False)  # Mean test accuracy
    difference: Resplit | None = None
    """Test accuracy less that of the linear head; None for the linear head itself."""

    @property
    def title(self) -> str:
        """What it is called in a sentence."""
        return ALL_TITLES[self.name]

    @property
    def mean_val(self) -> float:
        """Mean validation accuracy of what was chosen."""
        return sum(self.val) / len(self.val)

    @property
    def by_split(self) -> Tensor:
        """Test accuracy of each split, the mean of its seeds: (J,)."""
        return torch.tensor(self.test, dtype=torch.float64).mean(1)

    def to_json(self) -> Part:
        """Its scores as plain values; ``seed_spread`` is the standard deviation over seeds, the mean over splits."""
        by_seed = torch.tensor(self.test, dtype=torch.float64)  # (J,S)
        scores: Part = {
            "title": self.title,
            "accuracy": self.score.mean,
            "half": self.score.half,
            "interval": [max(0.0, self.score.low), min(1.0, self.score.high)],
            "validation": self.mean_val,
            "seed_spread": float(by_seed.std(1).mean()) if by_seed.shape[1] > 1 else math.nan,
            "by_split": self.test,
        }
        if self.difference is not None:
            scores |= {"difference": self.difference.mean, "difference_half": self.difference.half}
            scores["differs"] = self.difference.is_beyond_zero
        if self.shares:
            scores["learning_curve"] = {str(share): accuracies for share, accuracies in self.shares.items()}
        if self.shots:
            scores["low_shot"] = {str(count): accuracies for count, accuracies in self.shots.items()}
        return scores


class Material(NamedTuple):
    """What rivals learn from."""

    features: Features
    examples: ProbedExamples
    plan: Plan
    places: EvidenceCells | None = None  # Where labels can be seen, for heads that are taught where to look


class Training:
    """Heads of one kind, side by side, on one set of features, standardised by the examples ``train`` (n,).

    ``seed`` decides the order of the pictures.
    """

    def __init__(self, name: str, material: Material, train: Tensor, seed: int) -> None:
        self.material, self.name, self.seed = material, name, seed
        view, questions = material.features.view(name), material.examples.questions
        self.shape, self.device = view.shape, view.device
        self.statistics = view.statistics(questions.pictures_of(train))
        self.batch = view.batches(*self.statistics)
        """Numbers of pictures (B,) → standardised features (B,C,H,W), of a pyramid a list of maps."""
        asked = len(material.examples) / len(torch.unique(questions.picture))  # questions about a picture
        numbers = self.new().numbers(self.shape[0], math.prod(self.shape[1:]), len(material.examples.classes))
        self.at_once = max(1, int(BUDGET // (numbers * material.plan.batch_size * asked)))
        """Heads in one stack at most."""

    def new(self) -> ProbeHead:
        """A fresh head."""
        features, examples, plan, _ = self.material
        name = LINEAR if self.name == CLASS_TOKEN else cast(HeadName, self.name)
        sizes: Any = {"hidden": plan.hidden, "queries": plan.queries, "levels": features.levels}
        return new_head(name, self.shape[0], len(examples.classes), questions=len(examples.questions.words), **sizes)

    def run(self, seeds: Sequence[int], settings: Sequence[Setting], examples: Tensor) -> list[ProbeHead]:
        """A head for each seed of its first weights and its setting, trained on the same ``examples`` (n,)."""
        heads: list[ProbeHead] = []
        for seed in seeds:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                heads.append(self.new())
        for first in range(0, len(heads), self.at_once):
            part = slice(first, first + self.at_once)
            self._train(heads[part], settings[part], examples)
        return heads

    def _train(self, heads: Sequence[ProbeHead], settings: Sequence[Setting], learned: Tensor) -> None:
        """Train one stack on the examples ``learned`` (n,)."""
        examples, plan, places = self.material.examples, self.material.plan, self.material.places
        is_learned = torch.zeros(len(examples), dtype=torch.bool)  # (N,) of a picture not every question may be
        is_learned[learned] = True
        places = None if self.name == PYRAMID else places  # those are of one grid
        weights = stacked(heads, self.device)
        optimiser = StackedAdamW(weights, settings)
        pictures = examples.questions.pictures_of(learned)  # others are never asked for
        steps = plan.steps_for(len(pictures))
        for step, numbers in enumerate(batches_of(pictures, plan.batch_size, steps, self.seed)):
            features = self.batch(numbers)  # (B,C,H,W)
            about, asked = examples.questions.about(numbers)  # (R,)
            logits = heads[0].stacked(weights, features, asked)  # (M,R,K)
            counts = is_learned[about].to(logits)  # (R,)
            truth = examples.labels[about].to(logits.device).expand(len(heads), -1)  # (M,R)
            surprise = F.cross_entropy(logits.flatten(0, 1), truth.flatten(), reduction="none").view_as(truth)  # (M,R)
            losses = (surprise * counts).sum(1) / counts.sum()  # (M,)
            if places is not None and (maps := heads[0].stacked_maps(weights, features, asked)) is not None:
                losses = losses + places.weight * places.missed(maps, about, counts)
            gradients = torch.autograd.grad(losses.sum(), [*weights.values()])
            optimiser.step(gradients, rate_factor(step, steps))
        for number, head in enumerate(heads):
            head.load_state_dict({name: tensor[number].detach() for name, tensor in weights.items()})

    @torch.no_grad()
    def logits(self, heads: Sequence[ProbeHead], examples: Tensor) -> Tensor:
        """The logits (M,n,K) of heads on the ``examples`` (n,), in main memory."""
        firsts = range(0, len(heads), self.at_once)
        stacks = [stacked(heads[first : first + self.at_once], self.device) for first in firsts]
        parts = [*self.material.examples.questions.parts(examples, self.material.plan.batch_size)]
        order = torch.cat([places for _, places, _ in parts]).argsort()
        logits = [
            torch.cat([heads[0].stacked(weights, self.batch(pictures), asked) for pictures, _, asked in parts], 1)
            for weights in stacks
        ]
        return torch.cat(logits).cpu()[:, order]

    def trained(self, head: ProbeHead) -> Trained:
        """A head with what it needs beside its weights, in main memory."""
        return Trained(head, *(values.cpu() for values in self.statistics))


def head_trial(
    name: str, material: Material, splits: Sequence[ProbeSplit], on_split: Callable[[int], None] = lambda done: None
) -> Trial:
    """Train one kind of head on all splits; ``on_split`` is called with how many are done, from 0 on."""
    _, examples, plan, _ = material
    labels = examples.labels
    shots = SHOTS if plan.shots else ()
    trial = Trial(name, shares={share: [] for share in plan.shares}, shots={count: [] for count in shots})
    trial.probabilities = torch.zeros(len(labels), len(examples.classes))
    grid = plan.settings(name)
    on_split(0)
    for number, split in enumerate(splits):
        training = Training(name, material, split.train, number)
        first = training.run([0] * len(grid), grid, split.train)
        scores = training.logits(first, split.val)  # (M,n,K)
        best = _best(scores, labels[split.val])
        chosen, more = [grid[best]], range(1, plan.seeds)
        rest = training.run(more, chosen * len(more), split.train)
        for part in (*plan.shares, *shots):  # by itself, with batches of its own
            rest += training.run([0], chosen, some_of(split, part, labels, examples.questions))
        heads = [first[best], *rest]
        logits = training.logits(heads, split.test)  # (M,n,K)
        right = [accuracy(own.argmax(-1), labels[split.test]) for own in logits]  # (M,)
        trial.val.append(accuracy(scores[best].argmax(-1), labels[split.val]))
        trial.test.append(right[: plan.seeds])
        for scores_of_part, score in zip([*trial.shares.values(), *trial.shots.values()], right[plan.seeds :]):
            scores_of_part.append(score)
        trial.settings.append(grid[best])
        trial.probabilities[split.test] = logits[0].softmax(-1)
        trial.trained.append(training.trained(heads[0]))
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
