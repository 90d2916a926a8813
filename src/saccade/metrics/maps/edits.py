"""Edited attention: what the answer does with other weights, and with crops in other places.

**Weights.** The rest of a model runs on edited weights (:meth:`saccade.looks.Look.edit`), and answers again:

====================  ===========================================================================  ====
``edit_necessity``    answers that change with no weight on the target, divided by those that      (X1)
                      change when the target is removed from the picture
``edit_sufficiency``  answers that stay with weight on the target alone, divided by those that     (X2)
                      stay when everything else is removed from the picture
====================  ===========================================================================  ====

:mod:`saccade.families.question.twins` lists all edits by name. The division is by what can be had: cells see more than
the pixels they stand for, so the features beside the target know of it. Baselines of both edit as many other cells:
drawn at random, and for (X1) also the heaviest.
Cells are "on the target" where at least a tenth of what they stand for lies on it, and the one that sees it best always
is. A picture with fewer cells elsewhere than on the target has neither score.

**Crops** are boxes xyxy in pixels. How they lie on the evidence, a mask or a box:

=====================  =========================================================================================
``covers_evidence``    share of the evidence's pixels that lie in the crop; 1 is all of it
``overlap``            area of crop and evidence box together over the area of either (intersection over union)
``inside_evidence``    share of the crop that lies in the evidence box
=====================  =========================================================================================

A larger crop covers more and is less inside: read the three together, beside those of the centred square and of squares
anywhere (their expectation). Other places for a crop are drawn from an even lattice.

Axes: B questions or crops, K places, H and W pixels, h and w cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from saccade import geometry
from saccade.geometry import Size
from saccade.looks import Look
from saccade.metrics.intervals import ByName, Grouped, Interval, jackknife_interval, t_quantile
from saccade.metrics.maps.baselines import seen_by_cells
from saccade.metrics.result import Part

ON = 0.1  # Least share of a cell on an object for the cell to be on it
NECESSITY = {"model": "zero_target", "random_cells": "zero_random", "heaviest_cells": "zero_heaviest"}
SUFFICIENCY = {"model": "keep_target", "random_cells": "keep_random"}
"""The edit of the model and of each rival, in ``edit_necessity`` and ``edit_sufficiency``."""
REMOVED, ALONE = "target_removed", "target_alone"
"""Changed pictures in place of changed weights: what an edit can reach at most."""


def cells_on(mask: Tensor, frame: Tensor, grid: Size) -> Tensor:
    """(B,h,w) bool: the cells on a mask (B,H,W) bool; none if it is empty. ``frame``: cells → pixels."""
    frame = frame[0] if frame.dim() == 3 and bool((frame == frame[:1]).all()) else frame
    everywhere = mask.new_ones(1 if frame.dim() == 2 else len(frame), *mask.shape[1:])
    overlap = seen_by_cells(mask, frame, grid)  # (B,h,w)
    share = overlap / seen_by_cells(everywhere, frame, grid).clamp(min=1e-12)  # (B,h,w)
    best = share.amax(dim=(-2, -1), keepdim=True)  # (B,1,1)
    return (share > 0) & ((share >= ON) | (share >= best))


def chosen_cells(rank: Tensor, allowed: Tensor, count: Tensor) -> Tensor:
    """(B,…) bool: the ``count`` (B,) cells of highest ``rank`` (B,…) among those ``allowed`` (B,…) bool."""
    order = torch.where(allowed, rank, -torch.inf).flatten(1).argsort(1, descending=True)  # (B,N)
    place = order.argsort(1)  # (B,N): the how-manieth each cell is
    return (place < count[:, None]).view_as(allowed) & allowed


class Cells(NamedTuple):
    """The cells (B,…) of a look that lie on a target, and as many elsewhere."""

    target: Tensor
    random: Tensor
    heaviest: Tensor
    allowed: Tensor  # All cells that count; others, such as empty slots of a memory, keep their weight
    chance: Tensor  # The draw (B,…) whose highest cells are the random ones
    are_enough: Tensor  # (B,): whether there are as many cells elsewhere


def cells_among(target: Tensor, allowed: Tensor, weights: Tensor, chance: Tensor) -> Cells:
    """The cells ``target`` (B,…) bool, and as many others of those ``allowed`` by ``chance`` and by ``weights``."""
    count, elsewhere = target.flatten(1).sum(1), allowed & ~target  # (B,), (B,…)
    random, heaviest = chosen_cells(chance, elsewhere, count), chosen_cells(weights, elsewhere, count)
    return Cells(target, random, heaviest, allowed, chance, 2 * count <= allowed.flatten(1).sum(1))


def cells_about(masks: Tensor, weights: Tensor, frame: Tensor) -> Cells:
    """The cells of weights (B,h,w) on masks (B,H,W), and as many elsewhere; ``frame``: cells → pixels of the masks."""
    grid = (weights.shape[-2], weights.shape[-1])
    target = cells_on(masks, frame.to(weights.device), grid)  # (B,h,w)
    chance = torch.rand(weights.shape, generator=torch.Generator().manual_seed(0)).to(weights.device)  # (B,h,w)
    return cells_among(target, torch.ones_like(target), weights, chance)


def at_steps(look: Look, rows: Tensor, step: Tensor) -> Look:
    """The look of the examples ``rows`` (n,) at one ``step`` (n,) of each, without the step axis."""
    weights = torch.as_tensor(look.weights)[rows, step]
    return Look(look.name, look.kind, look.role, weights, norm=look.norm, frame=look.frame)


def edited_weights(look: Look, cells: Cells) -> dict[str, Tensor]:
    """The weights (B,…) of a look with each edit about a target, by name."""
    weights = torch.as_tensor(look.weights)
    without = {
        "zero_target": cells.target,
        "zero_random": cells.random,
        "zero_heaviest": cells.heaviest,
        "keep_target": cells.allowed & ~cells.target,
        "keep_random": cells.allowed & ~cells.random,
    }
    edited = {name: torch.as_tensor(look.edit(some).weights) for name, some in without.items()}
    flat, allowed, chance = (tensor.flatten(1) for tensor in (weights, cells.allowed, cells.chance))  # (B,N) each
    mean = (flat * allowed).sum(1, keepdim=True) / allowed.sum(1, keepdim=True).clamp(min=1)  # (B,1)
    order = torch.where(allowed, chance, 2.0).argsort(dim=1, stable=True)  # (B,N): those allowed in another order
    place = torch.where(allowed, 0.0, 2.0).argsort(dim=1, stable=True)  # (B,N): the same in their own
    moved = {"even": torch.where(allowed, mean, flat), "permuted": flat.scatter(1, place, flat.gather(1, order))}
    return edited | {name: values.view_as(weights) for name, values in moved.items()}


def one_by_one(weights: Mapping[str, Tensor]) -> Iterator[tuple[str, str, dict[str, Tensor]]]:
    """Edits of one look alone, of several with these ``weights``: a title, its name, and the weights kept fixed."""
    names = list(weights)
    for number, name in enumerate(names if len(names) > 1 else ()):
        earlier = {other: weights[other] for other in names[:number]}
        if number + 1 == len(names):
            yield name, name, earlier
        else:
            yield f"{name}, later recomputed", name, earlier
            yield f"{name}, later frozen", name, {other: weights[other] for other in names if other != name}


def ratio_of_means(top: Tensor, bottom: Tensor, groups: Tensor) -> Interval:
    """mean(top) / mean(bottom) of values (N,) in 0 … 1, with its interval by leaving out one picture at a time.

    So that the interval has a width, one further picture that is wholly wrong is counted, as in every interval; it
    moves the ratio by 1 / (G · mean(bottom)). Pairs with a NaN do not count; the result is NaN if the mean of
    ``bottom`` is 0. ``groups`` (N,) are ids of pictures.
    """
    defined = ~(top.isnan() | bottom.isnan())
    one, two, ids = top[defined].double(), bottom[defined].double(), groups[defined]
    undefined = int((~defined).sum())
    if not len(one) or float(two.sum()) == 0:
        return Interval(float("nan"), float("nan"), float("nan"), 0, 0, undefined + len(one))
    pictures, image = torch.unique(ids, return_inverse=True)  # (G,), (n,)
    zeros = torch.zeros(len(pictures), dtype=torch.float64)  # (G,)
    tops, bottoms = (zeros.index_add(0, image, values) for values in (one, two))  # (G,)
    without = (one.sum() - tops) / (two.sum() - bottoms)  # (G,); not a number where no bottom is left
    score = one.sum() / two.sum()
    finite = without.where(without.isfinite(), torch.nan)  # (G,)
    low, high = jackknife_interval(score, finite, ends=None)
    further = t_quantile(len(pictures) - 1) / (len(pictures) * two.mean()) if len(pictures) > 1 else torch.nan
    half = torch.hypot((high - low) / 2, torch.as_tensor(further, dtype=torch.float64))
    ends = float((score - half).clamp(min=0)), float(score + half)
    return Interval(float(score), *ends, len(one), len(pictures), undefined)


class EditScores(Grouped):
    """The effects of edits on answers, added batch by batch."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = ByName()  # By edited looks and edit: whether the answer changed
        self._right = ByName()  # The same: whether it was then right

    def add(
        self,
        before: Tensor,
        truth: Tensor,
        groups: Tensor,
        answers: Mapping[str, Mapping[str, Tensor]],
        *,
        truths: Mapping[str, Tensor] | None = None,
    ) -> None:
        """Add a batch: ids (B,) of unedited and true answers, ids (B,) of each question's picture, and edited answers.

        ``answers`` are by edited looks ("all", or a name), then by edit: ids (B,), −1 where it is not possible.
        ``truths`` (B,) are what is right after an edit, by its name, if that is another answer.
        """
        self._columns.append(group=groups)
        for looks, edits in answers.items():
            for name, after in edits.items():
                wanted = (truths or {}).get(name, truth)  # (B,)
                for scores, is_so in ((self._changed, after != before), (self._right, after == wanted)):
                    scores.add_values(looks, {name: torch.where(after >= 0, is_so.double(), torch.nan)})

    def add_changes(self, groups: Tensor, changed: Mapping[str, Mapping[str, Tensor]]) -> None:
        """The same if an answer is more than one id: by edited looks and edit, whether it ``changed`` (B,).

        Values are 1, 0, or NaN where the edit is not possible. Right answers are not counted.
        """
        self._columns.append(group=groups)
        for looks, edits in changed.items():
            self._changed.add_values(looks, edits)

    def join(self, later: EditScores) -> None:
        """Append later questions."""
        self._columns.join(later._columns)
        self._changed.join(later._changed)
        self._right.join(later._right)

    def scores(self) -> dict[str, dict[str, Interval]]:
        """``edit_necessity`` and ``edit_sufficiency`` of the model, and of other cells in its place."""
        if not len(self) or "all" not in self._changed:
            return {}
        changed, groups = self._changed["all"], self.groups
        scores: dict[str, dict[str, Interval]] = {"edit_necessity": {}, "edit_sufficiency": {}}
        for who, edit in NECESSITY.items():
            if edit in changed and REMOVED in changed:
                scores["edit_necessity"][who] = ratio_of_means(changed[edit], changed[REMOVED], groups)
        for who, edit in SUFFICIENCY.items():
            if edit in changed and ALONE in changed:
                scores["edit_sufficiency"][who] = ratio_of_means(1 - changed[edit], 1 - changed[ALONE], groups)
        return {score: by for score, by in scores.items() if "model" in by}

    def add_to(self, group: Part) -> None:
        """Add ``edit_necessity``, ``edit_sufficiency`` and the effect of each edit to a group of scores."""
        for score, by in self.scores().items():
            model = by["model"]
            group["scores"][score] = model.mean
            group["intervals"][score], group["counts"][score] = [model.low, model.high], model.n
            for who, interval in by.items():
                if who != "model":
                    group["baselines"].setdefault(who, {})[score] = interval.mean
        group["edits"] = {"n": len(self), "changed": self._changed.means()}
        if self._right:
            group["edits"]["right"] = self._right.means()

    def interventions(self) -> Part:
        """The same as the only group, for a family without re-rendered pictures."""
        group: Part = {"scores": {}, "baselines": {}, "intervals": {}, "counts": {}}
        self.add_to(group)
        return {"n": len(self), "model": group}


