"""Scores of a model on generated scenes: its answers, its attention beside baselines and bounds, and the causal tests.

Maps are scored by :mod:`saccade.metrics.maps.scorer`. Baselines and the bound are made on all grids of the model's
total map and combined as it is. A model that only cuts out crops has no grid of weights: its baselines live on the
picture's own pixels, and there is no bound, which would be the target's mask and no bound for boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock

import torch
from torch import Tensor

from saccade.errors import DataError
from saccade.families.question.scenes.data import SceneBatch, SceneData
from saccade.families.question.scenes.twin_scores import (
    RECOLOURED_OTHER,
    RECOLOURED_TARGET,
    REMOVED_OTHER,
    changed_scenes,
    twin_scores,
    twins_at_once,
)
from saccade.families.question.sweeps import sweep_areas
from saccade.geometry import Size
from saccade.metrics import CausalAnswers, accuracy_by_scale, scores_of_answers
from saccade.metrics.intervals import ColumnBuffer, Values
from saccade.metrics.maps.scorer import MapScorer, MapScores
from saccade.metrics.maps.twins import TwinScores
from saccade.metrics.result import Summary, summarise, without_nan
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import (
    BATCH,
    EncodedPictures,
    answers_of,
    distinct,
    in_parts,
    numbers_in_batches,
)
from saccade.tasks.thread_map import thread_count, thread_map
from saccade.trace import Output

SWEPT = 25
"""Questions whose pictures a CPU alters together for deletion and insertion."""
TWINS = 100
"""Questions whose scenes are rendered again for scores of the maps; about 35 forward passes each."""
_TWIN_STEP = 3  # every third question is taken, so that there are many scenes: intervals count scenes
_EDIT_STEP = 2  # of every second batch of them attention is edited
ANSWER_SCORES = ("accuracy", "swapped_query", "accuracy_argmax_location")


@dataclass
class SceneScores:
    """What was measured, with the value of every question behind every mean."""

    maps: MapScorer = field(default_factory=MapScorer)
    causal: Values = field(default_factory=Values)
    """Scores of the answers and of the causal tests."""
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    """``answer``, ``label`` and ``scale`` of the digit asked for, of every question."""
    twins: TwinScores = field(default_factory=TwinScores)
    """Scores of the maps of re-rendered scenes, from fewer questions."""

    def join(self, later: SceneScores) -> None:
        """Add what was measured of later questions."""
        self.maps.join(later.maps)
        self.causal.join(later.causal)
        self.columns.join(later.columns)
        self.twins.join(later.twins)

    def summary(self) -> Summary:
        """Plain numbers, see :mod:`saccade.metrics.result`."""
        means = self.causal.means()
        bins = accuracy_by_scale(self.columns["answer"], self.columns["label"], self.columns["scale"])
        label = {scale: f"({scale.low:g},{scale.high:g}]" for scale in bins}
        answers = {name: means[name] for name in ANSWER_SCORES if name in means}
        found = summarise(
            metrics={**answers, "accuracy_by_scale": {label[scale]: scale.accuracy for scale in bins}},
            maps=self.maps,
            measured=[(self.causal, self.maps.groups)],
            attention={name: mean for name, mean in means.items() if name not in answers},
            counts={"accuracy_by_scale": {label[scale]: scale.n for scale in bins}},
            keep_undefined=True,
        )
        if len(self.twins):
            found["interventions"] = without_nan(self.twins.summary())
        return found


def score_scenes(
    model: QueryModel,
    data: SceneData,
    *,
    limit: int | None = None,
    sweeps: int = 200,
    twins: int = 0,
    batch_size: int = BATCH,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SceneScores:
    """Score ``model`` on a finite split.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split.
        limit: at most this many triples, from the first on.
        sweeps: pictures for deletion and insertion, which cost dozens of forward passes each.
        twins: triples whose scenes are rendered again for scores of maps under intervention, see
            :mod:`saccade.metrics.maps.interventions`; from the first on.
        batch_size: triples at once; among them maps are exchanged for the shuffled baseline.
        progress: called with triples done and triples in all.
    """
    if data.size is None:
        raise DataError(f"split '{data.split}' has no end; score val or test")
    if limit is not None and limit < (fewest := _fewest(data)):
        raise DataError(f"limit: maps are exchanged between scenes, which takes at least {fewest}, found {limit}")
    scores = SceneScores()
    total, done = min(limit or data.size, data.size), 0
    taking = Lock()  # scenes are kept by who makes them

    def scored(batch: SceneBatch) -> SceneScores:
        return _scored(model, batch, data.spec.size, is_planted=data.config.planted != "none")

    def swept(batch: SceneBatch) -> SceneScores:
        return _swept(model, batch, data.spec.size)

    def twinned(batch: SceneBatch) -> SceneScores:
        return SceneScores(twins=twin_scores(model, batch, edits=False))

    def twinned_and_edited(batch: SceneBatch) -> SceneScores:
        return SceneScores(twins=twin_scores(model, batch))

    @torch.inference_mode()
    def measured(job: tuple[Callable[[SceneBatch], SceneScores], Tensor]) -> SceneScores:
        measure, numbers = job
        with taking:
            batch = data.take(numbers)
        return measure(batch)

    few = SWEPT if data.device.type == "cpu" else BATCH
    altered = [torch.arange(start, min(start + few, sweeps, total)) for start in range(0, min(sweeps, total), few)]
    wanted = min(twins, total)
    rendered = torch.arange(wanted) * max(1, min(_TWIN_STEP, total // max(wanted, 1)))  # (n,)
    jobs = chain(
        ((scored, numbers) for numbers in numbers_in_batches(total, batch_size)),
        ((swept, numbers) for numbers in altered),
        (
            (twinned if number % _EDIT_STEP else twinned_and_edited, numbers)
            for number, numbers in enumerate(data.by_scene(rendered, twins_at_once(data.device)))
        ),
    )  # one queue, so that no thread waits for the others between two kinds
    for part in thread_map(measured, jobs, thread_count(data.device)):
        scores.join(part)
        if "label" in part.columns:
            done += len(part.columns["label"])
            progress(done, total)
    return scores


@torch.inference_mode()
def accuracy_absent(model: QueryModel, data: SceneData, limit: int | None = None) -> float:
    """How often ``model`` says that a digit is not there, asked for digits that are not: ``data`` has ``absent`` 1."""
    if data.size is None:
        raise DataError(f"split '{data.split}' has no end; score val or test")
    right = []
    for numbers in numbers_in_batches(min(limit or data.size, data.size), BATCH):
        batch = data.take(numbers)
        is_absent = batch.label == len(data.answers) - 1  # a scene may have all ten digits
        right.append((in_parts(model, batch.images, batch.query)["logits"].argmax(-1) == batch.label)[is_absent])
    return float(torch.cat(right).double().mean())


def _scored(model: QueryModel, batch: SceneBatch, size: int, *, is_planted: bool) -> SceneScores:
    """All scores of a batch but deletion and insertion; of a planted cause no answer follows the target."""
    scores = SceneScores()
    first, scene = distinct(batch.scene)  # (S,), (B,): several questions share a scene
    seen = EncodedPictures(model, batch.images[first])
    output, swapped = _asked(seen, batch.query, batch.other_query(), scene, (size, size))
    masks = batch.layout[first].masks()  # (S,N,H,W)
    _add_answers(scores, output, batch)
    scores.maps.add_trace(output.trace, masks[scene, batch.object], objects=masks.any(1)[scene], groups=batch.scene)
    _add_causal(scores, seen, scene, batch, answers_of(output.trace), swapped, is_planted)
    return scores


def _asked(seen: EncodedPictures, query: Tensor, other: Tensor, scene: Tensor, size: Size) -> tuple[Output, Tensor]:
    """What is answered to the queries (B,) about the scenes (B,), and the answers (B,) to ``other`` queries about them.

    Most of the others are among the queries, as every digit of a scene is asked for: they are not asked again.
    """
    asked, wanted = (scene * len(SceneData.queries) + each for each in (query, other))  # (B,): a number for each pair
    is_new = ~torch.isin(wanted, asked)  # (B,)
    raw = seen.ask(torch.cat([query, other[is_new]]), torch.cat([scene, scene[is_new]]))
    known, order = torch.cat([asked, wanted[is_new]]).sort()  # (B+A,)
    answers = raw["logits"].argmax(-1)[order[torch.searchsorted(known, wanted)]]  # (B,)
    return seen.model.wrap(raw[: len(query)], size), answers


def _fewest(data: SceneData) -> int:
    """How many triples surely have maps to exchange: no more than half may be about one scene."""
    return 2 * data.spec.slots


def _add_answers(scores: SceneScores, output: Output, batch: SceneBatch) -> None:
    """The answer; beside it, where a model sums over locations, what the likeliest location alone would have said."""
    if "argmax_logits" in output.aux:
        right = output.aux["argmax_logits"].argmax(-1) == batch.label  # (B,)
        scores.causal.add_values({"accuracy_argmax_location": right})
    scores.columns.append(answer=answers_of(output.trace), label=batch.label, scale=batch.scale)


def _add_causal(
    scores: SceneScores,
    seen: EncodedPictures,
    scene: Tensor,
    batch: SceneBatch,
    answers: Tensor,
    swapped: Tensor,
    is_planted: bool,
) -> None:
    """Render each scene again with the target, or another object, changed.

    The unchanged ``scene`` (B,) of each question has been ``seen``. Its ``answers`` (B,) are known, and so is what was
    answered about another object (``swapped``, (B,)).
    """
    changed = changed_scenes(batch, target=not is_planted)
    pictures = torch.cat(list(changed.picture.values()))  # (W·B,)
    query = batch.query.repeat(len(changed.picture))  # (W·B,)
    logits = seen.logits_of_changed(changed.images, scene[changed.row], query, pictures)  # (W·B,K)
    after = dict(zip(changed.picture, torch.split(logits.argmax(-1), len(batch))))
    found = CausalAnswers(
        truth=batch.label,
        before=answers,
        target_changed=after.get(RECOLOURED_TARGET),
        new_truth=None if is_planted else changed.new_label,
        others_changed={"recoloured": after[RECOLOURED_OTHER], "removed": after[REMOVED_OTHER]},
        other_query=swapped,
    )
    scores.causal.add_values(scores_of_answers(found))


def _swept(model: QueryModel, batch: SceneBatch, size: int) -> SceneScores:
    """Deletion and insertion on black, for the model's map and for pixels in random order (a uniform map)."""
    scores = SceneScores()
    first, scene = distinct(batch.scene)  # (S,), (B,): the random order is the same for all questions of one
    trace = model.wrap(EncodedPictures(model, batch.images[first]).ask(batch.query, scene), (size, size)).trace
    asked, total = (batch.query, answers_of(trace)), trace.image_map("total")  # (B,H,W)
    alone = torch.arange(len(batch), device=scene.device)  # (B,)
    scores.maps.total.add_values(sweep_areas(model, batch.images, total, *asked, alone, fill=0.0))
    even = torch.ones_like(total[first])  # (S,H,W)
    areas = sweep_areas(model, batch.images[first], even, *asked, scene, fill=0.0)
    scores.maps.baselines["uniform"] = MapScores()
    scores.maps.baselines["uniform"].add_values(areas)
    return scores
