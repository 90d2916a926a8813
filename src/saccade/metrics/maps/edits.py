"""Edited attention: how does the answer change when weights are removed, moved or exchanged?

The rest of a model runs on edited weights (:meth:`saccade.looks.Look.edit`, given attention), and answers again:

====================  ===========================================================================  ====
``edit_necessity``    answers that change with no weight on the target, divided by those that      (X1)
                      change when the target is removed from the picture
``edit_sufficiency``  answers that stay with weight on the target alone, divided by those that     (X2)
                      stay when everything else is removed from the picture
``edit_farthest``     how far the weights can be from the model's own, in total variation, while the
                      answer's probabilities move by .01 at most (:mod:`.farthest`)
====================  ===========================================================================  ====

Crops, words, glimpses and hops are edited each in its own way; the families say how.

The division is by what can be had: cells see more than the pixels they stand for, so the features beside the target
know of it. Beside both stand the same of other cells, equally many of them: drawn at random, and for (X1) also the
heaviest ones. Cells are "on the target" where at least a tenth of what they stand for lies on it, and the one that sees
it best always is. A picture with fewer cells elsewhere than on the target has neither score.

Axes: B questions, H and W pixels, h and w cells.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from saccade.errors import ShapeError
from saccade.geometry import Size
from saccade.metrics.columns import ColumnBuffer, Values
from saccade.metrics.evaluation import Part
from saccade.metrics.intervals import Interval, jackknife_interval
from saccade.metrics.maps.baselines import seen_by_cells
from saccade.metrics.student import t_quantile

LEVEL = 0.95
"""How often an interval holds the truth."""
ON = 0.1
"""Share of what a cell stands for that must lie on an object, for the cell to be on it."""
NECESSITY = {"model": "zero_target", "random_cells": "zero_random", "heaviest_cells": "zero_heaviest"}
"""Which edit stands for whom in ``edit_necessity``."""
SUFFICIENCY = {"model": "keep_target", "random_cells": "keep_random"}
"""The same in ``edit_sufficiency``."""
REMOVED, ALONE = "target_removed", "target_alone"
"""Pictures that are changed in place of weights: what can be had."""


def cells_on(mask: Tensor, frame: Tensor, grid: Size) -> Tensor:
    """(B,h,w) bool: the cells that lie on a mask (B,H,W) bool; none where it is empty.

    Args:
        mask: pixels.
        frame: cells → pixels.
        grid: (h, w) of the cells.
    """
    everywhere = mask.new_ones(1 if frame.dim() == 2 else len(frame), *mask.shape[1:])
    seen = seen_by_cells(mask, frame, grid)  # (B,h,w)
    share = seen / seen_by_cells(everywhere, frame, grid).clamp(min=1e-12)  # (B,h,w)
    best = share.amax(dim=(-2, -1), keepdim=True)  # (B,1,1)
    return (share > 0) & ((share >= ON) | (share >= best))


def chosen_cells(rank: Tensor, allowed: Tensor, count: Tensor) -> Tensor:
    """(B,h,w) bool: the ``count`` (B,) cells with the highest ``rank`` (B,h,w) among those ``allowed`` (B,h,w) bool."""
    if rank.shape != allowed.shape or count.shape != rank.shape[:1]:
        raise ShapeError("allowed and count", f"{tuple(rank.shape)} and ({len(rank)},)", allowed.shape)
    order = torch.where(allowed, rank, -torch.inf).flatten(1).argsort(1, descending=True)  # (B,hw)
    place = order.argsort(1)  # (B,hw): the how-manieth each cell is
    return (place < count[:, None]).view_as(allowed) & allowed


def uniform_like(weights: Tensor) -> Tensor:
    """Weights (B,h,w) with their mean everywhere."""
    return weights.mean(dim=(-2, -1), keepdim=True).expand_as(weights).contiguous()


def permuted(weights: Tensor, *, seed: int = 0) -> Tensor:
    """Weights (B,h,w) whose cells changed places at random, differently for each question."""
    random = torch.Generator().manual_seed(seed)
    order = torch.rand(len(weights), weights[0].numel(), generator=random).argsort(1).to(weights.device)  # (B,hw)
    return weights.flatten(1).gather(1, order).view_as(weights)


def ratio_of_means(top: Tensor, bottom: Tensor, groups: Tensor) -> Interval:
    """mean(top) / mean(bottom) of values (N,) in 0 … 1, with its interval by leaving out one picture at a time.

    Where both agree in all pictures, or ``top`` is 0 in all, leaving one out changes nothing. So one further picture
    that is wholly wrong is counted, as for every other interval (:mod:`saccade.metrics.intervals`): it would move the
    ratio by 1 / (G · mean(bottom)).

    Pairs of which either is NaN do not count; NaN where the mean of ``bottom`` is 0.

    Args:
        top: values (N,).
        bottom: values (N,).
        groups: id of each value's picture (N,).
    """
    known = ~(top.isnan() | bottom.isnan())
    one, two, ids = top[known].double(), bottom[known].double(), groups[known]
    undefined = int((~known).sum())
    if not len(one) or float(two.sum()) == 0:
        return Interval(float("nan"), float("nan"), float("nan"), 0, 0, undefined + len(one))
    found, image = torch.unique(ids, return_inverse=True)  # (G,), (n,)
    sums = [torch.zeros(len(found), dtype=torch.float64).index_add_(0, image, each) for each in (one, two)]  # (G,)
    without = (one.sum() - sums[0]) / (two.sum() - sums[1])  # (G,); not a number where no bottom is left
    score = one.sum() / two.sum()
    kept = without.where(without.isfinite(), torch.nan)  # (G,)
    low, high = jackknife_interval(score, kept, ends=None, level=LEVEL)
    further = t_quantile(LEVEL, len(found) - 1) / (len(found) * two.mean()) if len(found) > 1 else torch.nan
    half = torch.hypot((high - low) / 2, torch.as_tensor(further, dtype=torch.float64))
    ends = float((score - half).clamp(min=0)), float(score + half)
    return Interval(float(score), *ends, len(one), len(found), undefined)


class EditScores:
    """What edits did to answers, added batch by batch."""

    def __init__(self) -> None:
        self._changed: dict[str, Values] = {}
        self._right: dict[str, Values] = {}
        self._farthest = Values()
        self._kept = ColumnBuffer()

    def __len__(self) -> int:
        return len(self._kept["group"]) if "group" in self._kept else 0

    def add(
        self,
        before: Tensor,
        truth: Tensor,
        groups: Tensor,
        answers: Mapping[str, Mapping[str, Tensor]],
        *,
        truths: Mapping[str, Tensor] | None = None,
        farthest: Tensor | None = None,
    ) -> None:
        """Keep the answers of a batch.

        Args:
            before: ids (B,) of what was answered first.
            truth: ids (B,) of the true answers.
            groups: (B,) id of each question's picture.
            answers: by which looks were edited ("all", or a name), then by edit: ids (B,), −1 where it is not possible.
            truths: ids (B,) of what is right after an edit, by its name, where that is another answer.
            farthest: (B,), see :mod:`saccade.metrics.maps.farthest`; None where no look has weights that sum to 1.
        """
        self._kept.append(group=groups)
        if farthest is not None:
            self._farthest.add_values({"edit_farthest": farthest})
        for looks, edits in answers.items():
            for name, after in edits.items():
                known = after >= 0
                wanted = (truths or {}).get(name, truth)  # (B,)
                for held, is_so in ((self._changed, after != before), (self._right, after == wanted)):
                    value = torch.where(known, is_so.double(), torch.nan)  # (B,)
                    held.setdefault(looks, Values()).add_values({name: value})

    def add_changes(self, groups: Tensor, changed: Mapping[str, Mapping[str, Tensor]]) -> None:
        """The same where an answer is more than one id: ``changed`` has by looks and edit whether it did, (B,).

        Values are 1, 0, or NaN where the edit is not possible. Nothing is told of right answers.
        """
        self._kept.append(group=groups)
        self.add_further(changed)

    def add_further(self, changed: Mapping[str, Mapping[str, Tensor]]) -> None:
        """What else changed in the answers of the batch that was added last, as in :meth:`add_changes`."""
        for looks, edits in changed.items():
            self._changed.setdefault(looks, Values()).add_values({name: each.double() for name, each in edits.items()})

    def join(self, later: EditScores) -> None:
        """Add what was kept of later questions."""
        self._kept.join(later._kept)
        self._farthest.join(later._farthest)
        for mine, others in ((self._changed, later._changed), (self._right, later._right)):
            for looks, held in others.items():
                mine.setdefault(looks, Values()).join(held)

    @property
    def looks(self) -> list[str]:
        """What was edited: "all" looks, or a look by its name and what becomes of later ones."""
        return list(self._changed)

    def scores(self) -> dict[str, dict[str, Interval]]:
        """``edit_necessity`` and ``edit_sufficiency``, by whose they are: the model's, and other cells in its place."""
        if not len(self) or "all" not in self._changed:
            return {}
        values, groups = self._changed["all"].values(), self._kept["group"]
        found: dict[str, dict[str, Interval]] = {"edit_necessity": {}, "edit_sufficiency": {}}
        for who, edit in NECESSITY.items():
            if edit in values and REMOVED in values:
                found["edit_necessity"][who] = ratio_of_means(values[edit], values[REMOVED], groups)
        for who, edit in SUFFICIENCY.items():
            if edit in values and ALONE in values:
                found["edit_sufficiency"][who] = ratio_of_means(1 - values[edit], 1 - values[ALONE], groups)
        return {score: by for score, by in found.items() if "model" in by}

    def add_to(self, group: Part) -> None:
        """Put ``edit_necessity`` and ``edit_sufficiency`` into a group of scores, and all edits one by one."""
        for score, by in self.scores().items():
            own = by["model"]
            group["scores"][score] = own.mean
            group["intervals"][score], group["counts"][score] = [own.low, own.high], own.n
            for who, each in by.items():
                if who != "model":
                    group["baselines"].setdefault(who, {})[score] = each.mean
        for score, each in self._farthest.intervals(self._kept["group"]).items():
            group["scores"][score] = each.mean
            group["intervals"][score], group["counts"][score] = [each.low, each.high], each.n
        group["edits"] = self.summary()

    def interventions(self) -> Part:
        """The same as the one group of a result, for a family whose maps are not scored on re-rendered pictures."""
        group: Part = {"scores": {}, "baselines": {}, "intervals": {}, "counts": {}}
        self.add_to(group)
        return {"n": len(self), "model": group}

    def summary(self) -> Part:
        """``n``, and by looks and edit the share of answers that ``changed`` and that were ``right``."""
        found: Part = {
            "n": len(self),
            "changed": {looks: held.means() for looks, held in self._changed.items()},
        }
        if self._right:
            found["right"] = {looks: held.means() for looks, held in self._right.items()}
        return found
