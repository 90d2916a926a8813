"""Scores of a model that reads multisets: what it said, and where it glimpsed and attended while it did.

A glimpse is right if the centre of its cell lies in the box of an object (``glimpse_in_evidence``), and right for what
was then said if that object has the label said (``glimpse_on_label``). Beside it stand glimpses at random (their
expectation, nothing is drawn) and at the most salient cell of the same step. ``attn_saliency`` is the saliency at the
glimpses, between 0 and 1; ``attn_saliency_raw`` is the same in the units of the activations, as the paper has it, and
the one score that is no fraction. The total map is scored against the pixels of all objects. Beside the answers stands
the one that most training pictures would be right with (``training_prior``), where there is a table of them.

A model without glimpses (the counting control) has answers and a map only. What no picture has boxes for is left out.

Edits the attention to one label: another mask, other glimpsed cells. Is the label still read?

Of each scene one label is taken that is there once and is read once. At the step that read it, the covert mask and the
glimpses are edited. Cells are those on the label's digit.

==================  ====================================================================================
``zero_target``     the mask is 0 on the digit, and the glimpses go to cells that are not on it
``zero_random``     the mask is 0 on as many cells elsewhere, and the glimpses go to other cells on the digit
``zero_heaviest``   the mask is 0 on as many cells elsewhere, the heaviest ones; glimpses as they were
``keep_target``     the mask is 0 but on the digit, and the glimpses go to cells on it
``keep_random``     the mask is 0 but on as many cells elsewhere, and the glimpses go there
``target_removed``  no edit: the digit is taken out of the picture
``target_alone``    no edit: everything but the digit is taken out of the picture
==================  ====================================================================================

"all": the label is read at no step, with later steps computed again. So the model may come back to the digit. ``all,
later frozen`` keeps the later masks and glimpses. ``covert`` and ``glimpse`` edit one of the two. ``label at its step``
asks what is read at the edited step alone. The mask is a gate and is not scaled.

Axes: B scenes, T steps, k glimpses of a step, h and w cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor

from saccade.data.pictures.reading import as_float
from saccade.families.multiset.data import MultisetBatch, MultisetData, MultisetScenes, at_size, boxes_at_size
from saccade.families.multiset.scenes import MultisetSpec, paint
from saccade.geometry import Size, scale_shift
from saccade.losses.multiset import label_steps, names_each, names_one
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
from saccade.metrics.intervals import Values
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.edits import ALONE, REMOVED, EditScores, cells_on, chosen_cells
from saccade.metrics.result import only_defined
from saccade.metrics.sets import before_stop, overall_precision, overall_recall
from saccade.models.base import ImageOnlyModel
from saccade.models.hsal import HsalModel
from saccade.models.multiset_reader import MultisetModel
from saccade.outputs import MultisetOutput, joined
from saccade.tasks.evaluate import Kept, Scoring
from saccade.tasks.forward_passes import answers_of, at_once, in_parts
from saccade.tasks.task import in_batches
from saccade.trace import AttentionTrace

EDITED = 200
"""Scenes whose attention is edited."""
COVERT, GLIMPSE = "covert", "glimpse"
VALIDATION_BATCH = 500


@dataclass
class MultisetKept(Kept):
    """With one value a step of each kind of glimpses, NaN where it does not count.

    ``columns`` are ``said`` and ``truth``, counts (B,K+1) with the last column for stop; ``step_picture`` (B·T,); and
    ``habit_right``, whether always saying the same would be right.
    """

    glimpses: Values = field(default_factory=Values)
    most_salient_glimpse: Values = field(default_factory=Values)
    random_glimpse: Values = field(default_factory=Values)

    def metrics(self) -> dict[str, float]:
        """Scores of the answers: ``macro_f1`` (also by presence), ``exact_match``, overall precision and recall."""
        return answer_scores(self.columns["said"], self.columns["truth"], self.answers.means())

    def attention(self) -> dict[str, float]:
        """Scores of the model's glimpses, if any counted."""
        return only_defined(self.glimpses.means())