_ANYWHERE = 16  # squares anywhere: a lattice of 16 × 16 places


def crop_boxes(frame: Tensor, grid: Size) -> Tensor:
    """The upright box (B,4) xyxy around a crop of ``grid`` cells, from its frame (B,2,3)."""
    whole = torch.tensor([0.0, 0.0, grid[1], grid[0]], dtype=frame.dtype, device=frame.device)
    return geometry.apply_to_boxes(frame, whole.expand(*frame.shape[:-2], 4))


def mask_boxes(masks: Tensor) -> Tensor:
    """The tight box (B,4) xyxy of each mask (B,H,W); NaN for an empty one."""
    rows, columns = masks.any(-1), masks.any(-2)  # (B,H), (B,W)
    first = torch.stack([columns.int().argmax(-1), rows.int().argmax(-1)], dim=-1)  # (B,2)
    behind = torch.stack([columns.flip(-1).int().argmax(-1), rows.flip(-1).int().argmax(-1)], dim=-1)  # (B,2)
    size = torch.tensor([masks.shape[-1], masks.shape[-2]], device=masks.device)
    boxes = torch.cat([first, size - behind], dim=-1).double()
    return torch.where(rows.any(-1, keepdim=True), boxes, torch.nan)


def covers_evidence(crops: Tensor, masks: Tensor) -> Tensor:
    """Share (B,) of the pixels of each mask (B,H,W) that lie in its crop (B,4); NaN for an empty mask."""
    height, width = masks.shape[-2:]
    shares = geometry.box_shares(crops.double(), (height, width))  # (B,H,W): part of each pixel in the crop
    total = masks.flatten(1).sum(1).double()
    share = (shares * masks).flatten(1).sum(1) / total.clamp(min=1)
    return torch.where(total > 0, share, torch.nan)


