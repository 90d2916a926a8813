"""Scores of a model that reads multisets: its labels, and where it glimpsed and attended.

A glimpse is right if the centre of its cell lies in the box of an object (``glimpse_in_evidence``), and right for its
label if that object has the label that was named (``glimpse_on_label``). Baselines are random glimpses (their
expectation, nothing is drawn) and the most salient cell of the same step. ``attn_saliency`` is the saliency at the
glimpses, between 0 and 1; ``attn_saliency_raw`` is in the units of the activations, as in the paper. The total map is
scored against the pixels of all objects. ``training_prior`` is the commonest multiset of a table. Scores that need
boxes are left out without them.

Edits (:mod:`saccade.metrics.maps.edits`) are about one label of each scene that is there once and is read once: at the
step that read it, the covert mask is edited, and glimpses go where it leaves weight. With ``zero_heaviest`` they stay.
"all": the label is read at no step, with later steps computed again. ``label at its step`` asks what is read at the
edited step alone. The mask is a gate and is not scaled.

Axes: B scenes, T steps, k glimpses of a step, h and w cells.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from saccade import geometry
from saccade.data.pictures.reading import as_float
from saccade.data.scenes.layout import GlyphLayout
from saccade.families.multiset.data import MultisetBatch, MultisetFiles, MultisetSplit, at_size, boxes_at_size
from saccade.families.multiset.readers import commonest_multiset
from saccade.families.multiset.scenes import paint
from saccade.geometry import Size, scale_shift
from saccade.losses.multiset import label_matches, label_steps, names_one
from saccade.metrics import sets
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.edits import ALONE, REMOVED, EditScores, at_steps, cells_about, edited_weights
from saccade.metrics.maps.points import at_glimpses, at_random, most_salient
from saccade.metrics.result import only_defined
from saccade.models.base import ImageOnlyModel
from saccade.models.hsal import HsalModel
from saccade.models.multiset_reader import MultisetModel
from saccade.tasks.evaluate import Measurements, Scoring, answers_of, at_once, in_parts
from saccade.tasks.task import in_batches
from saccade.trace import AttentionTrace, MultisetOutput, joined

EDITED = 200  # scenes whose attention is edited
COVERT, GLIMPSE = "covert", "glimpse"
VALIDATION_BATCH = 500


class MultisetScoring(Scoring):
    """Measures a model that reads multisets.

    ``limit`` is how many pictures at most, of files a sample, else the first.
    """

    def __init__(self, model: ImageOnlyModel, data: MultisetSplit, limit: int | None = None) -> None:
        self.model, self.data, self.size = model, data, tuple(model.config.input_size)
        # The commonest training labels, scored as a constant answer.
        self.habit = commonest_multiset(data.table, data.answers) if isinstance(data, MultisetFiles) else None
        self.numbers = data.sampled(limit)

    def measure(self, numbers: Tensor, before: int) -> Measurements:
        """Answers and looks for the pictures ``numbers`` (B,), and edits of the first ones."""
        measured, batch, is_list = Measurements(), self.data.take(numbers), self.data.is_list
        stop = len(self.data.answers)
        output, trace = read_all(self.model, batch.images, self.size)
        add_answers(measured, answers_of(trace), batch, stop, is_list)
        if self.habit is not None:
            always = torch.tensor([*self.habit, stop], device=batch.labels.device).expand(len(batch), -1)  # (B,T)
            measured.rivals.add_values("training_prior", {"exact_match": is_right(always, batch, stop, is_list)})
        add_glimpses(measured, output, trace, batch, stop)
        if isinstance(self.model, HsalModel) and batch.layout is not None and before < EDITED:
            measured.edits.join(glimpse_edits(self.model, output, trace, batch, self.size))
        evidence = batch.masks().any(1)  # (B,H,W): the pixels of all objects
        shown = (evidence.shape[-2], evidence.shape[-1])
        total_map = trace.image_map("total", shown)  # (B,H,W)
        measured.maps.add(total_map, evidence, groups=batch.picture, grids=grids_of(trace, shown))
        return measured

    def scores(self, measured: Measurements) -> dict[str, Any]:
        """Answers, also by number of objects; glimpses; and the constant answer."""
        predicted, truth = measured.columns["predicted"], measured.columns["truth"]  # (N,K+1) each
        right = measured.answers["exact_match"]  # (N,)
        objects = truth[:, :-1].sum(1)  # (N,)
        by_count = {str(number): right[objects == number] for number in torch.unique(objects).tolist()}
        baselines = {}
        if self.habit is not None:
            always = torch.tensor([[*self.habit, len(self.data.answers)]])  # (1,T): the labels, then stop
            habit = sets.multiset_counts(always, len(self.data.answers) + 1)
            baselines["training_prior"] = answer_scores(habit.expand(len(truth), -1), truth)
        counts = {
            "macro_f1": len(predicted),
            "exact_match_by_count": {name: len(values) for name, values in by_count.items()},
        }
        if isinstance(self.data, MultisetFiles):
            counts |= {"skipped_rows": len(self.data.skipped), "beyond_most": self.data.beyond}
        return {
            "n": len(predicted),
            "metrics": {
                **answer_scores(predicted, truth),
                **measured.answers.means(),
                "exact_match_by_count": {name: float(values.mean()) for name, values in by_count.items()},
            },
            "maps": measured.maps,
            "measured": [(measured.answers, measured.maps.groups)],
            "baselines": baselines,
            "intervals": {"macro_f1": sets.macro_f1_interval(predicted[:, :-1], truth[:, :-1])},
            "counts": counts,
        }


def answer_scores(predicted: Tensor, truth: Tensor) -> dict[str, float]:
    """Scores of predicted and true counts (N,K+1), whose last column is for stop."""
    both = predicted[:, :-1], truth[:, :-1]  # (N,K)
    overall = {
        "overall_precision": sets.overall_precision(*both),
        "overall_recall": sets.overall_precision(*reversed(both)),
    }
    return {
        "macro_f1": sets.macro_f1(*both),
        **only_defined(overall),
        "macro_f1_by_presence": sets.macro_f1_by_presence(predicted, truth),
    }


def read_all(model: ImageOnlyModel, images: Tensor, size: Size) -> tuple[MultisetOutput, AttentionTrace]:
    """The outputs for pictures (B,3,H,W), and a trace whose maps have their size."""
    output = cast(MultisetOutput, in_parts(model, at_size(images, size)))
    height, width = images.shape[-2:]
    canvas = scale_shift((width / size[1], height / size[0]), (0.0, 0.0))  # network input → picture
    trace = model.wrap(output, size).trace
    shape = torch.tensor([height, width], device=images.device).expand(len(images), 2)
    return output, trace.placed(canvas.to(images.device).expand(len(images), 2, 3), shape)


def add_answers(measured: Measurements, predicted: Tensor, batch: MultisetBatch, stop: int, is_list: bool) -> None:
    """Add the counts of ``predicted`` (B,T) classes, and whether they are right."""
    stopped = (predicted == stop).any(1).long()  # (B,): who goes on to the last step has never stopped
    measured.columns.append(
        predicted=torch.cat([sets.multiset_counts(predicted, stop), stopped[:, None]], dim=1),
        truth=torch.cat([batch.counts(stop), torch.ones_like(stopped)[:, None]], dim=1),
    )
    measured.answers.add_values({"exact_match": is_right(predicted, batch, stop, is_list)})


def is_right(predicted: Tensor, batch: MultisetBatch, stop: int, is_list: bool) -> Tensor:
    """1.0 where the labels are ``predicted`` (B,T), each as often as it occurs: (B,); of a list also in order."""
    right = sets.exact_match(sets.multiset_counts(predicted, stop), batch.counts(stop))  # (B,)
    if not is_list:
        return right
    length = min(predicted.shape[1], batch.labels.shape[1])
    spoken = torch.where(sets.before_stop(predicted, stop), predicted, -1)  # (B,T)
    return right * (spoken[:, :length] == batch.labels[:, :length]).all(1).float()


def add_glimpses(
    measured: Measurements, output: MultisetOutput, trace: AttentionTrace, batch: MultisetBatch, stop: int
) -> None:
    """What lies under the model's glimpses, random ones, and the most salient cells."""
    if output.location is None:
        return
    saliency, predicted = output.acts["saliency"].weights, answers_of(trace)
    active = sets.before_stop(predicted, stop)  # (B,T): a label is said
    salient = most_salient(saliency)
    low, high = output.energy.flatten(1).aminmax(dim=1)  # (B,): of the energy (B,h,w), which saliency was scaled from
    raw = low[:, None, None, None] + saliency * (high - low)[:, None, None, None]  # (B,T,h,w)
    maps = {"attn_saliency": saliency, "attn_saliency_raw": raw}
    for score, values in (maps | _evidence_under_cells(trace, predicted, batch)).items():
        measured.acts.add_values({score: at_glimpses(values, output.location, active).flatten()})  # (B·T,)
        measured.rivals.add_values("most_salient_glimpse", {score: at_glimpses(values, salient, active).flatten()})
        measured.rivals.add_values("random_glimpse", {score: at_random(values, active).flatten()})
    measured.columns.append(act_picture=batch.picture.repeat_interleave(predicted.shape[1]))


