"""Scores of a model that answers questions: its answers, and its attention beside baselines and bounds.

Maps are scored by :mod:`saccade.metrics.maps.scorer`, on the pixels of the network input. A model that only cuts out
crops has no grid of weights: its baselines live on the picture's own pixels, and there is no bound.

:class:`SceneScoring` is for generated scenes, which can be rendered again with one thing changed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Any, cast

import torch
from torch import Tensor

from saccade.errors import DataError
from saccade.families.question.scenes import SceneBatch, SceneData
from saccade.families.question.twins import twin_scores
from saccade.geometry import Size
from saccade.metrics.labels import accuracy_by_scale, correct, right_answers
from saccade.metrics.maps.faithfulness import deletion_and_insertion
from saccade.metrics.maps.interventions import causal_follow
from saccade.metrics.maps.twins import TwinScores
from saccade.metrics.result import Summary, without_nan
from saccade.models.base import QueryModel
from saccade.tasks.evaluate import (
    BATCH,
    EncodedPictures,
    Job,
    Measurements,
    Scoring,
    answers_of,
    at_once,
    distinct,
    in_parts,
    numbers_in_batches,
    thread_count,
)
from saccade.trace import Output, QuestionOutput

_SWEPT = 25  # questions whose scenes a CPU alters together for deletion and insertion
_TWIN_STEP = 3  # every third question is taken, so that there are many scenes: intervals count scenes
_EDIT_STEP = 2  # of every second batch of them attention is edited
_TWINS = 25  # questions that a CPU scores with all their twins: what a model has seen of these takes some 200 MB
_TWINS_ELSEWHERE = 250  # a GPU starves on few


class QuestionScoring(Scoring):
    """Measurements for the questions ``numbers`` (N,) of a split with pictures of that ``size``.

    Deletion and insertion, dozens of forward passes each, are of the questions ``swept`` (n,).
    """

    swept_at_once = 10

    def __init__(self, model: QueryModel, data: Any, numbers: Tensor, swept: Tensor, size: Size) -> None:
        self.model, self.data, self.numbers, self.swept, self.size = model, data, numbers, swept, size
        self.right = "top1" if model.multi_label else "accuracy"
        self.questions = tuple(data.queries)

    def take(self, numbers: Tensor) -> Any:
        """The questions ``numbers`` (B,)."""
        return self.data.take(numbers)

    @abstractmethod
    def add(self, measured: Any, batch: Any, encoded: EncodedPictures, output: Output, swapped: Tensor) -> None:
        """Measure the maps of a batch.

        ``encoded`` are its distinct pictures, ``swapped`` (B,K) the logits of other questions about the same pictures.
        """

    @abstractmethod
    def fill(self, images: Tensor) -> Tensor:
        """The fill for deleted pixels (P,3,H,W)."""

    def measure(self, numbers: Tensor, before: int) -> Measurements:
        """Answers, also to another question about the same picture, and maps of ``numbers`` (B,)."""
        measured, batch = self.measurements(), self.take(numbers)
        first, picture = distinct(batch.picture)  # (P,), (B,): several questions share a picture
        encoded = EncodedPictures(self.model, batch.images[first])
        other, has_other = batch.other_query()  # (B,), (B,)
        raw, swapped = _ask_both(encoded, batch.query, other, picture, len(self.data.queries))
        output = self.model.wrap(raw, self.size)
        right = {self.right: right_answers(output.logits, batch.label).double()}
        if not self.model.multi_label:
            is_right = right_answers(swapped, batch.label).double()
            right["swapped_query"] = torch.where(has_other, is_right, torch.nan)
            same = (swapped.argmax(-1) == output.logits.argmax(-1)).double()
            measured.columns.append(same_answer=torch.where(has_other, same, torch.nan))
        likeliest = getattr(output.aux, "argmax_logits", None)
        if likeliest is not None:  # where a model sums over locations, what the likeliest alone would have said
            is_right = right_answers(likeliest, batch.label)
            right[f"{self.right}_argmax_location"] = is_right.double()
        measured.answers.add_values(right)
        measured.columns.append(question=numbers, picture=batch.picture, query=batch.query, label=batch.label)
        measured.columns.append(answer=answers_of(output.trace))
        self.add(measured, batch, encoded, output, torch.where(has_other[:, None], swapped, torch.nan))
        return measured

    def further(self) -> Iterator[Job]:
        """Deletion and insertion."""
        for numbers in torch.split(self.swept, self.swept_at_once) if len(self.swept) else ():
            yield self._swept, numbers

    def _swept(self, numbers: Tensor) -> Measurements:
        """Deletion and insertion for the model's map and for pixels in random order (a uniform map)."""
        measured, batch, model = self.measurements(), self.take(numbers), self.model
        first, picture = distinct(batch.picture)  # (P,), (B,): the random order is the same for all questions of one
        images = batch.images[first]
        trace = model.wrap(EncodedPictures(model, images).ask(batch.query, picture), self.size).trace
        question, total, fill = (batch.query, answers_of(trace)), trace.image_map("total"), self.fill(images)  # (B,H,W)
        alone = torch.arange(len(numbers), device=picture.device)  # (B,)
        measured.acts.add_values(sweep_areas(model, batch.images, total, *question, alone, fill=fill[picture]))
        measured.columns.append(act_picture=batch.picture)
        even = torch.ones_like(total[first])  # (P,H,W)
        measured.rivals.add_values("uniform", sweep_areas(model, images, even, *question, picture, fill=fill))
        return measured

    def scores(self, measured: Measurements) -> dict[str, Any]:
        """Scores of answers, of maps, and of answers to changed pictures."""
        groups = measured.maps.groups
        return {
            "metrics": measured.answers.means(),
            "maps": measured.maps,
            "measured": [(measured.answers, groups), (measured.causal, groups)],
            "attention": measured.causal.means(),
        }