def on_boxes(crops: Tensor, boxes: Tensor) -> dict[str, Tensor]:
    """``overlap`` and ``inside_evidence`` (…) of boxes (…,4) and (…,4)."""
    low, high = torch.maximum(crops[..., :2], boxes[..., :2]), torch.minimum(crops[..., 2:], boxes[..., 2:])
    sides = (high - low, crops[..., 2:] - crops[..., :2], boxes[..., 2:] - boxes[..., :2])  # (…,2) each
    common, crop_area, box_area = (side.clamp(min=0).prod(-1) for side in sides)  # (…) each
    return {"overlap": common / (crop_area + box_area - common), "inside_evidence": common / crop_area}


def crop_scores(crops: Tensor, masks: Tensor) -> dict[str, Tensor]:
    """All three scores (B,) of crops (B,4) against masks (B,H,W)."""
    return {"covers_evidence": covers_evidence(crops, masks), **on_boxes(crops.double(), mask_boxes(masks))}


def centred(crops: Tensor, picture: Size) -> Tensor:
    """Boxes (B,4) of the same size in the middle of a picture."""
    height, width = picture
    half = (crops[..., 2:] - crops[..., :2]) / 2  # (B,2)
    middle = torch.tensor([width / 2, height / 2], dtype=crops.dtype, device=crops.device)
    return torch.cat([middle - half, middle + half], dim=-1)


