"""Scores of a model that reads multisets: what it said, and where it glimpsed and attended while it did.

A glimpse is right if the centre of its cell lies in the box of an object (``glimpse_in_evidence``), and right for what
was then said if that object has the label said (``glimpse_on_label``). Beside it stand glimpses at random (their
expectation, nothing is drawn) and at the most salient cell of the same step. ``attn_saliency`` is the saliency at the
glimpses, between 0 and 1; ``attn_saliency_raw`` is the same in the units of the activations, as the paper has it, and
the one score that is no fraction. The total map is scored against the pixels of all objects. Beside the answers stands
the one that most training pictures would be right with (``training_prior``), where there is a table of them.

A model without glimpses (the counting control) has answers and a map only. What no picture has boxes for is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.families.multiset.batch import read_all
from saccade.families.multiset.data import MultisetBatch, MultisetData
from saccade.metrics import (
    at_glimpses,
    at_random,
    baselines,
    bootstrap,
    cells_in_boxes,
    exact_match,
    macro_f1,
    macro_f1_by_presence,
    macro_f1_interval,
    most_salient,
    multiset_counts,
)
from saccade.metrics.answers.multisets import before_stop
from saccade.metrics.intervals import mean_defined
from saccade.metrics.maps.map_scores import MapScores, PictureValues
from saccade.models.base import PictureModel, Raw
from saccade.tasks.kept_columns import KeptColumns
from saccade.tasks.scoring import BATCH, answers_of, numbers_in_batches, only_defined, without_nan
from saccade.trace import AttentionTrace


@dataclass
class MultisetScores:
    """What was measured, with the values of each picture behind every mean."""

    classes: int
    is_list: bool = False
    """Whether the order of the labels is part of the answer."""
    answers: PictureValues = field(default_factory=PictureValues)
    total: MapScores = field(default_factory=MapScores)
    maps: dict[str, MapScores] = field(default_factory=dict)
    """Of the baselines of the total map."""
    glimpses: dict[str, PictureValues] = field(default_factory=dict)
    """One value a step, NaN where it does not count: of the model's glimpses and of the baselines'."""
    columns: KeptColumns = field(default_factory=KeptColumns)
    """``picture`` (B,); ``said`` and ``truth``: counts (B,K+1), the last column for stop; ``step_picture`` (B·T,)."""
    prior: MultisetScores | None = None
    """The answers of who always says what most training pictures hold, where that is known."""

    def metrics(self) -> dict[str, float]:
        """Of the answers: ``macro_f1``, ``exact_match`` and ``macro_f1_by_presence``."""
        said, truth = self.columns["said"], self.columns["truth"]  # (N,K+1)
        found = {"macro_f1": macro_f1(said[:, :-1], truth[:, :-1]), **self.answers.means()}
        return {**found, "macro_f1_by_presence": macro_f1_by_presence(said, truth)}

    def attention(self) -> dict[str, float]:
        """Of the model's glimpses and of its total map, as far as they were scored."""
        glimpses = self.glimpses["model"].means() if "model" in self.glimpses else {}
        return only_defined({**glimpses, **self.total.means()})

    def summary(self) -> dict[str, Any]:
        """Plain numbers: ``n``, ``metrics``, ``attention``, ``baselines``, ``intervals`` and ``counts``."""
        by_count, pictures = self._by_count()
        rivals = {name: held for name, held in {**self.glimpses, **self.maps}.items() if name != "model"}
        found = {
            "n": len(self.columns["said"]),
            "metrics": {**self.metrics(), "exact_match_by_count": by_count},
            "attention": self.attention(),
            "baselines": ({} if self.prior is None else {"training_prior": self.prior.metrics()})
            | {name: means for name, held in rivals.items() if (means := only_defined(held.means()))},
            "intervals": self._intervals(),
            "counts": {**self._counts(), "exact_match_by_count": pictures},
        }
        return {key: without_nan(value) for key, value in found.items()}

    def _by_count(self) -> tuple[dict[str, float], dict[str, int]]:
        """Exact match by the number of objects in the picture, and how many such pictures there are."""
        right, objects = self.answers.values()["exact_match"], self.columns["truth"][:, :-1].sum(1)
        groups = {str(number): right[objects == number] for number in torch.unique(objects).tolist()}
        return {name: float(each.mean()) for name, each in groups.items()}, {n: len(v) for n, v in groups.items()}

    def _named(self) -> list[tuple[dict[str, Tensor], Tensor]]:
        """Values by name, with the pictures they belong to: one value a picture, and one a step."""
        picture = self.columns["picture"]
        named = [({**self.answers.values(), **self.total.values()}, picture)]
        if "model" in self.glimpses:
            named.append((self.glimpses["model"].values(), self.columns["step_picture"]))
        return [({name: each for name, each in held.items() if not bool(each.isnan().all())}, of) for held, of in named]

    def _intervals(self) -> dict[str, list[float]]:
        found = {"macro_f1": macro_f1_interval(self.columns["said"][:, :-1], self.columns["truth"][:, :-1])}
        for values, of in self._named():
            found |= {name: bootstrap(each, of[: len(each)]) for name, each in values.items()}
        return {name: [interval.low, interval.high] for name, interval in found.items()}

    def _counts(self) -> dict[str, int]:
        counted = {name: mean_defined(each).n for values, _ in self._named() for name, each in values.items()}
        return {"macro_f1": len(self.columns["said"]), **counted}


