"""Scores of an attribute model: its answers, its attention beside baselines and bounds, and the causal tests.

Every map, the model's and the baselines', lies on the picture through the same projection. Baselines and the oracle
live on the grid of the model's last look on a picture, the one from which the answer is read. A model that only cuts
out crops has no grid of weights: its baselines live on the picture's own pixels, and there is no oracle of the grid,
which would be the target's mask and no bound for boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.families.question.scene_data import SceneBatch, SceneData
from saccade.families.question.sweeps import sweep_areas
from saccade.metrics import Interventions, accuracy_by_scale, bootstrap, causal_scores
from saccade.metrics.intervals import mean_defined
from saccade.metrics.maps import baselines
from saccade.metrics.maps.map_scores import MapScores, PictureValues
from saccade.models.base import QueryModel
from saccade.tasks.forward_passes import SeenPictures, distinct, in_parts
from saccade.tasks.scoring import BATCH, answers_of, cells_of, numbers_in_batches, without_nan
from saccade.trace import AttentionTrace, Output

BASELINES = ("uniform", "centre_gaussian", "shuffled", "all_objects", "all_objects_exact", "grid_oracle")
ANSWER_SCORES = ("accuracy", "swapped_query", "accuracy_argmax_location")


@dataclass
class SceneScores:
    """What was measured, with the per-picture values behind every mean."""

    total: MapScores = field(default_factory=MapScores)
    by_look: dict[str, MapScores] = field(default_factory=dict)
    baselines: dict[str, MapScores] = field(default_factory=dict)
    """By name, in the order of :data:`BASELINES`; without the grid oracle for a model of crops alone."""
    causal: PictureValues = field(default_factory=PictureValues)
    answers: list[Tensor] = field(default_factory=list)
    labels: list[Tensor] = field(default_factory=list)
    scales: list[Tensor] = field(default_factory=list)
    scenes: list[Tensor] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Plain numbers: ``n``, ``metrics``, ``attention``, ``baselines``, ``intervals`` and ``counts``."""
        causal = self.causal.means()
        bins = accuracy_by_scale(torch.cat(self.answers), torch.cat(self.labels), torch.cat(self.scales))
        scenes = torch.cat(self.scenes)
        named = self.total.values() | self.causal.values()
        intervals = {name: bootstrap(values, scenes[: len(values)]) for name, values in named.items()}
        label = {scale: f"({scale.low:g},{scale.high:g}]" for scale in bins}
        rest = {name: value for name, value in causal.items() if name not in ANSWER_SCORES}
        by_look = {name: scores.means() for name, scores in self.by_look.items()}
        found: dict[str, Any] = {
            "n": len(scenes),
            "metrics": {name: causal[name] for name in ANSWER_SCORES if name in causal},
            "attention": {**self.total.means(), **rest, "by_look": by_look},
            "baselines": {name: scores.means() for name, scores in self.baselines.items()},
            "intervals": {name: [interval.low, interval.high] for name, interval in intervals.items()},
            "counts": {name: mean_defined(values).n for name, values in named.items()},
        }
        found["metrics"]["accuracy_by_scale"] = {label[scale]: scale.accuracy for scale in bins}
        found["counts"]["accuracy_by_scale"] = {label[scale]: scale.n for scale in bins}
        return {key: without_nan(value) for key, value in found.items()}