class MultisetScoring(Scoring):
    """Measures a model that reads multisets.

    Args:
        model: in eval mode, on the device of ``data``.
        data: the split, in the words of the model.
        size: (height, width) of the network input.
        habit: the labels that most training pictures have, to be scored as an answer to every picture.
        limit: at most this many pictures: of files a sample, else the first.
    """

    def __init__(
        self,
        model: ImageOnlyModel,
        data: MultisetData,
        size: Size,
        *,
        habit: Sequence[int] | None = None,
        limit: int | None = None,
    ) -> None:
        self.model, self.data, self.size, self.habit = model, data, size, habit
        self.numbers = data.sampled(limit)

    def kept(self) -> MultisetKept:
        """What nothing was measured of yet."""
        return MultisetKept()

    def measure(self, numbers: Tensor, before: int) -> MultisetKept:
        """What the model says of the pictures ``numbers`` (B,), where it looks, and of the first ones its edits."""
        kept, batch, is_list = self.kept(), self.data.take(numbers), self.data.is_list
        stop = len(self.data.answers)
        output, trace = read_all(self.model, batch.images, self.size)
        add_answers(kept, answers_of(trace), batch, stop, is_list)
        if self.habit is not None:
            always = torch.tensor([*self.habit, stop], device=batch.labels.device).expand(len(batch), -1)  # (B,T)
            kept.columns.append(habit_right=is_right(always, batch, stop, is_list))
        add_glimpses(kept, output, trace, batch, stop)
        if isinstance(self.model, HsalModel) and batch.layout is not None and before < EDITED:
            kept.edits.join(glimpse_edits(self.model, output, trace, batch, self.size))
        evidence = batch.masks().any(1)  # (B,H,W): the pixels of all objects
        shown = (evidence.shape[-2], evidence.shape[-1])
        total_map = trace.image_map("total", shown)  # (B,H,W)
        kept.maps.add(total_map, evidence, groups=batch.picture, grids=grids_of(trace, shown))
        return kept

    def scores(self, kept: Kept) -> dict[str, Any]:
        """The answers, also by the number of objects; the glimpses; and what always saying the same would score."""
        found = cast(MultisetKept, kept)
        said, truth = found.columns["said"], found.columns["truth"]  # (N,K+1)
        right, objects = found.answers["exact_match"], truth[:, :-1].sum(1)  # (N,)
        by_count = {str(number): right[objects == number] for number in torch.unique(objects).tolist()}
        baselines = {}
        if self.habit is not None:
            always = torch.tensor([[*self.habit, len(self.data.answers)]])  # (1,T): the labels, then stop
            habit = multiset_counts(always, len(self.data.answers) + 1)
            right_so = {"exact_match": float(found.columns["habit_right"].double().mean())}
            baselines["training_prior"] = answer_scores(habit.expand(len(truth), -1), truth, right_so)
        for name in ("most_salient_glimpse", "random_glimpse"):
            if means := only_defined(getattr(found, name).means()):
                baselines[name] = means
        counts = {"macro_f1": len(said), "exact_match_by_count": {name: len(each) for name, each in by_count.items()}}
        source = self.data.source
        if not isinstance(source, MultisetScenes):
            counts |= {"skipped_rows": len(source.skipped), "beyond_most": source.beyond}
        return {
            "n": len(said),
            "metrics": {
                **found.metrics(),
                "exact_match_by_count": {name: float(each.mean()) for name, each in by_count.items()},
            },
            "maps": found.maps,
            "measured": [
                (found.answers, found.maps.groups),
                *([(found.glimpses, found.columns["step_picture"])] if "step_picture" in found.columns else []),
            ],
            "attention": found.attention(),
            "baselines": baselines,
            "intervals": {"macro_f1": macro_f1_interval(said[:, :-1], truth[:, :-1])},
            "counts": counts,
        }