def anywhere_scores(crops: Tensor, masks: Tensor) -> dict[str, Tensor]:
    """The mean (B,) of each score over boxes of the same size on an even lattice inside the picture."""
    height, width = masks.shape[-2:]
    side = (crops[..., 2:] - crops[..., :2]).double()  # (B,2)
    room = torch.tensor([width, height], dtype=torch.float64, device=crops.device) - side  # (B,2)
    step = (torch.arange(_ANYWHERE, dtype=torch.float64, device=crops.device) + 0.5) / _ANYWHERE  # (K,)
    total = masks.flatten(1).sum(1).double()  # (B,)
    x0, y0 = room[:, :1] * step, room[:, 1:] * step  # (B,K) each
    tall = geometry.interval_share(y0, y0 + side[:, 1:], height)  # (B,K,H): part of each row in the box
    wide = geometry.interval_share(x0, x0 + side[:, :1], width)  # (B,K,W)
    mean = torch.einsum("bkh,bhw,blw->b", tall, masks.double(), wide) / (_ANYWHERE**2 * total.clamp(min=1))
    corner = torch.stack([x0[:, :, None].expand(-1, -1, _ANYWHERE), y0[:, None].expand(-1, _ANYWHERE, -1)], dim=-1)
    placed = torch.cat([corner, corner + side[:, None, None]], dim=-1)  # (B,K,K,4)
    scores = on_boxes(placed, mask_boxes(masks)[:, None, None])  # (B,K,K) each
    return {
        "covers_evidence": torch.where(total > 0, mean, torch.nan),
        **{name: values.flatten(1).mean(1) for name, values in scores.items()},
    }


