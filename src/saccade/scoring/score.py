"""Scores maps against their truth, one after the other, in memory that does not grow with their size.

Maps of one size whose truths have one size are gathered and scored together. What is kept of a map is its name and one
number for each score. Baselines are made on the same pixels or, for a map that is coarser than its truth, on the same
grid.

Axes: B maps of a batch, h and w cells of a map, H and W pixels of its truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.data.maps.arrays import picture_of, short_names, truth_for
from saccade.errors import DataError, SaccadeError
from saccade.geometry import Size
from saccade.metrics.intervals import Interval
from saccade.metrics.maps.baselines import Grid, Grids
from saccade.metrics.maps.points import PointScorer
from saccade.metrics.maps.scorer import Baseline, MapScorer, can_exchange
from saccade.scoring.results import Policies, ScoreResult
from saccade.scoring.sources import Maps, Points, Truths

_AT_ONCE = 256
"""Maps of one size that are scored together."""
_PIXELS_AT_ONCE = 1 << 22
"""Most pixels of truths that are scored together."""
_PIXELS_WAITING = 1 << 25
"""Most pixels of truths whose maps wait for others of their size."""
_DONORS = 16
"""Maps that are kept to stand in for those of other pictures, where a batch has but one picture."""
MAX_OTHERS = 10_000
"""Points of all pictures that the shuffled AUC compares with; of more, this many are drawn, always the same."""

OnProgress = Callable[[str, int, int], None]


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
    map: Tensor
    """(h,w)."""
    mask: Tensor | None
    """(H,W); None where truths are points."""
    objects: Tensor | None


_Key = tuple[Size, Size, torch.dtype, torch.device]
"""What maps that are scored together have in common: size, size of the truth, kind of number, device."""


@dataclass
class Shard:
    """What scoring found of some of the maps; it can travel between processes."""

    seen: dict[str, int] = field(default_factory=dict)
    """The place of each map in the order in which they came."""
    names: list[str] = field(default_factory=list)
    """Names of the scored maps."""
    pictures: dict[str, int] = field(default_factory=dict)
    """Their numbers in ``scorer``."""
    scorer: MapScorer = field(default_factory=MapScorer)
    found: set[str] = field(default_factory=set)
    """Truths that have a map."""
    left_out: dict[str, list[str]] = field(
        default_factory=lambda: {reason: [] for reason in ("missing", "extra", "nan", "broken")}
    )
    notes: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("empty", "zero", "resized"), 0))
    donors: list[tuple[str, Tensor]] = field(default_factory=list)
    has_objects: bool | None = None


def score_maps(
    maps: Maps, truths: Truths, policies: Policies, *, on_progress: OnProgress = lambda what, done, total: None
) -> ScoreResult:
    """Score all maps."""
    scoring = Scoring(maps, truths, policies, on_progress)
    scoring.gather()
    return scoring.finish()


class Scoring:
    """Scores maps of one kind against their truth: :meth:`gather` them, then :meth:`finish`.

    Parts of the maps may be gathered apart, with ``short`` as for all of them, handed over as a :class:`Shard`, and be
    brought together by :meth:`join` in the order of the maps. Truths are then masks or boxes.
    """

    def __init__(
        self, maps: Maps, truths: Truths, policies: Policies, on_progress: OnProgress, *, short: bool | None = None
    ) -> None:
        self._maps, self._truths, self._policies, self._on_progress = maps, truths, policies, on_progress
        paths = (maps.paths() if short is None else None) or []
        if short is None:
            fixed = [*(truths.paths() if truths.is_fixed else ()), *(paths if maps.is_fixed else ())]
            has_folders = any("/" in path for path in fixed)
            short = not has_folders and short_names([paths, truths.paths()], policies.separator)
        self.short = short
        """Whether maps and truths are called by the last part of their paths."""
        maps.name(short)
        truths.name(short, policies.separator)
        self._total = len(paths)
        self._waiting: dict[_Key, list[_Waiting]] = {}
        self._own = Shard()
        self._points = FixationPool(truths, policies.separator) if truths.kind == "points" else None
        self._pool = truths.pool(policies)
        self._twins: set[str] = set()
        """Maps of twins that came."""

    def gather(self) -> None:
        """Take all maps; most are scored, some wait for others of their size."""
        if self._truths.unusable and self._policies.broken == "stop":
            first = self._truths.unusable[0]
            raise DataError(
                f"{self._truths.where}: {len(self._truths.unusable)} rows cannot be used, the first: {first}; fix "
                "it, or leave such rows out and count them with `broken=skip`"
            )
        scene_by_scene = () if self._pool is None else self._truths.wanted
        for done, (name, found) in enumerate(self._maps.each(scene_by_scene)):
            self._on_progress("scoring maps", done, self._total)
            self._take(name, found)

    def shard(self) -> Shard:
        """What was gathered, for another to :meth:`join`."""
        self._score_waiting()
        return self._own

    def join(self, later: Shard) -> None:
        """Add what was gathered elsewhere of the maps behind these."""
        for name in later.seen:
            self._see(name)
        if later.names and later.has_objects is not None:
            self._set_objects(later.names[0], later.has_objects)
        numbers = [self._own.pictures.setdefault(picture, len(self._own.pictures)) for picture in later.pictures]
        later.scorer.renumber(torch.tensor(numbers, dtype=torch.int64))
        self._own.scorer.join(later.scorer)
        self._own.names += later.names
        self._own.found |= later.found
        self._own.notes |= later.notes
        self._own.donors = [*self._own.donors, *later.donors][-_DONORS:]
        for reason, names in later.left_out.items():
            self._own.left_out[reason] += names
        for reason, count in later.counts.items():
            self._own.counts[reason] += count

    def finish(self) -> ScoreResult:
        """What was found of all."""
        if not self._own.seen:
            raise DataError(f"{self._maps.where}: no maps; looked for .npy .npz .png .tif .h5 and records")
        if not self._own.found:
            one, other = next(iter(self._own.seen)), next(iter(self._truths.names), "nothing")
            raise DataError(
                f"no map has a truth: maps have names such as '{one}', truths such as '{other}'; give both the "
                "same names, or give the text between picture and question with `separator`"
            )
        self._add_missing()
        self._score_waiting()
        found = self._scored()
        if not found.counts["scored"]:
            raise DataError(f"{self._maps.where}: no map could be scored: {found.counted()}")
        return found

    def _take(self, name: str, map: Tensor | SaccadeError) -> None:
        """Find the truth of a map, apply the policies, and let it wait for others of its size."""
        own = self._own
        self._see(name)
        pool = self._pool if self._pool is not None and self._pool.is_twin(name) else None
        truth = name if pool is not None else truth_for(name, self._truths.names, self._policies.separator)
        if truth is None:
            if isinstance(map, SaccadeError):  # nobody can say what it would have been
                own.notes[name] = str(map)
            own.left_out["broken" if isinstance(map, SaccadeError) else "extra"].append(name)
            return
        (own.found if pool is None else self._twins).add(truth)
        try:
            usable = self._usable(name, map)
            if usable is not None and pool is not None:
                self._check_size(name, usable, pool.shown)
                pool.add(name, usable)
            elif usable is not None:
                self._wait(name, truth, usable)
        except SaccadeError as error:
            if self._policies.broken == "stop":
                cure = "" if "`" in str(error) else "; `broken=skip` leaves such maps out and counts them"
                raise DataError(f"{error}{cure}") from error
            own.left_out["broken"].append(name)
            own.notes[name] = str(error)

    def _see(self, name: str) -> None:
        if name in self._own.seen:
            raise DataError(f"two maps are called '{name}'; give each its own name")
        self._own.seen[name] = len(self._own.seen)

    def _set_objects(self, name: str, has_objects: bool) -> None:
        if self._own.has_objects not in (None, has_objects):
            raise DataError(
                f"'{name}': some maps are about a picture and some about one of its labels; score them apart"
            )
        self._own.has_objects = has_objects

    def _usable(self, name: str, map: Tensor | SaccadeError) -> Tensor | None:
        """The map with the policies for NaN and signs applied; None where it is left out."""
        if isinstance(map, SaccadeError):
            raise map
        if not bool(map.isfinite().all()):
            if self._policies.nan == "stop":
                raise DataError(f"'{name}': holds NaN or infinity; `nan=skip` leaves it out, `nan=zero` makes it 0")
            if self._policies.nan == "skip":
                self._own.left_out["nan"].append(name)
                return None
            map = map.nan_to_num(0.0, 0.0, 0.0)
        if self._policies.signed == "abs":
            return map.abs()
        if self._policies.signed == "positive":
            return map.clamp(min=0)
        if self._points is None and bool((map < 0).any()):
            raise DataError(
                f"'{name}': has negative values, so shares of it are not defined; `signed=abs` takes absolute "
                "values, `signed=positive` sets negative values to 0"
            )
        return map

    def _check_size(self, name: str, found: Tensor, shown: Size) -> None:
        if tuple(found.shape) != shown and self._policies.resize == "never":
            raise DataError(
                f"'{name}': a map of {found.shape[0]}×{found.shape[1]} and a truth of {shown[0]}×{shown[1]} pixels; "
                "`resize=truth` lays the map over the picture"
            )

    def _wait(self, name: str, truth: str, map: Tensor) -> None:
        """Keep a map until others of its size fill a batch; score the largest batches where too many wait."""
        own = map.clone()  # a stream may use one array for all of its maps
        size, picture = (own.shape[0], own.shape[1]), self._picture(name)
        if picture not in dict(self._own.donors):  # later ones take the place of earlier ones
            self._own.donors = [*self._own.donors[-_DONORS + 1 :], (picture, own)]
        mask = objects = None
        if self._points is None:
            mask, objects = self._truths.evidence(truth, size)
            mask, objects = mask.to(own.device), None if objects is None else objects.to(own.device)
            self._set_objects(name, objects is not None)
        shown = self._truths.points(truth).size or size if mask is None else (mask.shape[0], mask.shape[1])
        self._check_size(name, own, shown)
        if self._pool is not None and name in self._own.seen:  # else it stands for a missing one
            self._pool.add(truth, own)
        key = (size, shown, own.dtype, own.device)
        waiting = self._waiting.setdefault(key, [])
        waiting.append(_Waiting(name, truth, own, mask, objects))
        if len(waiting) >= _AT_ONCE or len(waiting) * math.prod(shown) >= _PIXELS_AT_ONCE:
            self._score(key)
        while sum(math.prod(each[1]) * len(maps) for each, maps in self._waiting.items()) > _PIXELS_WAITING:
            self._score(max(self._waiting, key=lambda key: len(self._waiting[key])))

    def _score_waiting(self) -> None:
        for key in list(self._waiting):
            self._score(key)

    def _add_missing(self) -> None:
        missing = [name for name in self._truths.expected(self._own.found) if name not in self._own.found]
        of_twins = [] if self._pool is None else self._pool.missing(self._twins)
        if self._pool is not None:
            self._own.left_out["missing_twins"] = of_twins
        if (lacking := [*missing, *of_twins]) and self._policies.missing == "stop":
            raise DataError(
                f"{len(lacking)} truths have no map, the first: '{lacking[0]}'; `missing=skip` leaves them out and "
                "counts them, `missing=zero` counts each as a map of zeros"
            )
        self._own.left_out["missing"] = missing
        if self._policies.missing == "zero" and self._own.donors:
            for name in missing:
                self._wait(name, name, torch.zeros_like(self._own.donors[-1][1]))

    def _score(self, key: _Key) -> None:
        """Score maps that have waited."""
        waiting, (size, truth_size, _, _) = self._waiting.pop(key), key
        names, maps = [each.name for each in waiting], torch.stack([each.map for each in waiting])  # (B,h,w)
        numbers = [self._own.pictures.setdefault(self._picture(name), len(self._own.pictures)) for name in names]
        groups = torch.tensor(numbers)  # (B,)
        shown = size if self._policies.resize == "map" else truth_size
        laid, grids = laid_over(maps, shown)
        donors = self._stand_ins(names, groups, shown)
        self._own.names += names
        self._own.counts["zero"] += int((maps == 0).flatten(1).all(1).sum())
        self._own.counts["resized"] += 0 if laid is maps else len(maps)
        if self._points is not None:
            empty = self._points.add([each.truth for each in waiting], laid, shown, groups, grids, donors)
            self._count_empty(empty, names)
            return
        masks = torch.stack([each.mask for each in waiting if each.mask is not None])  # (B,H,W)
        of_objects = [each.objects for each in waiting if each.objects is not None]
        objects = torch.stack(of_objects) if of_objects else None
        if shown != truth_size:
            masks, objects = reduced(masks, shown), None if objects is None else reduced(objects, shown)
        self._count_empty(~masks.flatten(1).any(1), names)
        beside = {} if donors is None else {"shuffled": donors}
        if grids is None:  # on pixels the best map is the mask itself
            beside["grid_oracle"] = Baseline(masks.to(laid.dtype))
        self._own.scorer.add(laid, masks, groups=groups, objects=objects, grids=grids, beside=beside)

    def _stand_ins(self, names: Sequence[str], groups: Tensor, shown: Size) -> Baseline | None:
        """A map of another picture for each map of a batch that cannot exchange its own; None where it can."""
        if can_exchange(groups):
            return None
        chosen, known = [], []
        for at, name in enumerate(names):
            others = [found for picture, found in self._own.donors if picture != self._picture(name)]
            known.append(bool(others))
            donor = others[at % len(others)] if others else self._own.donors[0][1]
            chosen.append(laid_over(donor[None], shown)[0])
        return Baseline(torch.cat(chosen), torch.tensor(known)) if any(known) else None

    def _count_empty(self, empty: Tensor, names: Sequence[str]) -> None:
        if self._policies.empty == "stop" and bool(empty.any()):
            name = names[int(empty.nonzero()[0, 0])]
            raise DataError(f"the truth of '{name}' is empty; `empty=skip` leaves such maps out and counts them")
        self._own.counts["empty"] += int(empty.sum())

    def _picture(self, name: str) -> str:
        return picture_of(name, self._policies.separator)

    def _scored(self) -> ScoreResult:
        own, scorer = self._own, self._own.scorer if self._points is None else self._points.scorer
        came = sorted(range(len(own.names)), key=lambda at: own.seen.get(own.names[at], len(own.seen) + at))
        order = torch.tensor(came, dtype=torch.int64)  # (N,): as they came, not as they were scored
        names = tuple(own.names[at] for at in came)
        intervals, means = scorer.intervals(), scorer.total.means()
        if "pr_auc" in means:
            n = max((found.n for found in intervals.values()), default=0)
            pictures = max((found.images for found in intervals.values()), default=0)
            nan = float("nan")
            intervals["pr_auc"] = Interval(means["pr_auc"], nan, nan, n, pictures, len(names) - n)
        counts = {
            "maps": len(own.seen),
            "truths": len(self._truths.expected(own.found)),
            "scored": len(names) - own.counts["empty"],
            "pictures": len(own.pictures),
            **{reason: len(left) for reason, left in own.left_out.items()},
            **own.counts,
            "rows": len(self._truths.unusable),
            "ignored": self._maps.ignored,
            **({} if self._points is None else {"outside": self._points.outside}),
            **({} if self._pool is None else {"twins": len(self._twins), "unread": self._pool.unread}),
        }
        zeros = self._policies.missing == "zero"  # what is missing was scored
        return ScoreResult(
            kind=self._truths.kind,
            scores=intervals,
            baselines={name: held.means() for name, held in scorer.baselines.items()},
            names=names,
            pictures=tuple(map(self._picture, names)),
            values={name: values[order] for name, values in scorer.total.values().items()},
            left_out={
                reason: () if zeros and reason.startswith("missing") else tuple(left)
                for reason, left in own.left_out.items()
            },
            notes=own.notes,
            counts=counts,
            policies=self._policies,
            maps=self._maps.where,
            truth=self._truths.where,
            scene=None if self._pool is None else self._pool.finish(),
            sources=(self._maps, self._truths),
        )


class FixationPool:
    """The points of all pictures, those of each for the shuffled AUC, and the scores of maps against them."""

    def __init__(self, truths: Truths, separator: str) -> None:
        self.scorer = PointScorer()
        self.outside = 0
        """Points outside their picture."""
        self._truths, self._separator = truths, separator
        pictures = truths.expected(set())
        marks = [truths.points(name) for name in pictures]
        points = torch.cat([mark.at for mark in marks] or [torch.zeros(0, 2, dtype=torch.float64)])  # (M,2)
        picture = [number for number, mark in enumerate(marks) for _ in range(len(mark.at))]
        scale = torch.tensor([(1.0, 1.0) if (size := marks[at].size) is None else (size[1], size[0]) for at in picture])
        sized = torch.tensor([marks[at].size is not None for at in picture], dtype=torch.bool)  # (M,)
        chosen = torch.arange(len(points))
        if len(points) > MAX_OTHERS:
            chosen = torch.randperm(len(points), generator=torch.Generator().manual_seed(0))[:MAX_OTHERS].sort().values
        self._sized = sized[chosen]
        self._share = (points / scale.reshape(-1, 2))[chosen]
        """(M,2): of the picture, or in pixels where it has no size."""
        self._places: dict[str, list[int]] = {}
        for at, number in enumerate(chosen.tolist()):
            self._places.setdefault(pictures[picture[number]], []).append(at)

    def add(
        self, truths: list[str], maps: Tensor, shown: Size, groups: Tensor, grids: Grids | None, donors: Baseline | None
    ) -> Tensor:
        """Score maps (B,H,W) over pictures of size ``shown``; which have no point inside (B,) bool."""
        points = _padded([_scaled(self._truths.points(name), shown) for name in truths])  # (B,K,2)
        extent = torch.tensor([shown[1], shown[0]])
        inside = ((points >= 0) & (points < extent)).all(-1)  # (B,K)
        self.outside += int((~points.isnan().any(-1) & ~inside).sum())
        pool = torch.where(self._sized[:, None], self._share * extent, self._share)  # (M,2)
        pictures = [name if name in self._places else picture_of(name, self._separator) for name in truths]
        own = _padded([pool[self._places.get(picture, [])] for picture in pictures])  # (B,J,2)
        stand_in = None if donors is None else donors.maps
        self.scorer.add(maps, points, pool=pool, own=own, groups=groups, grids=grids, donors=stand_in)
        return ~inside.any(1)


def _scaled(points: Points, shown: Size) -> Tensor:
    if points.size is None or points.size == shown:
        return points.at
    return points.at * torch.tensor([shown[1] / points.size[1], shown[0] / points.size[0]], dtype=torch.float64)


def _padded(points: list[Tensor]) -> Tensor:
    """Lists of points (K,2) as one (B,K,2), NaN where there are fewer."""
    return torch.nn.utils.rnn.pad_sequence(
        [torch.cat([each.double(), torch.full((int(not len(each)), 2), torch.nan)]) for each in points],
        batch_first=True,
        padding_value=torch.nan,
    )