def answer_scores(said: Tensor, truth: Tensor, right: dict[str, float]) -> dict[str, float]:
    """Scores of what was said and true, counts (N,K+1) with the last column for stop; ``right``: the exact match."""
    both = said[:, :-1], truth[:, :-1]  # (N,K)
    overall = {"overall_precision": overall_precision(*both), "overall_recall": overall_recall(*both)}
    found = {"macro_f1": macro_f1(*both), **right, **only_defined(overall)}
    return {**found, "macro_f1_by_presence": macro_f1_by_presence(said, truth)}


def read_all(model: ImageOnlyModel, images: Tensor, size: Size) -> tuple[MultisetOutput, AttentionTrace]:
    """What ``model`` says of pictures (B,3,H,W), and a trace whose maps lie on them at their own size."""
    output = cast(MultisetOutput, in_parts(model, at_size(images, size)))
    height, width = images.shape[-2:]
    canvas = scale_shift((width / size[1], height / size[0]), (0.0, 0.0))  # network input → picture
    trace = model.wrap(output, size).trace
    shape = torch.tensor([height, width], device=images.device).expand(len(images), 2)
    return output, trace.placed(canvas.to(images.device).expand(len(images), 2, 3), shape)


def read_objects(model: MultisetModel, images: Tensor, boxes: Tensor, size: Size) -> MultisetOutput:
    """What the classifier of single objects says of pictures (B,3,H,W), and of each box (B,M,4) on them alone."""
    network_boxes, network_images = boxes_at_size(boxes, images, size), at_size(images, size)
    together = at_once(network_images)
    parts = [
        model.forward_raw(some, single=True, boxes=theirs)
        for some, theirs in zip(torch.split(network_images, together), torch.split(network_boxes, together))
    ]
    return cast(MultisetOutput, joined(parts))


def add_answers(kept: MultisetKept, said: Tensor, batch: MultisetBatch, stop: int, is_list: bool) -> None:
    """What was said (B,T), as counts, and whether it is right."""
    stopped = (said == stop).any(1).long()  # (B,): who goes on to the last step has never stopped
    kept.columns.append(
        said=torch.cat([multiset_counts(said, stop), stopped[:, None]], dim=1),
        truth=torch.cat([batch.counts(stop), torch.ones_like(stopped)[:, None]], dim=1),
    )
    kept.answers.add_values({"exact_match": is_right(said, batch, stop, is_list)})


def is_right(said: Tensor, batch: MultisetBatch, stop: int, is_list: bool) -> Tensor:
    """1.0 where the labels were said (B,T), each as often as it is there: (B,); of a list also in their order."""
    right = exact_match(multiset_counts(said, stop), batch.counts(stop))  # (B,)
    if not is_list:
        return right
    length = min(said.shape[1], batch.labels.shape[1])
    spoken = torch.where(before_stop(said, stop), said, -1)  # (B,T)
    return right * (spoken[:, :length] == batch.labels[:, :length]).all(1).float()


def add_glimpses(
    kept: MultisetKept, output: MultisetOutput, trace: AttentionTrace, batch: MultisetBatch, stop: int
) -> None:
    """What lay under the model's glimpses, under random ones, and under those of who follows saliency alone."""
    if output.location is None:
        return
    saliency, choice, said = output.acts["saliency"].weights, output.location, answers_of(trace)
    active, steps, salient = before_stop(said, stop), said.shape[1], most_salient(saliency)  # active: a label is said
    maps = {"attn_saliency": saliency, "attn_saliency_raw": in_units_of_energy(saliency, output.energy)}
    for score, each in (maps | _evidence_under_cells(trace, said, batch)).items():
        kept.glimpses.add_values({score: at_glimpses(each, choice, active).flatten()})  # (B·T,)
        kept.most_salient_glimpse.add_values({score: at_glimpses(each, salient, active).flatten()})
        kept.random_glimpse.add_values({score: at_random(each, steps, active).flatten()})
    kept.columns.append(step_picture=batch.picture.repeat_interleave(steps))