def saliency_at_glimpses(output: MultisetOutput, labels: Tensor) -> Tensor:
    """Mean saliency in 0..1 at the glimpses of the steps with a label; a scalar."""
    steps = label_steps(labels, output.location.shape[1])  # (B,T)
    there = at_glimpses(output.acts["saliency"].weights.detach(), output.location).to(output.logits.dtype)  # (B,T)
    return (there * steps).sum() / steps.sum().clamp(min=1)


def objects_named(model: MultisetModel, data: MultisetSplit, size: Size) -> dict[str, float]:
    """Accuracy of the single-object classifier: for any object of a picture, and for each object with a box."""
    single, objects = [], []
    for batch in in_batches(data, VALIDATION_BATCH):
        images, boxes = at_size(batch.images, size), boxes_at_size(batch.boxes, batch.images, size)
        parts = zip(torch.split(images, at_once(images)), torch.split(boxes, at_once(images)))
        outputs = (model.forward_raw(some, single=True, boxes=part_boxes) for some, part_boxes in parts)
        output = cast(MultisetOutput, joined(outputs))
        single.append(names_one(output.single_logits, batch.labels)[batch.present.any(1)])  # (B',)
        right, has_box = label_matches(output.object_logits, batch.labels, batch.boxes)  # (B,M) each
        objects.append(right[has_box])  # (N,)
    answers = {"single_accuracy": torch.cat(single), "object_accuracy": torch.cat(objects)}
    return {name: float(right.float().mean()) for name, right in answers.items() if len(right)}