@torch.no_grad()
def score_multisets(
    model: PictureModel,
    data: MultisetData,
    size: geometry.Size,
    *,
    habit: Sequence[int] | None = None,
    limit: int | None = None,
    batch_size: int = BATCH,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> MultisetScores:
    """Score ``model`` on a split.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split, in the words of the model.
        size: (height, width) of the network input.
        habit: the labels that most training pictures have, to be scored as an answer to every picture.
        limit: at most this many pictures, from the first on.
        batch_size: pictures at once; among them maps are exchanged for the shuffled baseline.
        progress: called with pictures done and pictures in all.
    """
    scores = MultisetScores(len(data.classes), data.kind == "list")
    scores.prior = None if habit is None else MultisetScores(scores.classes, scores.is_list)
    total, done = min(limit or len(data), len(data)), 0
    for numbers in numbers_in_batches(total, batch_size):
        batch = data.take(numbers)
        raw, trace = read_all(model, batch.images, size)
        add_answers(scores, answers_of(trace), batch)
        if scores.prior is not None and habit is not None:
            always = torch.tensor([*habit, scores.classes], device=batch.labels.device)  # (T,): the labels, then stop
            add_answers(scores.prior, always.expand(len(batch), -1), batch)
        add_glimpses(scores, raw, trace, batch)
        _add_maps(scores, trace, batch)
        done += len(batch)
        progress(done, total)
    return scores


def add_answers(scores: MultisetScores, said: Tensor, batch: MultisetBatch) -> None:
    """What was said (B,T), as counts; of a list the order counts too."""
    stop = scores.classes
    found, truth = multiset_counts(said, stop), batch.counts(stop)  # (B,K)
    right = exact_match(found, truth)  # (B,)
    if scores.is_list:
        right = right * _same_order(said, batch.labels, stop)
    stopped = (said == stop).any(1).long()  # (B,): who goes on to the last step has never stopped
    scores.columns.keep(
        picture=batch.picture,
        said=torch.cat([found, stopped[:, None]], dim=1),
        truth=torch.cat([truth, torch.ones_like(stopped)[:, None]], dim=1),
    )
    scores.answers.add_values({"exact_match": right})


def _same_order(said: Tensor, labels: Tensor, stop: int) -> Tensor:
    """1.0 where the labels (B,M) were said (B,T) in their order, as far as either goes: (B,)."""
    length = min(said.shape[1], labels.shape[1])
    spoken = torch.where(before_stop(said, stop), said, -1)  # (B,T)
    return (spoken[:, :length] == labels[:, :length]).all(1).float()


def add_glimpses(scores: MultisetScores, raw: Raw, trace: AttentionTrace, batch: MultisetBatch) -> None:
    """What lay under the model's glimpses, under random ones, and under those of who follows saliency alone."""
    if "location" not in raw:
        return
    saliency, choice, said = raw["saliency.weights"], raw["location"], answers_of(trace)
    active = before_stop(said, scores.classes)  # (B,T): what was said is a label
    steps, chosen = said.shape[1], {"model": choice, "most_salient_glimpse": most_salient(saliency)}
    maps = {"attn_saliency": saliency, "attn_saliency_raw": in_units_of_energy(saliency, raw["saliency.energy"])}
    maps |= _evidence_under_cells(trace, said, batch)
    for score, each in maps.items():
        found = {name: at_glimpses(each, cells, active) for name, cells in chosen.items()}
        for name, there in (found | {"random_glimpse": at_random(each, steps, active)}).items():
            scores.glimpses.setdefault(name, PictureValues()).add_values({score: there.flatten()})  # (B·T,)
    scores.columns.keep(step_picture=batch.picture.repeat_interleave(steps))


def in_units_of_energy(saliency: Tensor, energy: Tensor) -> Tensor:
    """Saliency (B,T,h,w), which began between 0 and 1, back on the scale of the energy (B,h,w) that it came from."""
    low, high = energy.flatten(1).aminmax(dim=1)  # (B,)
    return low[:, None, None, None] + saliency * (high - low)[:, None, None, None]


def _evidence_under_cells(trace: AttentionTrace, said: Tensor, batch: MultisetBatch) -> dict[str, Tensor]:
    """Which cells (B,T,h,w) have an object under their centre, and which one with the label said; NaN without boxes."""
    frame, grid = _cells_on_picture(trace, (batch.images.shape[-2], batch.images.shape[-1]))
    inside = cells_in_boxes(batch.boxes, frame, grid)  # (B,M,h,w)
    meant = said[:, :, None] == batch.labels[:, None]  # (B,T,M)
    on_label = (meant[..., None, None] & inside[:, None]).any(2)  # (B,T,h,w)
    known = ~(batch.boxes.isnan().any(-1) & batch.present).any(1) & batch.present.any(1)  # (B,)
    return {
        "glimpse_in_evidence": torch.where(known[:, None, None], inside.any(1).double(), torch.nan),  # (B,h,w)
        "glimpse_on_label": torch.where(known[:, None, None, None], on_label.double(), torch.nan),  # (B,T,h,w)
    }


def _cells_on_picture(trace: AttentionTrace, size: geometry.Size) -> tuple[Tensor, geometry.Size]:
    """Frame of the cells on the picture of ``size``, and their grid; all looks of a reader share them."""
    for look in trace.looks:
        if look.is_spatial and look.weights is not None:
            frame = trace.frame_on(look, size).to(look.weights.device)
            return frame, (look.weights.shape[-2], look.weights.shape[-1])
    raise DataError("this model has no look on a picture: there is nothing to score")


def _add_maps(scores: MultisetScores, trace: AttentionTrace, batch: MultisetBatch) -> None:
    """The total map and its baselines, against the pixels of all objects."""
    evidence = batch.masks().any(1)  # (B,H,W)
    size = (evidence.shape[-2], evidence.shape[-1])
    total = trace.image_map("total", size)  # (B,H,W)
    scores.total.add(total, evidence)
    (frame, grid), pictures = _cells_on_picture(trace, size), len(batch)
    maps = {
        "uniform": baselines.uniform(frame, grid, size, pictures=pictures),
        "centre_gaussian": baselines.centre_gaussian(frame, grid, size, pictures=pictures),
        "grid_oracle": baselines.grid_oracle(evidence, frame, grid),
    }
    if pictures > 1:
        maps["shuffled"] = baselines.shuffled(total, batch.picture)
    for name, each in maps.items():
        scores.maps.setdefault(name, MapScores()).add(each, evidence)