def saliency_at_glimpses(output: MultisetOutput, labels: Tensor) -> Tensor:
    """Mean saliency, between 0 and 1, at the glimpses of the steps that have a label to say; a scalar."""
    steps = label_steps(labels, output.location.shape[1])  # (B,T)
    there = at_glimpses(output.acts["saliency"].weights.detach(), output.location).to(output.logits.dtype)  # (B,T)
    return (there * steps).sum() / steps.sum().clamp(min=1)


def objects_named(model: MultisetModel, data: MultisetData, size: Size) -> dict[str, float]:
    """How often the classifier of single objects names one that is there, and each object that has a box."""
    single, objects = [], []
    for batch in in_batches(data, VALIDATION_BATCH):
        output = read_objects(model, batch.images, batch.boxes, size)
        single.append(names_one(output.single_logits, batch.labels)[batch.present.any(1)])  # (B',)
        right, known = names_each(output.object_logits, batch.labels, batch.boxes)  # (B,M) each
        objects.append(right[known])  # (N,)
    told = {"single_accuracy": torch.cat(single), "object_accuracy": torch.cat(objects)}
    return {name: float(right.float().mean()) for name, right in told.items() if len(right)}


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


@torch.no_grad()
def glimpse_edits(
    model: HsalModel, output: MultisetOutput, trace: AttentionTrace, batch: MultisetBatch, size: Size
) -> EditScores:
    """What becomes of one label of each scene.

    Args:
        model: in eval mode.
        output: of the unedited pass over the batch.
        trace: of the same, placed on the pictures.
        batch: generated scenes.
        size: (height, width) of the network input.
    """
    scores = EditScores()
    said = output.said  # (B,T)
    rows, step, obj = _chosen_labels(said, batch, model.stop)  # (n,) each
    spec = None if batch.layout is None else batch.layout.spec
    if batch.layout is None or not isinstance(spec, MultisetSpec) or not len(rows):
        return scores
    label = said[rows, step]  # (n,)
    encoding = model.encode(at_size(batch.images[rows], size))
    shown = (batch.images.shape[-2], batch.images.shape[-1])
    look = trace.look(COVERT)
    frame = trace.frame_on(look, shown)
    frame = (frame[0] if frame.dim() == 3 else frame).to(said.device)
    covert, glimpses = (
        output.acts["covert"].weights[rows],
        output.acts["glimpse"].weights[rows],
    )  # (n,T,h,w), (n,T·k,h,w)
    grid, many = (covert.shape[-2], covert.shape[-1]), model.config.glimpses
    own_cells = output.location[rows]  # (n,T,k)
    target = cells_on(batch.masks()[rows, obj], frame, grid)  # (n,h,w)
    count = target.sum(dim=(-2, -1))  # (n,)
    mask = covert[torch.arange(len(rows)), step]  # M_t: (n,h,w)
    chance = torch.rand(mask.shape, generator=torch.Generator().manual_seed(0)).to(mask.device)  # (n,h,w)
    random, heaviest = chosen_cells(chance, ~target, count), chosen_cells(mask, ~target, count)
    possible = 2 * count <= grid[0] * grid[1]  # (n,)
    on, off, there = (_cells(chance, each, many) for each in (target, ~target, random))  # (n,k) cells
    stays = own_cells[torch.arange(len(rows)), step]  # (n,k)
    edits = {
        "zero_target": (mask.masked_fill(target, 0), off),
        "zero_random": (mask.masked_fill(random, 0), on),
        "zero_heaviest": (mask.masked_fill(heaviest, 0), stays),
        "keep_target": (mask.masked_fill(~target, 0), on),
        "keep_random": (mask.masked_fill(~random, 0), there),
    }

    def read(name: str, looks: tuple[str, ...], *, frozen: bool = False) -> Tensor:
        """What is read (n,T) with an edit of ``looks``; the earlier steps are given as they were."""
        one, cells = edits[name]
        masks, aimed = covert.clone(), _one_hot(own_cells, grid).to(glimpses)  # (n,T,h,w), (n,T,k,h,w)
        number = torch.arange(len(rows))
        if COVERT in looks:
            masks[number, step] = one
        if GLIMPSE in looks:
            aimed[number, step] = _one_hot(cells, grid).to(glimpses)
        found = said.new_full((len(rows), said.shape[1]), model.stop)
        for at in sorted(set(step.tolist())):
            some = (step == at).nonzero().squeeze(1)
            last = said.shape[1] if frozen else at + 1
            given = {COVERT: masks[some, :last], GLIMPSE: aimed[some, :last].flatten(1, 2)}
            found[some] = model.read(encoding[some], attention=given)["said"]
        return found

    def lost(words: Tensor) -> Tensor:
        is_read = ((words == label[:, None]) & before_stop(words, model.stop)).any(1)  # (n,)
        return torch.where(possible, (~is_read).double(), torch.nan)

    def other(words: Tensor) -> Tensor:
        at = words.gather(1, step[:, None]).squeeze(1)  # (n,)
        return torch.where(possible, (at != label).double(), torch.nan)

    both = (COVERT, GLIMPSE)
    words = {name: read(name, both) for name in edits}
    found = {"all": {name: lost(each) for name, each in words.items()}}
    found["label at its step"] = {name: other(each) for name, each in words.items()}
    found["all, later frozen"] = {name: lost(read(name, both, frozen=True)) for name in edits}
    for which in both:
        found[f"{which}, later recomputed"] = {n: lost(read(n, (which,))) for n in ("zero_target", "zero_random")}
    present = batch.layout.present[rows]
    alone = torch.zeros_like(present).scatter(1, _slots(batch, rows, obj)[:, None], True)
    for name, kept in ((REMOVED, present & ~alone), (ALONE, alone)):
        images = as_float(paint(replace(batch.layout[rows], present=kept), spec))
        found["all"][name] = lost(model.read(model.encode(at_size(images, size)))["said"])
    scores.add_changes(batch.picture[rows].cpu(), {way: _on_cpu(each) for way, each in found.items()})
    return scores