@torch.no_grad()
def score_scenes(
    model: QueryModel,
    data: SceneData,
    *,
    limit: int | None = None,
    sweeps: int = 200,
    batch_size: int = BATCH,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> SceneScores:
    """Score ``model`` on a finite split.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split.
        limit: at most this many triples, from the first on.
        sweeps: pictures for deletion and insertion, which cost dozens of forward passes each.
        batch_size: triples at once; among them maps are exchanged for the shuffled baseline.
        progress: called with triples done and triples in all.
    """
    if data.size is None:
        raise DataError(f"split '{data.split}' has no end; score val or test")
    if limit is not None and limit < (fewest := _fewest(data)):
        raise DataError(f"limit: maps are exchanged between scenes, which takes at least {fewest}, found {limit}")
    scores = SceneScores()
    total, done = min(limit or data.size, data.size), 0
    for numbers in numbers_in_batches(total, batch_size):
        batch = data.take(numbers)
        first, scene = distinct(batch.scene)  # (S,), (B,): several questions share a scene
        seen = SeenPictures(model, batch.images[first])
        output = model.wrap(seen.ask(batch.query, scene), (data.spec.size, data.spec.size))
        other = batch.other_query()  # (B,)
        swapped = seen.ask(other, scene)["logits"].argmax(-1)  # (B,)
        _add_answers(scores, output, batch)
        _add_maps(scores, output.trace, batch)
        _add_causal(scores, model, batch, answers_of(output.trace), (other, swapped))
        if done < sweeps:
            _add_sweeps(scores, model, output.trace[: sweeps - done], batch)
        done += len(batch)
        progress(done, total)
    return scores


def _fewest(data: SceneData) -> int:
    """How many triples surely have maps to exchange: no more than half may be about one scene."""
    return 2 * data.spec.slots


def _add_answers(scores: SceneScores, output: Output, batch: SceneBatch) -> None:
    """The answer; beside it, where a model sums over locations, what the likeliest location alone would have said."""
    answer = answers_of(output.trace)
    if "argmax_logits" in output.aux:
        right = output.aux["argmax_logits"].argmax(-1) == batch.label  # (B,)
        scores.causal.add_values({"accuracy_argmax_location": right})
    found = ((scores.answers, answer), (scores.labels, batch.label), (scores.scales, batch.scale))
    for kept, tensor in (*found, (scores.scenes, batch.scene)):
        kept.append(tensor.cpu())


def _add_maps(scores: SceneScores, trace: AttentionTrace, batch: SceneBatch) -> None:
    """The total, every look, and every baseline, against the same truth."""
    evidence, objects = batch.evidence(), batch.objects()
    total = trace.image_map("total")  # (B,H,W)
    scores.total.add(total, evidence, objects)
    for look in trace.looks:
        if len(trace.looks) > 1 and look.is_spatial:
            scores.by_look.setdefault(look.name, MapScores()).add(trace.image_map(look), evidence, objects)
    size, pictures = (total.shape[-2], total.shape[-1]), len(batch)
    cells = cells_of(trace)
    frame, grid = cells or (geometry.identity(), size)
    frame = frame.to(total.device)
    maps = {
        "uniform": baselines.uniform(frame, grid, size, pictures=pictures),
        "centre_gaussian": baselines.centre_gaussian(frame, grid, size, pictures=pictures),
        "shuffled": baselines.shuffled(total, batch.scene),
        "all_objects": baselines.all_objects(objects, frame, grid),
        "all_objects_exact": baselines.all_objects_exact(objects),
    }
    if cells is not None:
        maps["grid_oracle"] = baselines.grid_oracle(evidence, frame, grid)
    for name, baseline in maps.items():
        scores.baselines.setdefault(name, MapScores()).add(baseline, evidence, objects)


def _add_causal(
    scores: SceneScores, model: QueryModel, batch: SceneBatch, answers: Tensor, other: tuple[Tensor, Tensor]
) -> None:
    """Render each scene again with the target, or another object, changed.

    The ``answers`` (B,) to the unchanged scenes are known already, and so is what was answered about an ``other``
    object: its queries (B,) and answers (B,).
    """
    changed = batch.recolour_target()
    scenes = Interventions(
        images=batch.images,
        queries=batch.query,
        truth=batch.label,
        target_changed=changed.images,
        new_truth=changed.label,
        others_changed={"recoloured": batch.recolour_other().images, "removed": batch.remove_other().images},
        other_queries=other[0],
        answers=answers,
        other_answers=other[1],
    )

    def answer(images: Tensor, queries: Tensor) -> Tensor:
        return in_parts(model, images, queries)["logits"].argmax(-1)

    scores.causal.add_values(causal_scores(answer, scenes))


def _add_sweeps(scores: SceneScores, model: QueryModel, trace: AttentionTrace, batch: SceneBatch) -> None:
    """Deletion and insertion on black, for the model's map and for pixels in random order (a uniform map)."""
    count = len(trace)
    asked, images, total = (batch.query[:count], answers_of(trace)), batch.images[:count], trace.image_map("total")
    first, scene = distinct(batch.scene[:count])  # (S,), (B,): the random order is the same for all questions of one
    alone = torch.arange(count, device=scene.device)  # (B,)
    scores.total.add_values(sweep_areas(model, images, total, *asked, alone, fill=0.0))
    even = torch.ones_like(total[first])  # (S,H,W)
    scores.baselines["uniform"].add_values(sweep_areas(model, images[first], even, *asked, scene, fill=0.0))