def _evidence_under_cells(trace: AttentionTrace, predicted: Tensor, batch: MultisetBatch) -> dict[str, Tensor]:
    """Cells (B,T,h,w) with an object under their centre, and with one of the predicted label; NaN without boxes."""
    grids = cast(Grids, grids_of(trace, (batch.images.shape[-2], batch.images.shape[-1])))
    frame, cells = grids.grids[-1]  # all looks of a reader share one grid
    inside = geometry.cells_in_boxes(batch.boxes, frame.double(), cells)  # (B,M,h,w)
    meant = predicted[:, :, None] == batch.labels[:, None]  # (B,T,M)
    on_label = (meant[..., None, None] & inside[:, None]).any(2)  # (B,T,h,w)
    is_known = ~(batch.boxes.isnan().any(-1) & batch.present).any(1) & batch.present.any(1)  # (B,)
    return {
        "glimpse_in_evidence": torch.where(is_known[:, None, None], inside.any(1).double(), torch.nan),  # (B,h,w)
        "glimpse_on_label": torch.where(is_known[:, None, None, None], on_label.double(), torch.nan),  # (B,T,h,w)
    }


@torch.no_grad()
def glimpse_edits(
    model: HsalModel, output: MultisetOutput, trace: AttentionTrace, batch: MultisetBatch, size: Size
) -> EditScores:
    """Edits of one label of each generated scene; ``output`` and ``trace`` are of the unedited pass."""
    scores, layout, predicted = EditScores(), cast(GlyphLayout, batch.layout), output.said  # predicted: (B,T)
    rows, step, obj = _chosen_labels(predicted, batch, model.stop)  # (n,) each
    if not len(rows):
        return scores
    number, label, many = torch.arange(len(rows)), predicted[rows, step], model.config.glimpses
    encoding = model.encode(at_size(batch.images[rows], size))
    covert, glimpse = (output.acts[name].weights[rows] for name in (COVERT, GLIMPSE))  # (n,T,h,w), (n,T·k,h,w)
    grid, glimpsed = (covert.shape[-2], covert.shape[-1]), output.location[rows]  # glimpsed: (n,T,k)
    look = trace.look(COVERT)
    frame = trace.frame_on(look, (batch.images.shape[-2], batch.images.shape[-1]))
    cells = cells_about(batch.masks()[rows, obj], covert[number, step], frame)
    on, off, there = (_cells(cells.chance, mask, many) for mask in (cells.target, ~cells.target, cells.random))  # (n,k)
    aimed = {
        "zero_target": off,
        "zero_random": on,
        "zero_heaviest": glimpsed[number, step],
        "keep_target": on,
        "keep_random": there,
    }

    def when_enough(changed: Tensor) -> Tensor:
        return torch.where(cells.are_enough, changed.double(), torch.nan).cpu()  # (n,)

    def lost(words: Tensor) -> Tensor:
        return when_enough(~((words == label[:, None]) & sets.before_stop(words, model.stop)).any(1))  # (n,)

    changes: dict[str, dict[str, Tensor]] = {"all": {}, "label at its step": {}}
    edited = edited_weights(at_steps(look, rows, step), cells)
    for name, places in aimed.items():
        masks, one_hot = covert.clone(), _one_hot(glimpsed, grid).to(glimpse)  # (n,T,h,w), (n,T,k,h,w)
        masks[number, step], one_hot[number, step] = edited[name], _one_hot(places, grid).to(glimpse)
        words = predicted.new_full((len(rows), predicted.shape[1]), model.stop)  # what is read: (n,T)
        for at in sorted(set(step.tolist())):  # the earlier steps given as they were
            some = (step == at).nonzero().squeeze(1)
            attention = {COVERT: masks[some, : at + 1], GLIMPSE: one_hot[some, : at + 1].flatten(1, 2)}
            words[some] = model.read(encoding[some], attention=attention).said
        changes["all"][name] = lost(words)
        changes["label at its step"][name] = when_enough(words[number, step] != label)
    layout, slot = layout[rows], cast(Tensor, batch.slot)[rows, obj]
    for name, scenes in ((REMOVED, layout.remove(slot)), (ALONE, layout.alone(slot))):
        images = at_size(as_float(paint(scenes)), size)
        changes["all"][name] = lost(model.read(model.encode(images)).said)
    scores.add_changes(batch.picture[rows].cpu(), changes)
    return scores