def _chosen_labels(said: Tensor, batch: MultisetBatch, stop: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, steps and objects (n,) of one label of each scene that is there once and was read once."""
    active = before_stop(said, stop)  # (B,T)
    same = (said[:, :, None] == batch.labels[:, None]) & active[:, :, None] & batch.present[:, None]  # (B,T,M)
    once = same & (same.sum(1, keepdim=True) == 1) & (same.sum(2, keepdim=True) == 1)  # (B,T,M)
    chance = torch.rand(once.shape, generator=torch.Generator().manual_seed(0)).to(once.device)
    best, place = torch.where(once, chance, -1.0).flatten(1).max(1)  # (B,), (B,)
    rows = (best >= 0).nonzero().squeeze(1)
    return rows, place[rows] // once.shape[2], place[rows] % once.shape[2]


def _slots(batch: MultisetBatch, rows: Tensor, obj: Tensor) -> Tensor:
    """The slot (n,) of each object in its scene."""
    return obj if batch.slot is None else batch.slot[rows, obj]


def _cells(rank: Tensor, allowed: Tensor, many: int) -> Tensor:
    """``many`` cells (n,k), numbered row by row, of the highest ``rank`` (n,h,w) among those ``allowed`` (n,h,w)."""
    held = torch.where(allowed, rank, -1.0).flatten(1)  # (n,hw)
    order = held.argsort(1, descending=True)[:, :many]  # (n,k)
    few = allowed.flatten(1).sum(1, keepdim=True).clamp(min=1)  # (n,1): a small digit has one cell for all glimpses
    turn = torch.arange(many, device=order.device) % few  # (n,k)
    return order.gather(1, turn)


def _one_hot(cells: Tensor, grid: Size) -> Tensor:
    """Maps (…,h,w) with all weight on the cells (…)."""
    return torch.nn.functional.one_hot(cells, grid[0] * grid[1]).view(*cells.shape, *grid)


def _on_cpu(values: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: each.cpu() for name, each in values.items()}