_IN_A_ROW = 24  # Places in a row of the lattice


def places_of(sides: Tensor, picture: Size) -> Tensor:
    """Boxes (B,K,4) of ``sides`` (B,2), width and height, on a lattice over a ``picture``."""
    room = torch.tensor([picture[1], picture[0]], dtype=torch.float64, device=sides.device) - sides.double()  # (B,2)
    step = torch.linspace(0, 1, _IN_A_ROW, dtype=torch.float64, device=sides.device)  # (k,)
    grid = torch.stack(torch.meshgrid(step, step, indexing="xy"), -1).flatten(0, 1)  # (K,2)
    corner = grid * room.clamp(min=0)[:, None]  # (B,K,2)
    return torch.cat([corner, corner + sides.double()[:, None]], -1)


def beside(crops: Tensor, targets: Tensor, picture: Size, *, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Boxes (B,4) of the size of ``crops`` (B,4) without any of ``targets`` (B,4), and whether there are any (B,)."""
    boxes, to = places_of(crops[:, 2:] - crops[:, :2], picture), targets.double()[:, None]
    apart = (boxes[..., 2:] <= to[..., :2]) | (boxes[..., :2] >= to[..., 2:])  # (B,K,2)
    return _drawn(boxes, apart.any(-1), seed)


def over(crops: Tensor, targets: Tensor, picture: Size, *, within: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Boxes (B,4) of the size of ``crops``, ``within`` boxes, that hold all ``targets``; whether there are any."""
    boxes, to = places_of(crops[:, 2:] - crops[:, :2], picture), targets.double()[:, None]
    fits = (boxes[..., :2] <= to[..., :2]).all(-1) & (boxes[..., 2:] >= to[..., 2:]).all(-1)  # (B,K)
    if within is not None:
        outer = within.double()[:, None]
        fits &= (boxes[..., :2] >= outer[..., :2]).all(-1) & (boxes[..., 2:] <= outer[..., 2:]).all(-1)
    return _drawn(boxes, fits, seed=0)


def round_about(targets: Tensor, sides: Tensor, picture: Size) -> Tensor:
    """Boxes (B,4) of ``sides`` (B,2) centred on ``targets`` (B,4), moved inside the picture."""
    middle, half = (targets[:, :2] + targets[:, 2:]).double() / 2, sides.double() / 2  # (B,2)
    limit = torch.tensor([picture[1], picture[0]], dtype=torch.float64, device=targets.device)  # (2,)
    middle = torch.minimum(torch.maximum(middle, half), (limit - half).maximum(half))
    return torch.cat([middle - half, middle + half], -1)


def grown(boxes: Tensor, by: float, least: float) -> Tensor:
    """Sides (B,2) of ``boxes`` (B,4) times ``by``, at least ``least`` pixels."""
    return ((boxes[:, 2:] - boxes[:, :2]).double() * by).clamp(min=least)


def _drawn(boxes: Tensor, fits: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """One of the ``boxes`` (B,K,4) that fit (B,K), and whether one does (B,)."""
    chance = torch.rand(fits.shape, generator=torch.Generator().manual_seed(seed)).to(boxes.device)  # (B,K)
    chosen = torch.where(fits, chance, -1.0).argmax(1)  # (B,)
    return boxes[torch.arange(len(boxes), device=boxes.device), chosen], fits.any(1)