@dataclass
class SceneMeasurements(Measurements):
    """With the scores of the maps of re-rendered scenes, from fewer questions."""

    twins: TwinScores = field(default_factory=TwinScores)


class SceneScoring(QuestionScoring):
    """Measures a model on the first ``limit`` triples of a finite split of scenes.

    ``sweeps`` of them are for deletion and insertion, ``twins`` are rendered again for scores of maps.
    """

    data: SceneData
    measurements = SceneMeasurements

    def __init__(
        self,
        model: QueryModel,
        data: SceneData,
        *,
        limit: int | None = None,
        sweeps: int = 200,
        twins: int = 0,
    ) -> None:
        fewest = 2 * data.spec.slots  # so many surely have maps to exchange: no more than half are about one scene
        if limit is not None and limit < fewest:
            raise DataError(f"limit: maps are exchanged between scenes, which takes at least {fewest}, found {limit}")
        numbers = data.sampled(limit)
        super().__init__(model, data.asking(0.0), numbers, numbers[:sweeps], data.config.size)
        self.twins, self.absent = twins, data.asking(1.0) if data.config.absent else None
        self.on_cpu = data.device.type == "cpu"
        self.threads, self.swept_at_once = thread_count(data.device), _SWEPT if self.on_cpu else BATCH
        self._taking = Lock()  # scenes are kept by who makes them

    def take(self, numbers: Tensor) -> SceneBatch:
        """The triples ``numbers`` (B,), by one thread at a time."""
        with self._taking:
            return self.data.take(numbers)

    def fill(self, images: Tensor) -> Tensor:
        """Black."""
        return torch.zeros_like(images)

    def add(
        self, measured: SceneMeasurements, batch: SceneBatch, encoded: EncodedPictures, output: Output, swapped: Tensor
    ) -> None:
        """Maps, and answers after the target or another object changes; no answer follows a planted cause."""
        first, scene = distinct(batch.picture)  # (S,), (B,)
        masks = batch.layout[first].masks()  # (S,N,H,W)
        target, objects = masks[scene, batch.object], masks.any(1)[scene]  # (B,H,W) each
        measured.columns.append(scale=batch.scale)
        measured.maps.add_trace(output.trace, target, objects=objects, groups=batch.picture)
        if self.data.config.planted == "none":
            recoloured = batch.recolour_target()
            follow = causal_follow(self._answers(recoloured), recoloured.label, batch.label)
            measured.causal.add_values({"causal_follow": follow})
        others = {"recoloured": batch.recolour_other(), "removed": batch.remove_other()}
        answer = answers_of(output.trace)  # (B,)
        hold = {f"causal_hold_{change}": correct(self._answers(other), answer) for change, other in others.items()}
        measured.causal.add_values({**hold, "causal_hold": torch.stack(list(hold.values())).mean(0)})

    def _answers(self, batch: SceneBatch) -> Tensor:
        return in_parts(self.model, batch.images, batch.query).logits.argmax(-1)

    def further(self) -> Iterator[Job]:
        """Deletion and insertion, and scenes rendered again."""
        yield from super().further()
        total = len(self.numbers)
        wanted = min(self.twins, total)
        rendered = torch.arange(wanted) * max(1, min(_TWIN_STEP, total // max(wanted, 1)))  # (n,)
        for number, numbers in enumerate(self.data.by_scene(rendered, _TWINS if self.on_cpu else _TWINS_ELSEWHERE)):
            yield partial(self._twinned, with_edits=number % _EDIT_STEP == 0), numbers

    def _twinned(self, numbers: Tensor, *, with_edits: bool) -> SceneMeasurements:
        return SceneMeasurements(twins=twin_scores(self.model, self.take(numbers), with_edits=with_edits))

    def scores(self, measured: Measurements) -> dict[str, Any]:
        """The scores, of answers by the scale of the digit too."""
        parts = super().scores(measured)
        bins = accuracy_by_scale(measured.columns["answer"], measured.columns["label"], measured.columns["scale"])
        label = {scale: f"({scale.low:g},{scale.high:g}]" for scale in bins}
        by_scale = {"accuracy_by_scale": {label[scale]: scale.accuracy for scale in bins}}
        absent = {} if self.absent is None else {"accuracy_absent": self._accuracy_absent(self.absent)}
        return {
            **parts,
            "metrics": {**parts["metrics"], **by_scale, **absent},
            "counts": {"accuracy_by_scale": {label[scale]: scale.n for scale in bins}},
            "keep_undefined": True,
        }

    def details(self, measured: Measurements, summary: Summary) -> Mapping[str, Any]:
        """The scores of maps under intervention."""
        twins = cast(SceneMeasurements, measured).twins
        return {"interventions": without_nan(twins.summary())} if len(twins) else {}

    @torch.inference_mode()
    def _accuracy_absent(self, data: SceneData) -> float:
        right = []
        for numbers in numbers_in_batches(len(self.numbers), BATCH):
            batch = data.take(numbers)
            is_absent = batch.label == len(data.answers) - 1  # a scene may have all ten digits
            logits = in_parts(self.model, batch.images, batch.query).logits  # (B,K)
            right.append(right_answers(logits, batch.label)[is_absent])
        return float(torch.cat(right).double().mean())


def _ask_both(
    encoded: EncodedPictures, query: Tensor, other: Tensor, picture: Tensor, queries: int
) -> tuple[QuestionOutput, Tensor]:
    """Outputs for the queries (B,) about the pictures (B,), and the logits (B,K) of ``other`` queries (B,).

    Most of the others are among the queries and are not asked again.
    """
    pairs, other_pairs = (picture * queries + ids for ids in (query, other))  # (B,): a number for each pair
    is_new = ~torch.isin(other_pairs, pairs)  # (B,)
    raw = encoded.ask(torch.cat([query, other[is_new]]), torch.cat([picture, picture[is_new]]))
    ordered, order = torch.cat([pairs, other_pairs[is_new]]).sort()  # (B+A,)
    logits = raw.logits[order[torch.searchsorted(ordered, other_pairs)]]  # (B,K)
    return cast(QuestionOutput, raw[: len(query)]), logits


def sweep_areas(
    model: QueryModel,
    images: Tensor,
    maps: Tensor,
    query: Tensor,
    answers: Tensor,
    picture: Tensor,
    *,
    fill: float | Tensor,
) -> dict[str, Tensor]:
    """``deletion`` and ``insertion`` (B,) of the probability of the ``answers`` (B,) to queries (B,).

    ``picture`` (B,) is the number of each one's picture among ``images`` (P,3,H,W) with ``maps`` (P,H,W). An altered
    picture is asked all its questions at once.
    """
    place = (picture[:, None] == picture).tril(-1).sum(1)  # (B,): how many questions about the same picture come before
    shape = (len(images), int(place.max()) + 1)  # P, A
    questions = torch.full(shape, -1, device=picture.device)  # (P,A): the questions of each
    questions[picture, place] = torch.arange(len(picture), device=picture.device)

    def probability(altered: Tensor, pictures: Tensor) -> Tensor:
        question = questions[pictures]  # (N,A)
        copy, column = (question >= 0).nonzero().unbind(1)  # (M,) each
        which = question[copy, column]  # (M,)
        encoded = EncodedPictures(model, altered)
        logits = encoded.ask(query[which], copy if question.shape[1] > 1 else None).logits  # (M,K)
        shares = model.probabilities(logits).gather(1, answers[which][:, None])  # (M,1)
        table = shares.new_zeros(question.shape)  # (N,A); where a picture has fewer questions nothing is read
        table[copy, column] = shares.squeeze(1)
        return table

    curves = deletion_and_insertion(probability, images, maps, fill=fill, max_batch=at_once(images))
    return {name: curve.area[picture, place] for name, curve in zip(("deletion", "insertion"), curves)}
