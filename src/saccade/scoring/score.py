"""Scores maps against their truth, one after the other, in memory that does not grow with their size.

Maps of one size whose truths have one size are gathered and scored together. What is kept of a map is its name and one
number for each score. Baselines are made on the same pixels or, for a map that is coarser than its truth, on the same
grid.

Axes: B maps of a batch, h and w cells of a map, H and W pixels of its truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.data.maps import picture_of, short_names
from saccade.errors import DataError, SaccadeError
from saccade.geometry import Size
from saccade.metrics.intervals import Interval
from saccade.metrics.maps.baselines import Grid, Grids, can_exchange
from saccade.metrics.maps.points import PointScorer
from saccade.metrics.maps.scorer import Baseline, MapScorer
from saccade.metrics.verdict import maps_verdict
from saccade.progress import OnProgress, no_progress
from saccade.scoring.results import Policies, ScoreResult
from saccade.scoring.sources import Maps, TruthPoints, Truths

_MAPS_AT_ONCE = 256  # maps of one size that are scored together
_PIXELS_AT_ONCE = 1 << 22  # of their truths
_PIXELS_WAITING = 1 << 25  # of truths whose maps wait for others of their size
_DONORS = 16  # maps that are kept to stand in for those of other pictures, where a batch has but one picture
MAX_OTHERS = 10_000
"""Points of all pictures that the shuffled AUC compares with; of more, this many are drawn, always the same."""


def laid_over(maps: Tensor, shown: Size) -> tuple[Tensor, Grids | None]:
    """Maps (B,h,w) over pictures of that size, and the grid they were made on where it is coarser than pixels."""
    size = (maps.shape[-2], maps.shape[-1])
    if size == shown:
        return maps, None
    if size[0] >= shown[0] and size[1] >= shown[1]:
        return F.adaptive_avg_pool2d(maps[:, None], shown)[:, 0], None
    frame = geometry.scale_shift((shown[1] / size[1], shown[0] / size[0]), (0.0, 0.0))
    return geometry.project(maps, frame, shown), Grids((Grid(frame, size),))


def reduced(masks: Tensor, size: Size) -> Tensor:
    """Masks (B,H,W) at another size: a pixel is in a mask where half of it was."""
    return F.adaptive_avg_pool2d(masks.float()[:, None], size)[:, 0] >= 0.5


class _Waiting(NamedTuple):
    """A map that was not scored yet."""

    name: str
    truth: str
    map: Tensor  # (h,w)
    mask: Tensor  # (H,W); empty where truths are points
    objects: Tensor | None


_Key = tuple[Size, Size, torch.dtype, torch.device]
"""What maps that are scored together have in common: size, size of the truth, kind of number, device."""


@dataclass
class Shard:
    """The scores of some of the maps; it can travel between processes."""

    seen: dict[str, int] = field(default_factory=dict)  # the place of each map in the order in which they came
    names: list[str] = field(default_factory=list)  # of the scored maps
    pictures: dict[str, int] = field(default_factory=dict)  # their numbers in ``scorer``
    scorer: MapScorer = field(default_factory=MapScorer)
    matched: set[str] = field(default_factory=set)  # truths that have a map
    left_out: dict[str, list[str]] = field(
        default_factory=lambda: {reason: [] for reason in ("missing", "extra", "nan", "broken")}
    )
    notes: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("empty", "zero", "resized"), 0))
    donors: list[tuple[str, Tensor]] = field(default_factory=list)
    has_objects: bool | None = None

    def see(self, name: str) -> None:
        """Note that a map came; names are unique."""
        if name in self.seen:
            raise DataError(f"two maps are called '{name}'; give each its own name")
        self.seen[name] = len(self.seen)

    def set_objects(self, has_objects: bool | None) -> None:
        """Note whether truths have objects; all or none have. None: there are no maps yet."""
        if None not in (self.has_objects, has_objects) and self.has_objects != has_objects:
            raise DataError("some maps are about a picture and some about one of its labels; score them apart")
        self.has_objects = self.has_objects if has_objects is None else has_objects

    def join(self, later: Shard) -> None:
        """Add the scores of the maps behind these."""
        for name in later.seen:
            self.see(name)
        self.set_objects(later.has_objects)
        numbers = [self.pictures.setdefault(picture, len(self.pictures)) for picture in later.pictures]
        later.scorer.renumber(torch.tensor(numbers, dtype=torch.int64))
        self.scorer.join(later.scorer)
        self.names += later.names
        self.matched |= later.matched
        self.notes |= later.notes
        self.donors = [*self.donors, *later.donors][-_DONORS:]
        for reason, names in later.left_out.items():
            self.left_out[reason] += names
        for reason, count in later.counts.items():
            self.counts[reason] += count


def score_maps(maps: Maps, truths: Truths, policies: Policies, *, on_progress: OnProgress = no_progress) -> ScoreResult:
    """Score all maps."""
    scoring = MapScoring(maps, truths, policies, on_progress)
    scoring.gather()
    return scoring.finish()


class MapScoring:
    """Scores maps of one kind against their truth: :meth:`gather` them, then :meth:`finish`.

    Parts of the maps may be gathered apart; their :attr:`shard` is then joined to that of the others.
    """

    def __init__(
        self, maps: Maps, truths: Truths, policies: Policies, on_progress: OnProgress, *, short: bool | None = None
    ) -> None:
        self._maps, self._truths, self._policies, self._on_progress = maps, truths, policies, on_progress
        if short is None:
            fixed = [*(truths.paths if truths.is_fixed else ()), *(maps.paths if maps.is_fixed else ())]
            has_folders = any("/" in path for path in fixed)
            short = not has_folders and short_names([maps.paths, truths.paths], policies.separator)
        self.short = short  # Whether maps and truths are called by the last part of their paths
        maps.name(short)
        truths.name(short, policies.separator)
        self._waiting: dict[_Key, list[_Waiting]] = {}
        self.shard = Shard()
        self._points = FixationPool(truths, policies.separator) if truths.kind == "points" else None
        self._pool = truths.pool(policies)
        self._twins: set[str] = set()  # names of maps of twins that came

    def gather(self) -> None:
        """Score all maps."""
        if self._truths.unusable and self._policies.broken == "stop":
            raise DataError(
                f"{self._truths.where}: {len(self._truths.unusable)} rows cannot be used, the first: "
                f"{self._truths.unusable[0]}; fix it, or leave such rows out and count them with `broken=skip`"
            )
        scene_by_scene = () if self._pool is None else self._truths.wanted
        for done, (name, map) in enumerate(self._maps.each(scene_by_scene)):
            self._on_progress("scoring maps", done, len(self._maps.paths))
            self._take(name, map)

    def finish(self) -> ScoreResult:
        """The scores of all."""
        shard = self.shard
        if not shard.seen:
            raise DataError(f"{self._maps.where}: no maps; looked for .npy .npz .png .tif .h5 and records")
        if not shard.matched:
            name, truth = next(iter(shard.seen)), next(iter(self._truths.names), "nothing")
            raise DataError(
                f"no map has a truth: maps have names such as '{name}', truths such as '{truth}'; give both the "
                "same names, or give the text between picture and question with `separator`"
            )
        self._add_missing()
        self.score_waiting()
        result = self._result()
        if result.names and result.counts["empty"] == len(result.names):
            raise DataError(
                f"{self._truths.where}: every truth is empty; a mask is 0 where the object is not, and anything else "
                "where it is"
            )
        if not result.counts["scored"]:
            raise DataError(f"{self._maps.where}: no map could be scored: {result.counted()}")
        return result

    def _take(self, name: str, map: Tensor | SaccadeError) -> None:
        """Find the truth of a map, apply the policies, and let it wait for others of its size."""
        shard = self.shard
        shard.see(name)
        pool = self._pool if self._pool is not None and name in self._pool.twins else None
        truth = name if pool is not None else self._truths.truth_of(name, self._policies.separator)
        if truth is None:
            if isinstance(map, SaccadeError):  # nobody can say what it would have been
                shard.notes[name] = str(map)
            shard.left_out["broken" if isinstance(map, SaccadeError) else "extra"].append(name)
            return
        (shard.matched if pool is None else self._twins).add(truth)
        try:
            usable = self._usable(name, map)
            if usable is not None and pool is not None:
                self._check_size(name, usable, pool.shown)
                pool.add(name, usable)
            elif usable is not None:
                self._wait(name, truth, usable)
        except SaccadeError as error:
            self._leave_out("broken", name, str(error))
            shard.notes[name] = str(error)

    def _leave_out(self, reason: str, name: str, why: str) -> None:
        if getattr(self._policies, reason) == "stop":
            raise DataError(why if "`" in why else f"{why}; `{reason}=skip` leaves such maps out and counts them")
        self.shard.left_out.setdefault(reason, []).append(name)

    def _usable(self, name: str, map: Tensor | SaccadeError) -> Tensor | None:
        """The map with the policies for NaN and signs applied; None where it is left out."""
        if isinstance(map, SaccadeError):
            raise map
        if not bool(map.isfinite().all()):
            if self._policies.nan != "zero":
                self._leave_out("nan", name, f"'{name}': holds NaN or infinity")
                return None
            map = map.nan_to_num(0.0, 0.0, 0.0)
        map = self._policies.with_sign(map)
        if self._points is None and bool((map < 0).any()):
            raise DataError(
                f"'{name}': has negative values, so shares of it are not defined; `signed=abs` takes absolute "
                "values, `signed=positive` sets negative values to 0"
            )
        return map

    def _check_size(self, name: str, map: Tensor, shown: Size) -> None:
        if tuple(map.shape) != shown and self._policies.resize == "never":
            raise DataError(
                f"'{name}': a map of {map.shape[0]}×{map.shape[1]} and a truth of {shown[0]}×{shown[1]} pixels; "
                "`resize=truth` lays the map over the picture"
            )

    def _wait(self, name: str, truth: str, map: Tensor) -> None:
        """Keep a map until others of its size fill a batch; score the largest batches where too many wait."""
        map = map.clone()  # a stream may use one array for all of its maps
        size, picture = (map.shape[0], map.shape[1]), self._picture(name)
        if picture not in dict(self.shard.donors):  # later ones take the place of earlier ones
            self.shard.donors = [*self.shard.donors[-_DONORS + 1 :], (picture, map)]
        mask, objects = self._truths.evidence(truth, size)
        mask, objects = mask.to(map.device), None if objects is None else objects.to(map.device)
        self.shard.set_objects(objects is not None)
        shown = (mask.shape[0], mask.shape[1])
        self._check_size(name, map, shown)
        if self._pool is not None and name in self.shard.seen:  # else it stands for a missing one
            self._pool.add(truth, map)
        key = (size, shown, map.dtype, map.device)
        waiting = self._waiting.setdefault(key, [])
        waiting.append(_Waiting(name, truth, map, mask, objects))
        if len(waiting) >= _MAPS_AT_ONCE or len(waiting) * math.prod(shown) >= _PIXELS_AT_ONCE:
            self._score(key)
        while sum(math.prod(key[1]) * len(maps) for key, maps in self._waiting.items()) > _PIXELS_WAITING:
            self._score(max(self._waiting, key=lambda key: len(self._waiting[key])))

    def score_waiting(self) -> None:
        """Score the maps that wait for others of their size."""
        for key in list(self._waiting):
            self._score(key)

    def _add_missing(self) -> None:
        """Apply the policy to truths without a map."""
        left_out = self.shard.left_out
        left_out["missing"] = missing = [
            name for name in self._truths.expected(self.shard.matched) if name not in self.shard.matched
        ]
        if self._pool is not None:
            left_out["missing_twins"] = self._pool.missing(self._twins)
        lacking = [*missing, *left_out.get("missing_twins", ())]
        if lacking and self._policies.missing == "stop":
            raise DataError(
                f"{len(lacking)} truths have no map, the first: '{lacking[0]}'; `missing=skip` leaves them out and "
                "counts them, `missing=zero` counts each as a map of zeros"
            )
        if self._policies.missing == "zero" and self.shard.donors:
            for name in missing:
                self._wait(name, name, torch.zeros_like(self.shard.donors[-1][1]))

    def _score(self, key: _Key) -> None:
        shard, waiting, (size, truth_size, _, _) = self.shard, self._waiting.pop(key), key
        names, maps = [one.name for one in waiting], torch.stack([one.map for one in waiting])  # (B,h,w)
        numbers = [shard.pictures.setdefault(self._picture(name), len(shard.pictures)) for name in names]
        groups = torch.tensor(numbers)  # (B,)
        shown = size if self._policies.resize == "map" else truth_size
        laid, grids = laid_over(maps, shown)
        donors = self._stand_ins(names, groups, shown)
        shard.names += names
        shard.counts["zero"] += int((maps == 0).flatten(1).all(1).sum())
        shard.counts["resized"] += 0 if laid is maps else len(maps)
        if self._points is not None:
            truths = [one.truth for one in waiting]
            self._count_empty(self._points.add(truths, laid, shown, groups, grids, donors), names)
            return
        masks = torch.stack([one.mask for one in waiting])  # (B,H,W)
        of_objects = [one.objects for one in waiting if one.objects is not None]
        objects = torch.stack(of_objects) if of_objects else None
        if shown != truth_size:
            masks, objects = reduced(masks, shown), None if objects is None else reduced(objects, shown)
        self._count_empty(~masks.flatten(1).any(1), names)
        beside = {} if donors is None else {"shuffled": donors}
        if grids is None:  # on pixels the best map is the mask itself
            beside["grid_oracle"] = Baseline(masks.to(laid.dtype))
        shard.scorer.add(laid, masks, groups=groups, objects=objects, grids=grids, beside=beside)

    def _stand_ins(self, names: Sequence[str], groups: Tensor, shown: Size) -> Baseline | None:
        """A map of another picture for each map of a batch that cannot exchange its own; None where it can."""
        if can_exchange(groups):
            return None
        chosen, known = [], []
        for at, name in enumerate(names):
            others = [map for picture, map in self.shard.donors if picture != self._picture(name)]
            known.append(bool(others))
            donor = others[at % len(others)] if others else self.shard.donors[0][1]
            chosen.append(laid_over(donor[None], shown)[0])
        return Baseline(torch.cat(chosen), torch.tensor(known)) if any(known) else None

    def _count_empty(self, empty: Tensor, names: Sequence[str]) -> None:
        if self._policies.empty == "stop" and bool(empty.any()):
            name = names[int(empty.nonzero()[0, 0])]
            raise DataError(f"the truth of '{name}' is empty; `empty=skip` leaves such maps out and counts them")
        self.shard.counts["empty"] += int(empty.sum())

    def _picture(self, name: str) -> str:
        return picture_of(name, self._policies.separator)

    def _result(self) -> ScoreResult:
        shard, scorer = self.shard, self.shard.scorer if self._points is None else self._points.scorer
        places = sorted(range(len(shard.names)), key=lambda at: shard.seen.get(shard.names[at], len(shard.seen) + at))
        names = tuple(shard.names[at] for at in places)  # as they came, not as they were scored
        order = torch.tensor(places, dtype=torch.int64)  # (N,)
        intervals, means = scorer.intervals(), scorer.total.means()
        if "pr_auc" in means:
            n = max((interval.n for interval in intervals.values()), default=0)
            pictures = max((interval.images for interval in intervals.values()), default=0)
            intervals["pr_auc"] = Interval(means["pr_auc"], math.nan, math.nan, n, pictures, len(names) - n)
        counts = {
            "maps": len(shard.seen),
            "truths": len(self._truths.expected(shard.matched)),
            "scored": len(names) - shard.counts["empty"],
            "pictures": len(shard.pictures),
            **{reason: len(left) for reason, left in shard.left_out.items()},
            **shard.counts,
            "rows": len(self._truths.unusable),
            "ignored": self._maps.ignored,
            **({} if self._points is None else {"outside": self._points.outside}),
            **({} if self._pool is None else {"twins": len(self._twins), "unread": self._pool.unread}),
        }
        left_out = {reason: tuple(names) for reason, names in shard.left_out.items()}
        if self._policies.missing == "zero":  # what is missing was scored
            left_out |= {reason: () for reason in left_out if reason.startswith("missing")}
        return ScoreResult(
            kind=self._truths.kind,
            scores=intervals,
            baselines={name: values.means() for name, values in scorer.baselines.items()},
            names=names,
            pictures=tuple(map(self._picture, names)),
            values={name: values[order] for name, values in scorer.total.values().items()},
            left_out=left_out,
            notes=shard.notes,
            counts=counts,
            policies=self._policies,
            maps=self._maps.where,
            truth=self._truths.where,
            verdict=maps_verdict(scorer) if len(names) > shard.counts["empty"] else "",
            scene=None if self._pool is None else self._pool.finish(),
            sources=(self._maps, self._truths),
        )


class FixationPool:
    """The points of all pictures, those of each for the shuffled AUC, and the scores of maps against them."""

    def __init__(self, truths: Truths, separator: str) -> None:
        self.scorer, self.outside = PointScorer(), 0  # points outside their picture
        self._truths, self._separator = truths, separator
        names = truths.expected(set())
        points = [truths.points(name) for name in names]
        shares = [at if size is None else at / torch.tensor([size[1], size[0]]) for at, size in points]
        owner = torch.arange(len(names)).repeat_interleave(torch.tensor([len(at) for at, _ in points]))  # (M,)
        chosen = torch.arange(len(owner))
        if len(owner) > MAX_OTHERS:
            chosen = torch.randperm(len(owner), generator=torch.Generator().manual_seed(0))[:MAX_OTHERS].sort().values
        self._owner = owner[chosen]  # (M,) the number of the picture
        self._sized = torch.tensor([size is not None for _, size in points])[self._owner]  # (M,)
        self._share = torch.cat(shares)[chosen]  # (M,2): of the picture; in pixels where it has no size
        self._number = {name: number for number, name in enumerate(names)}

    def add(
        self, truths: list[str], maps: Tensor, shown: Size, groups: Tensor, grids: Grids | None, donors: Baseline | None
    ) -> Tensor:
        """Score maps (B,H,W) over pictures of size ``shown``; which have no point inside (B,) bool."""
        points = _padded([_scaled(self._truths.points(name), shown) for name in truths])  # (B,K,2)
        extent = torch.tensor([shown[1], shown[0]])
        inside = ((points >= 0) & (points < extent)).all(-1)  # (B,K)
        self.outside += int((~points.isnan().any(-1) & ~inside).sum())
        pool = torch.where(self._sized[:, None], self._share * extent, self._share)  # (M,2)
        pictures = [name if name in self._number else picture_of(name, self._separator) for name in truths]
        own = _padded([pool[self._owner == self._number.get(picture, -1)] for picture in pictures])  # (B,J,2)
        stand_in = None if donors is None else donors.maps
        self.scorer.add(maps, points, pool=pool, own=own, groups=groups, grids=grids, donors=stand_in)
        return ~inside.any(1)


def _scaled(points: TruthPoints, shown: Size) -> Tensor:
    if points.size is None or points.size == shown:
        return points.at
    return points.at * torch.tensor([shown[1] / points.size[1], shown[0] / points.size[0]], dtype=torch.float64)


def _padded(points: list[Tensor]) -> Tensor:
    """Lists of points (K,2) as one (B,K,2), NaN where there are fewer."""
    at_least_one = [torch.cat([at.double(), torch.full((int(not len(at)), 2), torch.nan)]) for at in points]
    return torch.nn.utils.rnn.pad_sequence(at_least_one, batch_first=True, padding_value=torch.nan)
