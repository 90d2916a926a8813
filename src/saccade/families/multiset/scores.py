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
from typing import cast

import torch
from torch import Tensor

from saccade import geometry
from saccade.families.multiset.batch import read_all
from saccade.families.multiset.data import MultisetBatch, MultisetData, MultisetFiles
from saccade.families.multiset.edits import EDITED, glimpse_edits
from saccade.metrics import (
    at_glimpses,
    at_random,
    cells_in_boxes,
    exact_match,
    macro_f1,
    macro_f1_by_presence,
    macro_f1_interval,
    most_salient,
    multiset_counts,
)
from saccade.metrics.intervals import ColumnBuffer, Values
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.edits import EditScores
from saccade.metrics.maps.scorer import MapScorer
from saccade.metrics.result import Summary, only_defined, summarise, without_nan
from saccade.metrics.sets import before_stop, overall_precision, overall_recall
from saccade.models.base import ImageOnlyModel
from saccade.models.hsal import HsalModel
from saccade.outputs import ModelOutput
from saccade.tasks.forward_passes import BATCH, answers_of, numbers_in_batches
from saccade.trace import AttentionTrace


@dataclass
class MultisetScores:
    """What was measured, with the values of each picture behind every mean."""

    classes: int
    is_list: bool = False
    """Whether the order of the labels is part of the answer."""
    answers: Values = field(default_factory=Values)
    maps: MapScorer = field(default_factory=MapScorer)
    """Scores of the total map."""
    glimpses: dict[str, Values] = field(default_factory=dict)
    """One value a step, NaN where it does not count: of the model's glimpses and of the baselines'."""
    columns: ColumnBuffer = field(default_factory=ColumnBuffer)
    """``said`` and ``truth``: counts (B,K+1), the last column for stop; ``step_picture`` (B·T,)."""
    edits: EditScores = field(default_factory=EditScores)
    """Scores of edited attention to one label of each scene, from fewer scenes."""
    prior: MultisetScores | None = None
    """The answers of who always says what most training pictures hold, where that is known."""

    def metrics(self) -> dict[str, float]:
        """Scores of the answers: ``macro_f1`` (also by presence), ``exact_match``, overall precision and recall."""
        said, truth = self.columns["said"], self.columns["truth"]  # (N,K+1)
        both = said[:, :-1], truth[:, :-1]  # (N,K): without stop
        found = {"macro_f1": macro_f1(*both), **self.answers.means()}
        overall = {"overall_precision": overall_precision(*both), "overall_recall": overall_recall(*both)}
        return {**found, **only_defined(overall), "macro_f1_by_presence": macro_f1_by_presence(said, truth)}

    def attention(self) -> dict[str, float]:
        """Scores of the model's glimpses, if any counted; :meth:`summary` adds those of the total map."""
        return only_defined(self.glimpses["model"].means()) if "model" in self.glimpses else {}

    def summary(self) -> Summary:
        """Plain numbers, see :mod:`saccade.metrics.result`."""
        by_count, pictures = self._by_count()
        rivals = {name: only_defined(held.means()) for name, held in self.glimpses.items() if name != "model"}
        habit = {} if self.prior is None else {"training_prior": self.prior.metrics()}
        said, truth = (self.columns[name][:, :-1] for name in ("said", "truth"))  # (N,K)
        measured = [(self.answers, self.maps.groups)]
        if "model" in self.glimpses:
            measured.append((self.glimpses["model"], self.columns["step_picture"]))
        found = summarise(
            n=len(said),
            metrics={**self.metrics(), "exact_match_by_count": by_count},
            maps=self.maps,
            measured=measured,
            attention=self.attention(),
            baselines=habit | {name: means for name, means in rivals.items() if means},
            intervals={"macro_f1": macro_f1_interval(said, truth)},
            counts={"macro_f1": len(said), "exact_match_by_count": pictures},
        )
        if len(self.edits):
            found["interventions"] = without_nan(self.edits.interventions())
        return found

    def _by_count(self) -> tuple[dict[str, float], dict[str, int]]:
        """Exact match by the number of objects in the picture, and how many such pictures there are."""
        right, objects = self.answers.values()["exact_match"], self.columns["truth"][:, :-1].sum(1)
        groups = {str(number): right[objects == number] for number in torch.unique(objects).tolist()}
        return {name: float(each.mean()) for name, each in groups.items()}, {n: len(v) for n, v in groups.items()}


