"""The one loop that scores a model: batches of a split in, every score of the answers and of the maps out.

A family's :class:`Scoring` measures a batch and names its scores. The loop joins the measurements in order, asks again
without the evidence, and makes the verdict. Each picture is encoded once. On a CPU batches are scored in parallel, one
core each; each batch is computed as it would be alone, so numbers do not depend on the number of threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from saccade.geometry import Size
from saccade.metrics.intervals import ByName, ColumnBuffer, Values
from saccade.metrics.maps.edits import EditScores
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.result import Summary, only_defined, summarise, without_nan
from saccade.metrics.verdict import Altered, Answered, EvidenceReliance, against_random_order, sampled, verdict
from saccade.models.base import Given, ImageOnlyModel, QueryModel, laid_out
from saccade.progress import OnProgress, no_progress
from saccade.trace import AttentionTrace, ModelOutput, joined

BATCH = 250  # Examples that are scored together
AT_ONCE = {"cpu": 10, "cuda": 1000}  # pictures of 100×100 pixels in one forward pass: a CPU's caches hold few
_AT_ONCE_ELSEWHERE = 250
_PIXELS = 100 * 100
MAX_THREADS = 4  # Each thread holds a batch with all its maps, some 300 MB for 250 questions

Item = TypeVar("Item")
Result = TypeVar("Result")


def numbers_in_batches(total: int, batch_size: int) -> Iterator[Tensor]:
    """The numbers 0 … total − 1; a short rest joins the last batch, as it could be all about one picture."""
    start = 0
    while start < total:
        end = start + batch_size if total - start >= 2 * batch_size else total
        yield torch.arange(start, end)
        start = end


def answers_of(trace: AttentionTrace) -> Tensor:
    """The answer ids (B,…) of a trace."""
    return cast(Tensor, trace.answer)


def in_parts(model: QueryModel | ImageOnlyModel, images: Tensor, *more: Tensor, threads: int = 1) -> ModelOutput:
    """``forward_raw`` of pictures (B,3,H,W) and ``more`` (B,…), a few at a time, in eval mode.

    Scalars and features are left out.
    """
    together = at_once(images, model.network_size)
    inputs = zip(*(torch.split(tensor, together) for tensor in (images, *more)))

    def forward(tensors: tuple[Tensor, ...]) -> ModelOutput:
        with nullcontext() if threads == 1 else torch.inference_mode():
            return model.forward_raw(laid_out(tensors[0]), *tensors[1:])

    return joined(thread_map(forward, inputs, threads))


def encoded(encode: Callable[[Tensor], Tensor], images: Tensor) -> Tensor:
    """``encode`` of pictures (B,3,H,W), a few at a time: (B,…)."""
    parts = [encode(laid_out(part)) for part in torch.split(images, at_once(images))]
    return parts[0] if len(parts) == 1 else torch.cat(parts)


class EncodedPictures:
    """Pictures (P,3,H,W), encoded once for many questions."""

    def __init__(self, model: QueryModel, images: Tensor) -> None:
        self.model, self.images, self.together = model, images, at_once(images)
        self.encoding = encoded(model.encode, images)  # (P,…)

    def ask(self, query: Tensor, picture: Tensor | None = None, *, attention: Given | None = None) -> ModelOutput:
        """As :func:`in_parts`, for queries (B,) about the pictures numbered ``picture`` (B,); None: one each."""
        few = len(query) <= 3 * self.together // 2  # a small part that is left over is slow

        def split(tensor: Tensor) -> tuple[Tensor, ...]:
            return (tensor,) if few else torch.split(tensor, self.together)

        encodings = split(self.encoding) if picture is None else map(self._of, split(picture))
        if not attention:
            return joined(self.model.ask(*part) for part in zip(encodings, split(query)))
        names, weights = attention.keys(), zip(*map(split, attention.values()))
        edits = (dict(zip(names, part)) for part in weights)
        return joined(self.model.ask(*part, attention=edit) for *part, edit in zip(encodings, split(query), edits))

    def _of(self, picture: Tensor) -> Tensor:
        if self.encoding.device.type != "cpu":
            return self.encoding[picture]
        # The channels lie together here: seen so, each encoding is one piece of memory and copied as such.
        return self.encoding.movedim(1, -1).index_select(0, picture).movedim(-1, 1)


def distinct(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """The first place of each distinct number (P,), and which of these each of the ``numbers`` (B,) is (B,).

    >>> distinct(torch.tensor([7, 7, 3, 7]))
    (tensor([2, 0]), tensor([1, 1, 0, 1]))
    """
    values, which = torch.unique(numbers, return_inverse=True)  # (P,), (B,)
    places = torch.arange(len(numbers), device=numbers.device)  # (B,)
    first = torch.full_like(values, len(numbers), dtype=places.dtype).scatter_reduce(0, which, places, "amin")
    return first, which


def at_once(images: Tensor, size: Size | None = None) -> int:
    """How many pictures (B,3,H,W) go through a model at once; ``size``: that of its network input, if it differs."""
    height, width = images.shape[-2:] if size is None else size
    pixels = height * width
    return max(1, AT_ONCE.get(images.device.type, _AT_ONCE_ELSEWHERE) * _PIXELS // pixels)


def thread_count(device: torch.device) -> int:
    """Batches scored at once: on a CPU torch's number of threads, four at most; else one."""
    return min(MAX_THREADS, torch.get_num_threads()) if device.type == "cpu" else 1


