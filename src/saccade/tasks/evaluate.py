"""The one loop that scores a model: batches of a split in, every score of the answers and of the maps out.

A family says in a :class:`Scoring` what it measures of a batch, what costs more and is measured of fewer examples, and
what its scores are called. The loop here takes the batches, computes several side by side where the family can, joins
what they measured in their order, asks again without the evidence, and makes the verdict. So the numbers do not depend
on how many batches were under way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

from saccade.metrics.intervals import ByName, ColumnBuffer, Values
from saccade.metrics.maps.edits import EditScores
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.result import Summary, only_defined, summarise, without_nan
from saccade.metrics.verdict import EvidenceReliance, Right, sampled, verdict
from saccade.tasks.forward_passes import BATCH, numbers_in_batches, thread_map

Progress = Callable[[int, int], None]
"""Called with examples done and examples in all."""


@dataclass
class Kept:
    """What was measured, with the value of every example behind every mean; a family adds fields of its own."""

    answers: Values = field(default_factory=Values)
    """Scores of the answers."""
    maps: MapScorer = field(default_factory=MapScorer)
    acts: Values = field(default_factory=Values)
    """Scores of single acts of attention, such as words, glimpses and crops; ``columns`` has the ``act_picture``."""
    rivals: ByName = field(default_factory=ByName)
    """The same scores, and others, of what the model is compared with."""
    causal: Values = field(default_factory=Values)
    """What became of answers when one thing was changed."""
    edits: EditScores = field(default_factory=EditScores)
    """What became of answers when attention was edited, of fewer examples."""
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    """What scores of the whole set are computed from, and the ``picture`` of each example."""
    rests_on: EvidenceReliance = field(default_factory=EvidenceReliance)
    """What became of answers without the evidence, and without the rest."""

    def join(self, later: Kept) -> None:
        """Add what was measured of later examples."""
        for each in fields(self):
            if each.name != "rests_on":
                getattr(self, each.name).join(getattr(later, each.name))


class Altered(NamedTuple):
    """Some examples whose evidence can be taken away."""

    images: Tensor
    """(B,3,H,W)."""
    evidence: Tensor
    """(B,H,W) bool."""
    right: Right
    """Asks the model again."""
    labels: Tensor
    """(B,) or (B,K)."""
    pictures: Tensor
    """(B,) ids."""
    guessed: Tensor
    """(B,): whether guessing is right."""
    kinds: Tensor | None = None
    """(B,): what was asked."""


Job = tuple[Callable[[Tensor], Kept], Tensor]
"""What is measured, and of which examples."""


class Scoring(ABC):
    """What a family measures of a model on a split: hooks of :func:`evaluate`, and no loop."""

    together: int = BATCH
    """Examples of a batch; among them maps are exchanged for the ``shuffled`` baseline."""
    threads: int = 1
    """Batches that are measured side by side."""
    numbers: Tensor
    """(N,) of the examples to score."""
    kept: type[Kept] = Kept
    """Makes what nothing was measured of yet."""

    tell: Callable[[int], None] = staticmethod(lambda done: None)
    """Called with the examples done within a batch that takes long; :func:`evaluate` sets it."""

    @abstractmethod
    def measure(self, numbers: Tensor, before: int) -> Kept:
        """The answers and maps of the examples ``numbers`` (B,); ``before``: how many were measured before them."""

    def further(self) -> Iterable[Job]:
        """What costs many passes, and is measured of fewer examples; nothing by default."""
        return ()

    def guesses(self, kept: Kept) -> dict[str, Tensor]:
        """Baselines of answers by name: 1 where each is right, (N,); nothing by default: then there is no verdict."""
        return {}

    def altered(self, numbers: Tensor, kept: Kept) -> Altered | None:
        """The examples ``numbers`` (B,), to be asked about without their evidence; None where it is not known."""
        return None

    @abstractmethod
    def scores(self, kept: Kept) -> dict[str, Any]:
        """What was measured, in the words of :func:`~saccade.metrics.result.summarise`."""

    def details(self, kept: Kept, found: Summary) -> Mapping[str, Any]:
        """What is told beside the scores ``found``, such as confusions."""
        return {}

    right: str = "accuracy"
    """The score of an answer that guesses are compared with."""


@torch.no_grad()
def evaluate(scoring: Scoring, progress: Progress = lambda done, total: None) -> Summary:
    """Every score of a model on a split, as plain numbers; see :mod:`saccade.metrics.result`."""
    kept, total, done = scoring.kept(), len(scoring.numbers), 0
    scoring.tell = lambda done: progress(done, total)

    def measured(job: tuple[Callable[[Tensor], Kept], Tensor, int]) -> tuple[Kept, int]:
        measure, numbers, count = job
        with nullcontext() if scoring.threads == 1 else torch.inference_mode():
            return measure(numbers), count

    for part, count in thread_map(measured, _jobs(scoring), scoring.threads):
        kept.join(part)
        if count:
            done += count
            progress(done, total)
    for places in numbers_in_batches(len(chosen := scoring.numbers[sampled(total)]), scoring.together):
        altered = scoring.altered(chosen[places], kept)
        if altered is not None and bool(altered.evidence.any()):
            images, evidence, right, labels, pictures, guessed, kinds = altered
            kept.rests_on.add(images, evidence, right, labels=labels, pictures=pictures, guessed=guessed, kinds=kinds)
    return _summary(scoring, kept)


def _jobs(scoring: Scoring) -> Iterator[tuple[Callable[[Tensor], Kept], Tensor, int]]:
    """All examples, batch by batch, and how many; then what costs more, which does not count as progress."""
    before = 0
    for places in numbers_in_batches(len(scoring.numbers), scoring.together):
        yield partial(scoring.measure, before=before), scoring.numbers[places], len(places)
        before += len(places)
    yield from ((measure, numbers, 0) for measure, numbers in scoring.further())


def _summary(scoring: Scoring, kept: Kept) -> Summary:
    """The scores, with those of single acts and of rivals, the verdict, and the details."""
    parts = scoring.scores(kept)
    if kept.acts.names:
        parts["measured"] = [*parts.get("measured", ()), (kept.acts, kept.columns["act_picture"])]
        parts["attention"] = {**parts.get("attention", {}), **only_defined(kept.acts.means())}
    rivals = {name: only_defined(means) for name, means in kept.rivals.means().items()}
    baselines = parts.get("baselines", {})
    parts["baselines"] = baselines | {
        name: {**baselines.get(name, {}), **means} for name, means in rivals.items() if means
    }
    found = summarise(**parts)
    if guesses := scoring.guesses(kept):
        right, picture = kept.answers[scoring.right], kept.columns["picture"]  # (N,) each
        found.update(verdict(right, guesses, picture, maps=kept.maps, rests_on=kept.rests_on))
    if len(kept.edits):
        found["interventions"] = without_nan(kept.edits.interventions())
    return cast(Summary, {**found, **scoring.details(kept, found)})