@torch.no_grad()
def score_multisets(
    model: ImageOnlyModel,
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
        limit: at most this many pictures: of generated scenes the first, of files a sample, see
            :mod:`saccade.data.tables.splits`.
        batch_size: pictures at once; among them maps are exchanged for the shuffled baseline.
        progress: called with pictures done and pictures in all.
    """
    scores = MultisetScores(len(data.classes), data.kind == "list")
    scores.prior = None if habit is None else MultisetScores(scores.classes, scores.is_list)
    chosen = _sampled(data, limit)  # (N,)
    total, done = len(chosen), 0
    for places in numbers_in_batches(total, batch_size):
        batch = data.take(chosen[places])
        raw, trace = read_all(model, batch.images, size)
        add_answers(scores, answers_of(trace), batch)
        if scores.prior is not None and habit is not None:
            always = torch.tensor([*habit, scores.classes], device=batch.labels.device)  # (T,): the labels, then stop
            add_answers(scores.prior, always.expand(len(batch), -1), batch)
        add_glimpses(scores, raw, trace, batch)
        if isinstance(model, HsalModel) and batch.layout is not None and done < EDITED:
            scores.edits.join(glimpse_edits(model, raw, trace, batch, size))
        evidence = batch.masks().any(1)  # (B,H,W): the pixels of all objects
        shown = (evidence.shape[-2], evidence.shape[-1])
        total_map = trace.image_map("total", shown)  # (B,H,W)
        scores.maps.add(total_map, evidence, groups=batch.picture, grids=grids_of(trace, shown))
        done += len(batch)
        progress(done, total)
    return scores


def _sampled(data: MultisetData, limit: int | None) -> Tensor:
    """Numbers (N,) of at most ``limit`` pictures."""
    if isinstance(data.source, MultisetFiles):
        return data.source.sampled(limit)
    return torch.arange(min(limit or len(data), len(data)))


def add_answers(scores: MultisetScores, said: Tensor, batch: MultisetBatch) -> None:
    """What was said (B,T), as counts; of a list the order counts too."""
    stop = scores.classes
    found, truth = multiset_counts(said, stop), batch.counts(stop)  # (B,K)
    right = exact_match(found, truth)  # (B,)
    if scores.is_list:
        right = right * _same_order(said, batch.labels, stop)
    stopped = (said == stop).any(1).long()  # (B,): who goes on to the last step has never stopped
    scores.columns.append(
        said=torch.cat([found, stopped[:, None]], dim=1),
        truth=torch.cat([truth, torch.ones_like(stopped)[:, None]], dim=1),
    )
    scores.answers.add_values({"exact_match": right})


def _same_order(said: Tensor, labels: Tensor, stop: int) -> Tensor:
    """1.0 where the labels (B,M) were said (B,T) in their order, as far as either goes: (B,)."""
    length = min(said.shape[1], labels.shape[1])
    spoken = torch.where(before_stop(said, stop), said, -1)  # (B,T)
    return (spoken[:, :length] == labels[:, :length]).all(1).float()


def add_glimpses(scores: MultisetScores, raw: ModelOutput, trace: AttentionTrace, batch: MultisetBatch) -> None:
    """What lay under the model's glimpses, under random ones, and under those of who follows saliency alone."""
    if "location" not in raw:
        return
    saliency, choice, said = raw["saliency.weights"], raw["location"], answers_of(trace)
    active = before_stop(said, scores.classes)  # (B,T): what was said is a label
    steps, chosen = said.shape[1], {"model": choice, "most_salient_glimpse": most_salient(saliency)}
    maps = {"attn_saliency": saliency, "attn_saliency_raw": in_units_of_energy(saliency, raw["energy"])}
    maps |= _evidence_under_cells(trace, said, batch)
    for score, each in maps.items():
        found = {name: at_glimpses(each, cells, active) for name, cells in chosen.items()}
        for name, there in (found | {"random_glimpse": at_random(each, steps, active)}).items():
            scores.glimpses.setdefault(name, Values()).add_values({score: there.flatten()})  # (B·T,)
    scores.columns.append(step_picture=batch.picture.repeat_interleave(steps))


def in_units_of_energy(saliency: Tensor, energy: Tensor) -> Tensor:
    """Saliency (B,T,h,w), which began between 0 and 1, back on the scale of the energy (B,h,w) that it came from."""
    low, high = energy.flatten(1).aminmax(dim=1)  # (B,)
    return low[:, None, None, None] + saliency * (high - low)[:, None, None, None]


def _evidence_under_cells(trace: AttentionTrace, said: Tensor, batch: MultisetBatch) -> dict[str, Tensor]:
    """Which cells (B,T,h,w) have an object under their centre, and which one with the label said; NaN without boxes."""
    grids = cast(Grids, grids_of(trace, (batch.images.shape[-2], batch.images.shape[-1])))
    inside = cells_in_boxes(batch.boxes, *grids.grids[-1])  # (B,M,h,w); all looks of a reader share one grid
    meant = said[:, :, None] == batch.labels[:, None]  # (B,T,M)
    on_label = (meant[..., None, None] & inside[:, None]).any(2)  # (B,T,h,w)
    known = ~(batch.boxes.isnan().any(-1) & batch.present).any(1) & batch.present.any(1)  # (B,)
    return {
        "glimpse_in_evidence": torch.where(known[:, None, None], inside.any(1).double(), torch.nan),  # (B,h,w)
        "glimpse_on_label": torch.where(known[:, None, None, None], on_label.double(), torch.nan),  # (B,T,h,w)
    }