def thread_map(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """``work(item)`` of each item, in order, a few at a time; one thread is this one, with all of torch's cores."""
    if threads <= 1:
        yield from map(work, items)
        return
    cores = torch.get_num_threads()
    remaining, pending = iter(items), deque[Future[Result]]()
    pool = ThreadPoolExecutor(threads, "scoring", lambda: torch.set_num_threads(max(1, cores // threads)))
    try:
        pending.extend(pool.submit(work, item) for item in islice(remaining, threads + 1))
        while pending:
            result = pending.popleft().result()
            pending.extend(pool.submit(work, item) for item in islice(remaining, 1))
            yield result
    finally:
        pool.shutdown(cancel_futures=True)  # waits for the batches under way, and begins no other
        torch.set_num_threads(cores)  # a thread that set its own number changed that of threads to come


@dataclass
class Measurements:
    """The values of every example; a family may add fields."""

    answers: Values = field(default_factory=Values)  # Scores of the answers
    maps: MapScorer = field(default_factory=MapScorer)
    # Scores of single acts of attention (words, glimpses, crops); ``columns`` has the ``act_picture`` of each.
    acts: Values = field(default_factory=Values)
    rivals: ByName = field(default_factory=ByName)  # Scores of what the model is compared with
    causal: Values = field(default_factory=Values)  # Answers after one thing was changed
    # Answers after attention was edited, of fewer examples.
    edits: EditScores = field(default_factory=EditScores)
    # Inputs of scores of the whole set, and the ``picture`` of each example.
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    # Answers without the evidence, and without the rest.
    reliance: EvidenceReliance = field(default_factory=EvidenceReliance)

    def join(self, later: Measurements) -> None:
        """Add what was measured of later examples."""
        for part in fields(self):
            if part.name != "reliance":
                getattr(self, part.name).join(getattr(later, part.name))


Job = tuple[Callable[[Tensor], Measurements], Tensor]  # A measurement, and the numbers of its examples


class Scoring(ABC):
    """What a family measures of a model on a split: hooks of :func:`evaluate`, and no loop."""

    together: int = BATCH  # Examples of a batch, within which the ``shuffled`` baseline exchanges maps
    threads: int = 1  # Batches measured in parallel
    numbers: Tensor  # (N,) of the examples to score
    measurements: type[Measurements] = Measurements  # Makes an empty result

    @abstractmethod
    def measure(self, numbers: Tensor, before: int) -> Measurements:
        """The answers and maps of the examples ``numbers`` (B,), after ``before`` others."""

    def further(self) -> Iterable[Job]:
        """Measurements of fewer examples, as they cost many passes; none by default."""
        return ()

    def guesses(self, measured: Measurements) -> dict[str, Tensor]:
        """Baselines of answers by name: 1 where right, (N,). Without any, the default, there is no verdict."""
        return {}

    def altered(self, numbers: Tensor, measured: Measurements) -> Altered | None:
        """The examples ``numbers`` (B,), to be asked about without their evidence; None if it is unknown."""
        return None

    @abstractmethod
    def scores(self, measured: Measurements) -> dict[str, Any]:
        """Arguments of :func:`~saccade.metrics.result.summarise`."""

    def details(self, measured: Measurements, summary: Summary) -> Mapping[str, Any]:
        """Further entries, such as confusions; it may change ``summary``."""
        return {}

    has_evidence: bool = True  # Whether the data says where a model with maps should look; the verdict says if not
    right: str = "accuracy"  # The score of an answer that guesses are compared with
    # What is asked, by the number in the column ``query``; empty where nothing is.
    questions: tuple[str, ...] = ()
    instead: str = ""  # What to try where the model is not better than its rivals


@torch.no_grad()
def evaluate(
    scoring: Scoring,
    on_progress: OnProgress = no_progress,
    rivals: Mapping[str, Tensor] = MappingProxyType({}),
) -> Summary:
    """Every score of a model on a split, as plain numbers; see :mod:`saccade.metrics.result`.

    Of ``rivals`` by name, each is 1 where it is right, (N,).
    """
    measured, total, done = scoring.measurements(), len(scoring.numbers), 0
    further = list(scoring.further())
    can_alter = type(scoring).altered is not Scoring.altered and scoring.has_evidence
    altered_ones = scoring.numbers[sampled(total if can_alter else 0)]
    work = (
        total + sum(len(numbers) for _, numbers in further) + len(altered_ones)
    )  # what is measured again counts again

    def run_job(job: Job) -> tuple[Measurements, int]:
        measure, numbers = job
        with nullcontext() if scoring.threads == 1 else torch.inference_mode():
            return measure(numbers), len(numbers)

    def jobs() -> Iterator[Job]:
        """All examples, batch by batch; then further jobs."""
        before = 0
        for places in numbers_in_batches(total, scoring.together):
            yield partial(scoring.measure, before=before), scoring.numbers[places]
            before += len(places)
        yield from further

    for part, count in thread_map(run_job, jobs(), scoring.threads):
        measured.join(part)
        done += count
        on_progress("examples", done, work)
    for places in numbers_in_batches(len(altered_ones), scoring.together):
        if (altered := scoring.altered(altered_ones[places], measured)) is not None and bool(altered.evidence.any()):
            measured.reliance.add(altered)
        done += len(places)
        on_progress("examples", done, work)
    return _summary(scoring, measured, rivals)


def _summary(scoring: Scoring, measured: Measurements, trained: Mapping[str, Tensor]) -> Summary:
    parts = scoring.scores(measured)
    if measured.acts.names:
        parts["measured"] = [*parts.get("measured", ()), (measured.acts, measured.columns["act_picture"])]
        parts["attention"] = {**parts.get("attention", {}), **only_defined(measured.acts.means())}
    rivals = {name: only_defined(means) for name, means in measured.rivals.means().items()}
    baselines = {name: {scoring.right: float(right.mean())} for name, right in trained.items()}
    baselines |= parts.get("baselines", {})
    parts["baselines"] = baselines | {
        name: {**baselines.get(name, {}), **means} for name, means in rivals.items() if means
    }
    summary = summarise(**parts)
    if guesses := {**trained, **scoring.guesses(measured)}:
        columns = measured.columns
        answered = Answered(measured.answers[scoring.right], guesses, columns["picture"], instead=scoring.instead)
        if scoring.questions:
            answered = answered._replace(query=columns["query"], questions=scoring.questions)
        if "same_answer" in columns:
            answered = answered._replace(same=columns["same_answer"])
        in_order = {}
        if (random := measured.rivals.get("uniform")) is not None:
            in_order = against_random_order(measured.acts, random, columns["act_picture"])
        unseen = not scoring.has_evidence
        whole = verdict(answered, maps=measured.maps, rests_on=measured.reliance, in_order=in_order, unseen=unseen)
        summary.update(whole)
    if len(measured.edits):
        summary["interventions"] = without_nan(measured.edits.interventions())
    return cast(Summary, {**summary, **scoring.details(measured, summary)})
