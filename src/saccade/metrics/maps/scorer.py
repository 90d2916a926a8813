"""Scores of maps: how they lie on the evidence, beside baselines and bounds that had the same grids.

No model is needed: maps made elsewhere are scored in the same way, and :meth:`MapScorer.add_trace` reads them off a
trace. Of each batch one number for each map and score is kept, and the pixel counts of ``pr_auc``, which do not grow.

Axes: B pictures, T steps of a picture (words, glimpses), N maps that count, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from saccade.errors import DataError
from saccade.geometry import Size
from saccade.metrics.intervals import ColumnBuffer, Grouped, Interval, Values
from saccade.metrics.maps import baselines
from saccade.metrics.maps.baselines import BLIND_MAPS, EXCHANGES, Grids, can_exchange, grids_of
from saccade.metrics.maps.localisation import CheckedMaps, MeasuredMaps, PrCounts, Region
from saccade.metrics.maps.points import Clicks, at_points, exactly_at
from saccade.trace import AttentionTrace

SCORES = ("true_positive_strength", "pointing", "iou", "selectivity", "pr_auc")
"""``selectivity`` needs objects; ``pr_auc`` is pooled over all pixels and has no value for each map."""
BASELINES = ("uniform", "centre_gaussian", "shuffled", "all_objects", "all_objects_exact", "grid_oracle")
"""See :mod:`saccade.metrics.maps.baselines`. Some need objects; ``grid_oracle`` needs grids."""


class MapScores(Values):
    """Scores of one set of maps (B,H,W), added up batch by batch.

    >>> scores = MapScores()
    >>> target = torch.zeros(1, 2, 2, dtype=torch.bool); target[0, 0, 0] = True
    >>> scores.add(torch.ones(1, 2, 2), target, torch.ones_like(target))
    >>> scores.means()["true_positive_strength"], scores.means()["selectivity"]
    (0.25, 0.25)
    """

    def __init__(self, scores: Sequence[str] = SCORES) -> None:
        super().__init__()
        self._wanted = tuple(scores)
        self._counts: PrCounts | None = None

    def add(
        self,
        maps: Tensor | MeasuredMaps,
        evidence: Tensor | Region,
        objects: Tensor | Region | None = None,
        rows: Tensor | None = None,
    ) -> None:
        """Score a batch: ``evidence`` is the target's mask, ``objects`` that of all objects (B,H,W) bool.

        Objects are given for every batch or for none. If pictures share maps (K,H,W), ``rows`` (B,) says which map is
        whose.
        """
        measured = maps if isinstance(maps, MeasuredMaps) else MeasuredMaps(maps)
        target = evidence if isinstance(evidence, Region) else Region(evidence.to(measured.maps.device))
        if isinstance(objects, Tensor):
            objects = Region(objects.to(target.mask.device) | target.mask)
        if "selectivity" in self._wanted and self.names and ("selectivity" in self) != (objects is not None):
            raise DataError("objects: some batches have them and some have not; give them for every batch or for none")
        checked = CheckedMaps(measured, target, rows)
        scores: dict[str, Callable[[], Tensor]] = {
            "true_positive_strength": checked.true_positive_strength,
            "pointing": checked.pointing,
            "iou": checked.iou,
        }
        if objects is not None:
            scores["selectivity"] = partial(checked.selectivity, objects)
        self.add_values({name: score() for name, score in scores.items() if name in self._wanted})
        if "pr_auc" in self._wanted:
            self._count(checked.pr_counts())

    def add_mean(self, drawn: MapScores, times: int) -> None:
        """Add each map's mean over ``times`` consecutive draws; the pixels of all draws are pooled."""
        for name, values in drawn.values().items():
            self.add_values({name: torch.unflatten(values, 0, (times, -1)).nanmean(0) if len(values) else values})
        self._count(drawn._counts)

    def join(self, later: ColumnBuffer) -> None:
        """Append the scores of another."""
        super().join(later)
        if isinstance(later, MapScores):
            self._count(later._counts)

    def means(self) -> dict[str, float]:
        """The mean of every score over the maps that define it, and the pooled ``pr_auc``."""
        counts = self._counts
        has_maps = counts is not None and counts.pictures + counts.undefined > 0
        return super().means() | ({"pr_auc": counts.auc} if counts is not None and has_maps else {})

    def _count(self, counts: PrCounts | None) -> None:
        if counts is not None:
            self._counts = counts if self._counts is None else self._counts + counts