def _chosen_labels(predicted: Tensor, batch: MultisetBatch, stop: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, steps and objects (n,) of one label per scene that occurs once and was read once."""
    active = sets.before_stop(predicted, stop)  # (B,T)
    same = (predicted[:, :, None] == batch.labels[:, None]) & active[:, :, None] & batch.present[:, None]  # (B,T,M)
    once = same & (same.sum(1, keepdim=True) == 1) & (same.sum(2, keepdim=True) == 1)  # (B,T,M)
    chance = torch.rand(once.shape, generator=torch.Generator().manual_seed(0)).to(once.device)
    best, place = torch.where(once, chance, -1.0).flatten(1).max(1)  # (B,), (B,)
    rows = (best >= 0).nonzero().squeeze(1)
    return rows, place[rows] // once.shape[2], place[rows] % once.shape[2]


def _cells(rank: Tensor, allowed: Tensor, many: int) -> Tensor:
    """The ``many`` cells (n,k), numbered row by row, of highest ``rank`` (n,h,w) among those ``allowed`` (n,h,w)."""
    ranked = torch.where(allowed, rank, -1.0).flatten(1)  # (n,hw)
    order = ranked.argsort(1, descending=True)[:, :many]  # (n,k)
    few = allowed.flatten(1).sum(1, keepdim=True).clamp(min=1)  # (n,1): a small digit has one cell for all glimpses
    turn = torch.arange(many, device=order.device) % few  # (n,k)
    return order.gather(1, turn)


def _one_hot(cells: Tensor, grid: Size) -> Tensor:
    return torch.nn.functional.one_hot(cells, grid[0] * grid[1]).view(*cells.shape, *grid)
