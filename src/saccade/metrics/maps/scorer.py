"""Scores of maps: how they lie on the evidence, beside baselines and bounds that had the same grids.

Everything here is a function of maps. No model is needed: maps made elsewhere are scored in the same way, and
:meth:`MapScorer.add_trace` reads them off a trace. Batches are added one after the other. What is kept is one number
for each map and score, and the pixel counts of ``pr_auc``, which do not grow.

Axes: B pictures, T steps of a picture (words, glimpses), N maps that count, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from saccade.errors import ConfigError, DataError, ShapeError, nearest
from saccade.geometry import Size
from saccade.metrics.intervals import ColumnBuffer, Interval, Values
from saccade.metrics.maps import baselines
from saccade.metrics.maps.baselines import Grids, grids_of
from saccade.metrics.maps.localisation import (
    CheckedMaps,
    MeasuredMaps,
    PrCounts,
    PrCurve,
    Region,
    Target,
    no_counts,
    pr_counts_of,
)
from saccade.trace import AttentionTrace

SCORES = ("true_positive_strength", "pointing", "iou", "selectivity", "pr_auc")
"""``selectivity`` only where objects are given; ``pr_auc`` is pooled over all pixels and has no value for each map."""
BASELINES = ("uniform", "centre_gaussian", "shuffled", "all_objects", "all_objects_exact", "grid_oracle")
"""See :mod:`saccade.metrics.maps.baselines`. Those of objects need objects, ``grid_oracle`` needs grids."""

EXCHANGES = 8
"""Ways in which maps are exchanged for ``shuffled``; scores are averaged, as one way alone depends on its seed."""


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
        self._wanted = _among(scores, SCORES, "score")
        self._counts: PrCounts | None = None
        self._has_objects: bool | None = None

    def add(
        self,
        maps: Tensor | MeasuredMaps,
        evidence: Tensor | Target,
        objects: Tensor | Region | None = None,
        rows: Tensor | None = None,
    ) -> None:
        """Score a batch: ``evidence`` is the target's mask, ``objects`` that of all objects (B,H,W) bool.

        Objects are given for every batch or for none: a value that some maps lack would stand for another map. Where
        pictures share maps (K,H,W), ``rows`` (B,) says which is whose.
        """
        measured = maps if isinstance(maps, MeasuredMaps) else MeasuredMaps(maps)
        target = evidence if isinstance(evidence, Target) else Target(evidence.to(measured.maps.device))
        if self._has_objects not in (None, objects is not None):
            raise DataError("objects: some batches have them and some have not; give them for every batch or for none")
        self._has_objects = objects is not None
        checked = CheckedMaps(measured, target, rows)
        scored: dict[str, Callable[[], Tensor]] = {
            "true_positive_strength": checked.true_positive_strength,
            "pointing": checked.pointing,
            "iou": checked.iou,
        }
        if objects is not None:
            scored["selectivity"] = lambda: checked.selectivity(objects)
        self.add_values({name: score() for name, score in scored.items() if name in self._wanted})
        if "pr_auc" in self._wanted:
            self._count(pr_counts_of(checked))

    def add_mean(self, drawn: MapScores, times: int) -> None:
        """Add the scores of maps that were drawn ``times`` times, one set after the other: each map's mean over them.

        The pixels of all draws are pooled.
        """
        values = drawn.values().items()
        self.add_values({name: torch.unflatten(each, 0, (times, -1)).nanmean(0) for name, each in values if len(each)})
        self.add_values({name: each for name, each in values if not len(each)})
        self._count(drawn._counts)

    def join(self, later: ColumnBuffer) -> None:
        """Add what another has scored, after what this one has."""
        super().join(later)
        if isinstance(later, MapScores):
            self._count(later._counts)
            self._has_objects = later._has_objects if self._has_objects is None else self._has_objects

    def means(self) -> dict[str, float]:
        """The mean of every score over the maps where it is defined, and the pooled ``pr_auc``."""
        has_maps = self._counts is not None and self._counts.pictures + self._counts.undefined > 0
        return super().means() | ({"pr_auc": self.curve().auc} if has_maps else {})

    def curve(self) -> PrCurve:
        """Precision and recall of the pooled pixels."""
        return (no_counts() if self._counts is None else self._counts).curve()

    def _count(self, counts: PrCounts | None) -> None:
        """Add the pixels of further maps; None: of no map. Zeros of all levels, a megabyte each, are never made."""
        if counts is not None:
            self._counts = counts if self._counts is None else self._counts + counts


class Truth(Protocol):
    """Something that maps are compared with besides evidence, such as clicks; one for each map that counts."""

    @property
    def mask(self) -> Tensor:
        """(N,H,W) bool: the bound of a grid is its best cell for these pixels."""

    def scores(self, maps: Tensor) -> dict[str, Tensor]:
        """Scores (N,) of maps (N,H,W), by name."""

    def only(self, known: Tensor) -> Truth:
        """The same with nothing to be right about where ``known`` (N,) is False."""


class Baseline(NamedTuple):
    """Further maps to compare with."""

    maps: Tensor
    """(N,H,W)."""
    known: Tensor | None = None
    """(N,) bool: the maps that say something; None: all. The others are undefined."""


class MapScorer:
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
        self._scores = _among(scores, SCORES, "score")
        self._wanted = _among(baselines, BASELINES, "baseline")
        self._baseline_scores = self._scores if baseline_scores is None else _among(baseline_scores, SCORES, "score")
        self.total = MapScores(self._scores)
        """Scores of the maps themselves."""
        self.by_look: dict[str, MapScores] | None = None
        """Scores of single looks; None if none were ever given, not even an empty list."""
        self.baselines: dict[str, MapScores] = {}
        """By name; only those that could be made."""
        self._kept = ColumnBuffer()
        self._numbered: bool | None = None
        self._pictures = 0

    @property
    def groups(self) -> Tensor:
        """The picture of each map that was scored, (N,), in the order in which they came."""
        return self._kept["group"] if "group" in self._kept else torch.zeros(0, dtype=torch.int64)

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
        also: Sequence[Truth] = (),
        beside: Mapping[str, Baseline] | None = None,
    ) -> None:
        """Score a batch.

        Args:
            maps: (B,H,W), or (B,T,H,W) with a map for each step; finite and ≥ 0 where they count.
            evidence: the pixels that a map should lie on, bool, shaped as the maps. A map without any is undefined.
            groups: id of the picture of each map (B,), so that intervals count pictures and no picture lends its map
                to itself in ``shuffled``; None: every map has a picture of its own.
            objects: the pixels of all objects of each picture (B,H,W) bool.
            grids: where the maps were made; None: on pixels, and there is no oracle.
            steps: (B,T) bool, the steps that count; None: all.
            looks: names and maps, shaped as ``maps``, of the single looks behind them.
            also: further truths about the same maps.
            beside: further baselines by name.
        """
        batch = _Batch(maps, evidence, objects, steps)
        count, device = len(batch.maps), batch.maps.device
        own = MeasuredMaps(batch.maps)
        picture = self._numbers(groups, len(maps), batch.rows)  # (N,)
        self._kept.append(group=picture)
        self._score(self.total, own, batch, also)
        if looks is not None:
            self.by_look = {} if self.by_look is None else self.by_look
            for name, look in looks:
                held = self.by_look.setdefault(name, MapScores(self._scores))
                self._score(held, MeasuredMaps(batch.counted(look)), batch, also)
        where = Grids.pixels(batch.size) if grids is None else grids
        for name, make in self._makers(batch, own, where.to(device), picture).items():
            # There is nothing to lay out where no map counts; the names of the scores are still told.
            made, ways = make() if count else (own, [None])
            drawn = MapScores(self._baseline_scores)
            for rows in ways:
                self._score(drawn, made, batch, also, rows)
            self._baseline(name).add_mean(drawn, len(ways))
        for name, further in (beside or {}).items():
            known = batch if further.known is None else batch.only(further.known)
            truths = also if further.known is None else [each.only(further.known) for each in also]
            self._score(self._baseline(name), MeasuredMaps(further.maps), known, truths)
        if grids is not None and "grid_oracle" in self._wanted:
            self._add_bounds(batch, grids.to(device), also)

    def add_trace(self, trace: AttentionTrace, evidence: Tensor, *, size: Size | None = None, **given: Any) -> None:
        """Score the total map of a trace and, where it has several looks, each of them, on its grids.

        Args:
            trace: its maps lie on the picture.
            evidence: (B,H,W) bool.
            size: (H, W) at which the picture is shown; None: its own.
            given: what else :meth:`add` takes.
        """
        maps, laid = trace.image_maps(size)  # (B,H,W), and (B,H,W) of each look
        looks = laid.items() if len(trace.looks) > 1 else ()
        self.add(maps, evidence, grids=grids_of(trace, (maps.shape[-2], maps.shape[-1])), looks=looks, **given)

    def join(self, later: MapScorer) -> None:
        """Add what another scorer of the same scores has scored, after what this one has."""
        if later._numbered is not None:
            if self._numbered not in (None, later._numbered):
                raise DataError("groups: one scorer had them and the other had not; give them to both or to none")
            self._kept.append(group=later.groups + self._pictures if later._numbered else later.groups)
            self._numbered, self._pictures = later._numbered, self._pictures + later._pictures
        self.total.join(later.total)
        for name, held in later.baselines.items():
            self._baseline(name).join(held)
        if later.by_look is not None:
            self.by_look = {} if self.by_look is None else self.by_look
            for name, held in later.by_look.items():
                self.by_look.setdefault(name, MapScores(self._scores)).join(held)

    def renumber(self, numbers: Tensor) -> None:
        """Call the picture number i ``numbers[i]``, so that it can join one that numbered other pictures."""
        groups, self._kept = self.groups, ColumnBuffer()
        self._kept.append(group=numbers[groups])

    def _numbers(self, groups: Tensor | None, pictures: int, rows: Tensor | None) -> Tensor:
        """The picture (N,) of each map that counts."""
        if self._numbered not in (None, groups is None):
            raise DataError("groups: some batches have them and some have not; give them for every batch or for none")
        is_numbered = groups is None
        if groups is None:
            groups = torch.arange(self._pictures, self._pictures + pictures)  # (B,)
        self._numbered, self._pictures = is_numbered, self._pictures + pictures
        return groups.cpu() if rows is None else groups.cpu()[rows.cpu()]

    def _baseline(self, name: str) -> MapScores:
        return self.baselines.setdefault(name, MapScores(self._baseline_scores))

    @staticmethod
    def _score(
        held: MapScores, maps: MeasuredMaps, batch: _Batch, also: Sequence[Truth], rows: Tensor | None = None
    ) -> None:
        held.add(maps, batch.target, batch.objects, rows)
        if also:
            laid = maps.maps if rows is None else maps.maps[rows]  # (N,H,W)
            for truth in also:
                held.add_values(truth.scores(laid))

    def _makers(
        self, batch: _Batch, own: MeasuredMaps, grids: Grids, picture: Tensor
    ) -> dict[str, Callable[[], tuple[MeasuredMaps, Sequence[Tensor | None]]]]:
        """How to make each wanted baseline that can be made here.

        Each gives maps (K,H,W), and in how many ways they stand for those that count: which of them (N,) is whose,
        None: each for its own. Scores are averaged over the ways.
        """
        size, count = batch.size, len(batch.maps)
        on_maps = grids if batch.rows is None else grids.at(batch.rows)

        def blind(lay: Callable[..., Tensor]) -> tuple[MeasuredMaps, Sequence[Tensor | None]]:
            pictures = 1 if on_maps.is_shared else count
            laid = on_maps.through(lambda frame, cells: lay(frame, cells, size, pictures=pictures))  # (1|N,H,W)
            return MeasuredMaps(laid), [picture.new_zeros(count).to(laid.device) if on_maps.is_shared else None]

        def of_objects(lay: Callable[[Tensor], Tensor], things: Things) -> Any:
            return MeasuredMaps(lay(things.masks)), [batch.of_rows(things.rows)]

        found: dict[str, Callable[[], tuple[MeasuredMaps, Sequence[Tensor | None]]]] = {
            "uniform": lambda: blind(baselines.uniform),
            "centre_gaussian": lambda: blind(baselines.centre_gaussian),
        }
        if can_exchange(picture):
            found["shuffled"] = lambda: (
                own,
                [baselines.derangement(picture, seed=seed).to(own.maps.device) for seed in range(EXCHANGES)],
            )
        if (things := batch.things) is not None:  # made once for equal masks, however many maps there are
            each = things if grids.is_shared else things.spread()
            found["all_objects"] = lambda: of_objects(
                lambda masks: grids.through(lambda frame, cells: baselines.all_objects(masks, frame, cells)), each
            )
            found["all_objects_exact"] = lambda: of_objects(baselines.all_objects_exact, things)
        return {name: make for name, make in found.items() if name in self._wanted}

    def _add_bounds(self, batch: _Batch, grids: Grids, also: Sequence[Truth]) -> None:
        """The best map of the grids for the evidence, and for every further truth; nothing where there is no bound."""
        on_maps = grids if batch.rows is None else grids.at(batch.rows)
        bounds = [on_maps.oracle(mask) for mask in (batch.evidence, *(truth.mask for truth in also))]  # (N,H,W) each
        known = [best for best in bounds if best is not None]
        if len(known) < len(bounds):
            return
        held = self._baseline("grid_oracle")
        held.add(MeasuredMaps(known[0]), batch.target, batch.objects)
        for truth, best in zip(also, known[1:]):
            held.add_values(truth.scores(best))


def can_exchange(groups: Tensor) -> bool:
    """Whether maps can be exchanged between pictures (N,): no more than half may be about one."""
    return len(groups) > 0 and 2 * int(torch.unique(groups, return_counts=True)[1].max()) <= len(groups)


@dataclass(frozen=True)
class Things:
    """Masks of which several pictures after one another may share one: K masks of B pictures."""

    masks: Tensor
    """(K,H,W) bool."""
    rows: Tensor
    """(B,): the mask of each picture."""

    @classmethod
    def of(cls, masks: Tensor) -> Things:
        """Masks (B,H,W), those that equal the one before told once: questions about one scene share its objects."""
        is_new = torch.ones(len(masks), dtype=torch.bool, device=masks.device)  # (B,)
        is_new[1:] = (masks[1:] != masks[:-1]).flatten(1).any(1)
        return cls(masks[is_new], is_new.cumsum(0) - 1)

    def spread(self) -> Things:
        """The same with a mask for each picture."""
        return Things(self.masks[self.rows], torch.arange(len(self.rows), device=self.rows.device))


class _Batch:
    """The maps of a batch that count, and their truth, on one device."""

    def __init__(self, maps: Tensor, evidence: Tensor, objects: Tensor | None, steps: Tensor | None) -> None:
        if maps.dim() == 4 and steps is None:
            steps = maps.new_ones(maps.shape[:2], dtype=torch.bool)
        self._steps = None if steps is None else steps.to(maps.device)  # (B,T)
        self.rows = None if self._steps is None else self._steps.nonzero()[:, 0]  # (N,)
        if evidence.shape != maps.shape:
            raise ShapeError("evidence", f"{tuple(maps.shape)} as the maps", evidence.shape)
        self.maps = self.counted(maps)  # (N,H,W)
        self.evidence = self.counted(evidence.to(maps.device))  # (N,H,W)
        self.things: Things | None = None
        """Objects of each picture (B,H,W)."""
        self.objects: Region | None = None
        """Objects round each map."""
        self.target = Target(self.evidence)
        if objects is not None:
            if objects.shape != (len(maps), *self.size):
                raise ShapeError("objects", f"{(len(maps), *self.size)}, one mask for each picture", objects.shape)
            self._given = self.of_rows(objects.to(maps.device))  # (N,H,W)
            self.things, self.objects = Things.of(objects.to(maps.device)), self.target.with_objects(self._given)

    @property
    def size(self) -> Size:
        """(H, W)."""
        return self.maps.shape[-2], self.maps.shape[-1]

    def counted(self, maps: Tensor) -> Tensor:
        """Maps (B,H,W) as they are; of maps (B,T,H,W) those that count (N,H,W)."""
        return maps if self._steps is None or maps.dim() == 3 else maps[self._steps]

    def of_rows(self, pictures: Tensor) -> Tensor:
        """What belongs to the pictures (B,…), for each map that counts (N,…)."""
        return pictures if self.rows is None else pictures[self.rows]

    def only(self, known: Tensor) -> _Batch:
        """The same with no evidence where ``known`` (N,) is False."""
        told = self.evidence & known[:, None, None].to(self.evidence.device)  # (N,H,W)
        return _Batch(self.maps, told, None if self.objects is None else self._given, None)


def _among(names: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """The names, once they are known ones."""
    for name in names:
        if name not in known:
            raise ConfigError(f"no {what} '{name}': {nearest(name, known)}")
    return tuple(names)