class Baseline(NamedTuple):
    """A further baseline."""

    maps: Tensor
    """(N,H,W)."""
    defined: Tensor | None = None
    """(N,) bool: the maps that are defined; None: all."""


def at_places(
    places: Mapping[str, Tensor], grids: Grids | None, size: Size, *, exact: bool = False
) -> dict[str, Baseline]:
    """Maps that look at ``places`` (B,2; NaN: not known) alone, by name, on ``grids``; ``exact``: to the pixel too."""
    maps: dict[str, Baseline] = {}
    for name, points in places.items():
        is_known = ~points.isnan().any(1)  # (B,)
        if grids is not None and bool(is_known.any()):
            laid = grids.to(points.device).through(partial(at_points, points, size=size))  # (B,H,W)
            maps[name] = Baseline(laid, is_known)
            if exact:
                maps[f"{name}_exact"] = Baseline(exactly_at(points, size), is_known)
    return maps


class MapScorer(Grouped):
    """Scores of maps beside those of baselines and bounds on the same evidence, added up batch by batch.

    Args:
        scores: those wanted of the maps, of :data:`SCORES`.
        baselines: those wanted, of :data:`BASELINES`.
        baseline_scores: those wanted of baselines; None: the same as of the maps.

    >>> evidence = torch.zeros(2, 4, 4, dtype=torch.bool); evidence[:, 0] = True
    >>> scorer = MapScorer(scores=["pointing"], baselines=["uniform", "shuffled"])
    >>> scorer.add(torch.stack([torch.eye(4), evidence[1].float()]), evidence)
    >>> scorer.total.means(), scorer.baselines["uniform"].means()
    ({'pointing': 0.625}, {'pointing': 0.25})
    """

    def __init__(
        self,
        *,
        scores: Sequence[str] = SCORES,
        baselines: Sequence[str] = BASELINES,
        baseline_scores: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        self._wanted = tuple(baselines)
        self._scores, self._baseline_scores = scores, scores if baseline_scores is None else baseline_scores
        self.total = MapScores(scores)
        """Scores of the maps themselves."""
        self.by_look: dict[str, MapScores] | None = None
        """Scores of single looks; None if no list of looks was ever given."""
        self.baselines: dict[str, MapScores] = {}
        """By name; only those that were made."""
        self._numbered: bool | None = None
        self._pictures = 0

    def intervals(self) -> dict[str, Interval]:
        """Every mean of ``total`` with its interval, with the picture as the unit."""
        return self.total.intervals(self.groups)

    def add(
        self,
        maps: Tensor,
        evidence: Tensor,
        *,
        groups: Tensor | None = None,
        objects: Tensor | None = None,
        grids: Grids | None = None,
        steps: Tensor | None = None,
        looks: Iterable[tuple[str, Tensor]] | None = None,
        clicks: Clicks | None = None,
        beside: Mapping[str, Baseline] | None = None,
    ) -> None:
        """Score a batch.

        Args:
            maps: (B,H,W), or (B,T,H,W) with a map for each step; finite and ≥ 0 where they count.
            evidence: the pixels that a map should lie on, bool, shaped as the maps. A map without any is undefined.
            groups: id of the picture of each map (B,), the unit of intervals and of ``shuffled``; None: every map has
                a picture of its own.
            objects: the pixels of all objects of each picture (B,H,W) bool.
            grids: where the maps were made; None: on pixels, and there is no oracle.
            steps: (B,T) bool, the steps that count; None: all.
            looks: names and maps, shaped as ``maps``, of the single looks behind them.
            clicks: one for each map that counts.
            beside: further baselines by name.
        """
        batch = _Batch(maps, evidence, objects, steps, clicks)
        measured = MeasuredMaps(batch.maps)
        picture = self._numbers(groups, len(maps), batch.rows)  # (N,)
        self._columns.append(group=picture)
        batch.score(self.total, measured)
        if looks is not None:
            self.by_look = {} if self.by_look is None else self.by_look
            for name, look in looks:
                batch.score(self.by_look.setdefault(name, MapScores(self._scores)), MeasuredMaps(batch.counted(look)))
        where = (Grids.pixels(batch.size) if grids is None else grids).to(batch.maps.device)
        on_maps = where if batch.rows is None else where.at(batch.rows)
        for name, others, exchanges in self._rivals(batch, measured, where, on_maps, picture):
            drawn = MapScores(self._baseline_scores)
            for rows in exchanges:
                batch.score(drawn, others, rows)
            self._baseline(name).add_mean(drawn, len(exchanges))
        for name, further in (beside or {}).items():
            counted = batch if further.defined is None else batch.only(further.defined)
            counted.score(self._baseline(name), MeasuredMaps(further.maps))
        if grids is not None and "grid_oracle" in self._wanted:
            best = on_maps.oracle(batch.target.mask)  # (N,H,W): the best map of the grids; None where there is none
            at_clicks = None if clicks is None else on_maps.oracle(clicks.mask)
            if best is not None:
                self._baseline("grid_oracle").add(MeasuredMaps(best), batch.target, batch.region)
            if clicks is not None and at_clicks is not None:
                self._baseline("grid_oracle").add_values(clicks.scores(at_clicks))

    def add_trace(self, trace: AttentionTrace, evidence: Tensor, *, size: Size | None = None, **options: Any) -> None:
        """Score the total map of a trace and, where it has several looks, each of them, on its grids.

        ``size`` (H, W) is that at which the picture is shown, by default its own; ``options`` go to :meth:`add`.
        """
        maps, laid = trace.image_maps(size)  # (B,H,W), and (B,H,W) of each look
        looks = laid.items() if len(trace.looks) > 1 else ()
        self.add(maps, evidence, grids=grids_of(trace, (maps.shape[-2], maps.shape[-1])), looks=looks, **options)

    def join(self, later: MapScorer) -> None:
        """Append a later scorer of the same scores."""
        if later._numbered is not None:
            self._columns.append(group=later.groups + self._pictures if later._numbered else later.groups)
            self._numbered, self._pictures = later._numbered, self._pictures + later._pictures
        self.total.join(later.total)
        for name, scores in later.baselines.items():
            self._baseline(name).join(scores)
        if later.by_look is not None:
            self.by_look = {} if self.by_look is None else self.by_look
            for name, scores in later.by_look.items():
                self.by_look.setdefault(name, MapScores(self._scores)).join(scores)

    def renumber(self, numbers: Tensor) -> None:
        """Rename picture i to ``numbers[i]``, to join a scorer with other picture numbers."""
        groups, self._columns = self.groups, ColumnBuffer()
        self._columns.append(group=numbers[groups])

    def _numbers(self, groups: Tensor | None, pictures: int, rows: Tensor | None) -> Tensor:
        if self._numbered not in (None, groups is None):
            raise DataError("groups: some batches have them and some have not; give them for every batch or for none")
        self._numbered = groups is None
        if groups is None:
            groups = torch.arange(self._pictures, self._pictures + pictures)  # (B,)
        self._pictures += pictures
        return groups.cpu() if rows is None else groups.cpu()[rows.cpu()]

    def _baseline(self, name: str) -> MapScores:
        return self.baselines.setdefault(name, MapScores(self._baseline_scores))

    def _rivals(
        self, batch: _Batch, measured: MeasuredMaps, grids: Grids, on_maps: Grids, picture: Tensor
    ) -> Iterator[tuple[str, MeasuredMaps, Sequence[Tensor | None]]]:
        """The wanted baselines that can be made here: name, maps (K,H,W), and assignments of maps to pictures.

        An assignment (N,) says which map is whose; None: each for its own. Scores are averaged over assignments. If no
        map counts, none is made, and only the names of the scores are noted.
        """
        size, count, objects = batch.size, len(batch.maps), batch.objects
        for name in [name for name in BASELINES[:-1] if name in self._wanted]:
            if name == "shuffled":
                if can_exchange(picture):
                    orders = [baselines.derangement(picture, seed=seed) for seed in range(EXCHANGES)]
                    yield name, measured, [order.to(measured.maps.device) for order in orders]
            elif not count and (name in BLIND_MAPS or objects is not None):
                yield name, measured, [None]
            elif name in BLIND_MAPS:
                laid = on_maps.blind(BLIND_MAPS[name], size, count)  # (1|N,H,W)
                rows = torch.zeros(count, dtype=torch.int64, device=laid.device) if on_maps.is_shared else None
                yield name, MeasuredMaps(laid), [rows]
            elif objects is not None:  # made once for equal masks, however many maps there are
                masks, whose = _distinct(objects)
                laid = masks.float()
                if name == "all_objects":
                    if not grids.is_shared:
                        masks, whose = objects, torch.arange(len(objects), device=objects.device)
                    laid = grids.through(partial(baselines.all_objects, masks))
                yield name, MeasuredMaps(laid), [batch.of_rows(whose)]


def _distinct(masks: Tensor) -> tuple[Tensor, Tensor]:
    """Masks (B,H,W) without consecutive duplicates, (K,H,W), and which is that of each picture (B,).

    Questions about one scene share its objects.
    """
    is_new = torch.ones(len(masks), dtype=torch.bool, device=masks.device)  # (B,)
    is_new[1:] = (masks[1:] != masks[:-1]).flatten(1).any(1)
    return masks[is_new], is_new.cumsum(0) - 1


class _Batch:
    """The counted maps of a batch (N,H,W), and their truth, on one device."""

    def __init__(
        self, maps: Tensor, evidence: Tensor, objects: Tensor | None, steps: Tensor | None, clicks: Clicks | None
    ) -> None:
        if maps.dim() == 4 and steps is None:
            steps = maps.new_ones(maps.shape[:2], dtype=torch.bool)
        self._steps = None if steps is None else steps.to(maps.device)  # (B,T)
        self.rows = None if self._steps is None else self._steps.nonzero()[:, 0]  # (N,)
        self.maps = self.counted(maps)  # (N,H,W)
        self.size: Size = (self.maps.shape[-2], self.maps.shape[-1])
        self.target = Region(self.counted(evidence.to(maps.device)))
        self.objects: Tensor | None = None
        """For each picture (B,H,W)."""
        self.region: Region | None = None
        """For each map."""
        if objects is not None:
            self.objects = objects.to(maps.device)
            self.region = Region(self.of_rows(self.objects) | self.target.mask)
        self.clicks = clicks

    def counted(self, maps: Tensor) -> Tensor:
        """Maps (B,H,W) unchanged; of maps (B,T,H,W) the counted ones (N,H,W)."""
        return maps if self._steps is None or maps.dim() == 3 else maps[self._steps]

    def of_rows(self, pictures: Tensor) -> Tensor:
        """Per-picture values (B,…) for each counted map (N,…)."""
        return pictures if self.rows is None else pictures[self.rows]

    def only(self, is_known: Tensor) -> _Batch:
        """The same with no evidence and no click where ``is_known`` (N,) is False."""
        evidence = self.target.mask & is_known[:, None, None].to(self.maps.device)  # (N,H,W)
        objects = None if self.objects is None else self.of_rows(self.objects)
        return _Batch(self.maps, evidence, objects, None, None if self.clicks is None else self.clicks.only(is_known))

    def score(self, scores: MapScores, maps: MeasuredMaps, rows: Tensor | None = None) -> None:
        scores.add(maps, self.target, self.region, rows)
        if self.clicks is not None:
            scores.add_values(self.clicks.scores(maps.maps if rows is None else maps.maps[rows]))
