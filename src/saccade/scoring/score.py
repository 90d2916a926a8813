"""Scores maps against their truth, one after the other, in memory that does not grow with their size.

Maps of one size whose truths have one size are gathered and scored together. What is kept of a map is its name and one
number for each score. Baselines are made on the same pixels or, for a map that is coarser than its truth, on the same
grid.

Axes: B maps of a batch, h and w cells of a map, H and W pixels of its truth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.data.maps.members import picture_of, short_names, truth_for
from saccade.errors import DataError, SaccadeError
from saccade.geometry import Size
from saccade.metrics.intervals import Interval
from saccade.metrics.maps.baselines import Grid, Grids
from saccade.metrics.maps.scorer import Baseline, MapScorer, can_exchange
from saccade.scoring.maps import AT_ONCE, Chunk, Maps
from saccade.scoring.points import FixationPool
from saccade.scoring.policies import Policies
from saccade.scoring.results import ScoreResult
from saccade.scoring.truths import Truths

if TYPE_CHECKING:
    from saccade.scoring.twins import TwinPool


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


@dataclass
class Waiting:
    """Maps of one size, with truths of one size, that were not scored yet."""

    names: list[str] = field(default_factory=list)
    truths: list[str] = field(default_factory=list)
    maps: list[Tensor] = field(default_factory=list)
    """(B,h,w) each."""
    masks: list[Tensor] = field(default_factory=list)
    """(B,H,W) each; none where truths are points."""
    objects: list[Tensor] = field(default_factory=list)


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


_PIXELS_AT_ONCE = 1 << 22
"""Most pixels of truths that are scored together."""
_PIXELS_WAITING = 1 << 25
"""Most pixels of truths whose maps wait for others of their size."""
_DONORS = 16
"""Maps that are kept to stand in for those of other pictures, where a batch has but one picture."""

_Key = tuple[object, ...]
OnProgress = Callable[[str, int, int], None]


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
        paths = maps.paths() if short is None else None
        if short is None:
            sides = [truths.paths()] if paths is None else [paths, truths.paths()]
            fixed = [*(truths.paths() if truths.is_fixed else ()), *((paths or ()) if maps.is_fixed else ())]
            short = short_names(sides, policies.separator) and not any("/" in path for path in fixed)
        self.short = short
        """Whether maps and truths are called by the last part of their paths."""
        maps.name(short)
        truths.name(short, policies.separator)
        self._total = 0 if paths is None else len(paths)
        self._waiting: dict[_Key, Waiting] = {}
        self._pixels = 0
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
        at_once = AT_ONCE if self._maps.is_stacked and self._truths.is_stacked else 1
        scene_by_scene = () if self._pool is None else self._truths.wanted
        for done, chunk in enumerate(self._maps.each(at_once, scene_by_scene)):
            self._on_progress("scoring maps", done * at_once, self._total)
            self._take(chunk)

    def shard(self) -> Shard:
        """What was gathered, for another to :meth:`join`."""
        for key in list(self._waiting):
            self._score(key)
        return self._own

    def join(self, later: Shard) -> None:
        """Add what was gathered elsewhere of the maps behind these."""
        for name in later.seen:
            self._see(name)
        if later.names:
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
        for key in list(self._waiting):
            self._score(key)
        found = self._scored()
        if not found.counts["scored"]:
            raise DataError(f"{self._maps.where}: no map could be scored: {found.counted()}")
        return found

    def _take(self, chunk: Chunk) -> None:
        """Find the truths of a chunk, apply the policies, and let it wait for others of its size."""
        for name in chunk.names:
            self._see(name)
        if (pool := self._pool) is not None and pool.is_twin(chunk.names[0]):
            self._guarded(chunk.names, lambda: self._take_twin(chunk, pool))
            return
        named = [truth_for(name, self._truths.names, self._policies.separator) for name in chunk.names]
        if isinstance(chunk.maps, SaccadeError) and named[0] is None:  # nobody can say what it would have been
            self._own.left_out["broken"] += chunk.names
            self._own.notes |= dict.fromkeys(chunk.names, str(chunk.maps))
            return
        self._own.left_out["extra"] += [name for name, truth in zip(chunk.names, named) if truth is None]
        rows = [at for at, truth in enumerate(named) if truth is not None]
        if not rows:
            return
        self._own.found |= {truth for truth in named if truth is not None}
        names = [chunk.names[at] for at in rows]

        def wait() -> None:
            maps = _readable(chunk)
            found = maps if len(rows) == len(chunk.names) else maps[torch.tensor(rows, device=maps.device)]
            self._wait(names, [str(named[at]) for at in rows], found)

        self._guarded(names, wait)

    def _set_objects(self, name: str, has_objects: bool | None) -> None:
        if has_objects is None:
            return
        if self._own.has_objects not in (None, has_objects):
            raise DataError(
                f"'{name}': some maps are about a picture and some about one of its labels; score them apart"
            )
        self._own.has_objects = has_objects

    def _see(self, name: str) -> None:
        if name in self._own.seen:
            raise DataError(f"two maps are called '{name}'; give each its own name")
        self._own.seen[name] = len(self._own.seen)

    def _take_twin(self, chunk: Chunk, pool: TwinPool) -> None:
        """Hand the map of a twin on, under the same policies; it is no truth by itself."""
        (name,) = chunk.names
        self._twins.add(name)
        maps, kept = self._finite(_readable(chunk), [name])
        if kept:
            self._check_size(name, (maps.shape[-2], maps.shape[-1]), pool.shown)
            pool.add(name, self._positive(maps, [name])[0])

    def _guarded(self, names: Sequence[str], take: Callable[[], None]) -> None:
        """Take maps; those that cannot be read stop all, or are left out."""
        try:
            take()
        except SaccadeError as error:
            if self._policies.broken == "stop":
                cure = "" if "`" in str(error) else "; `broken=skip` leaves such maps out and counts them"
                raise DataError(f"{error}{cure}") from error
            self._own.left_out["broken"] += names
            self._own.notes |= dict.fromkeys(names, str(error))

    def _check_size(self, name: str, size: Size, shown: Size) -> None:
        if size != shown and self._policies.resize == "never":
            raise DataError(
                f"'{name}': a map of {size[0]}×{size[1]} and a truth of {shown[0]}×{shown[1]} pixels; `resize=truth` "
                "lays the map over the picture"
            )

    def _wait(self, names: list[str], truths: list[str], maps: Tensor) -> None:
        maps, kept = self._finite(maps, names)
        names, truths = [names[at] for at in kept], [truths[at] for at in kept]
        if not names:
            return
        maps = self._positive(maps, names)
        self._hold_donor(names[0], maps[0])
        size = (maps.shape[-2], maps.shape[-1])
        masks = objects = None
        if self._points is None:
            masks, objects = self._truths.evidence(truths, size)
            shown = (masks.shape[-2], masks.shape[-1])
            self._set_objects(names[0], objects is not None)
        else:
            shown = self._points.size_of(truths[0]) or size
        self._check_size(names[0], size, shown)
        if self._pool is not None and names[0] in self._own.seen:  # else it stands for a missing one
            self._pool.add(truths[0], maps[0])
        key = (size, shown, maps.dtype, maps.device)
        held = self._waiting.setdefault(key, Waiting())
        held.names += names
        held.truths += truths
        held.maps.append(maps.clone())  # a stream may use one array for all of its maps
        if masks is not None:
            held.masks.append(masks.to(maps.device))
        if objects is not None:
            held.objects.append(objects.to(maps.device))
        pixels = shown[0] * shown[1]
        self._pixels += pixels * len(names)
        if len(held.names) >= AT_ONCE or len(held.names) * pixels >= _PIXELS_AT_ONCE:
            self._score(key)
        while self._pixels > _PIXELS_WAITING:
            self._score(max(self._waiting, key=lambda key: len(self._waiting[key].names)))

    def _finite(self, maps: Tensor, names: Sequence[str]) -> tuple[Tensor, list[int]]:
        """The maps that are finite, or made so, and their numbers."""
        finite = maps.isfinite()
        if bool(finite.all()):
            return maps, list(range(len(names)))
        whole = finite.flatten(1).all(1).tolist()
        broken = [name for name, is_whole in zip(names, whole) if not is_whole]
        if self._policies.nan == "stop":
            raise DataError(f"'{broken[0]}': holds NaN or infinity; `nan=skip` leaves it out, `nan=zero` makes it 0")
        self._own.left_out["nan"] += broken if self._policies.nan == "skip" else []
        if self._policies.nan == "zero":
            return torch.where(finite, maps, torch.zeros_like(maps)), list(range(len(names)))
        kept = [at for at, is_whole in enumerate(whole) if is_whole]
        return maps[torch.tensor(kept, dtype=torch.int64, device=maps.device)], kept

    def _positive(self, maps: Tensor, names: Sequence[str]) -> Tensor:
        if self._policies.signed == "abs":
            return maps.abs()
        if self._policies.signed == "positive":
            return maps.clamp(min=0)
        if self._points is None and bool((maps < 0).any()):
            at = int((maps < 0).flatten(1).any(1).nonzero()[0, 0])
            raise DataError(
                f"'{names[at]}': has negative values, so shares of it are not defined; `signed=abs` takes absolute "
                "values, `signed=positive` sets negative values to 0"
            )
        return maps

    def _hold_donor(self, name: str, found: Tensor) -> None:
        """Keep a map of this picture; later ones take the place of earlier ones in turn."""
        picture = self._picture(name)
        if not any(picture == held for held, _ in self._own.donors):
            self._own.donors = [*self._own.donors[-_DONORS + 1 :], (picture, found.clone())]

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
                self._wait([name], [name], torch.zeros_like(self._own.donors[-1][1])[None])

    def _score(self, key: _Key) -> None:
        """Score maps that have waited."""
        held = self._waiting.pop(key)
        maps = torch.cat(held.maps)  # (B,h,w)
        groups = torch.tensor([self._number(name) for name in held.names])  # (B,)
        size: Size = (maps.shape[-2], maps.shape[-1])
        self._own.names += held.names
        self._own.counts["zero"] += int((maps == 0).flatten(1).all(1).sum())
        to_map = self._policies.resize == "map"
        if self._points is not None:
            own = self._points.size_of(held.truths[0]) or size
            shown = size if to_map else own
            self._pixels -= own[0] * own[1] * len(maps)
            laid, grids = self._laid(maps, shown)
            empty = self._points.add(
                held.truths, laid, shown, groups, grids, self._stand_ins(held.names, groups, shown)
            )
            self._count_empty(empty, held.names)
            return
        masks, objects = torch.cat(held.masks), torch.cat(held.objects) if held.objects else None  # (B,H,W) each
        self._pixels -= masks.numel()
        if to_map:
            masks, objects = reduced(masks, size), None if objects is None else reduced(objects, size)
        shown = (masks.shape[-2], masks.shape[-1])
        self._count_empty(~masks.flatten(1).any(1), held.names)
        laid, grids = self._laid(maps, shown)
        donors = self._stand_ins(held.names, groups, shown)
        beside = {} if donors is None else {"shuffled": donors}
        if grids is None:  # on pixels the best map is the mask itself
            beside["grid_oracle"] = Baseline(masks.to(laid.dtype))
        self._own.scorer.add(laid, masks, groups=groups, objects=objects, grids=grids, beside=beside)

    def _laid(self, maps: Tensor, shown: Size) -> tuple[Tensor, Grids | None]:
        """Maps over pictures of that size, and the grid they were made on where it is coarser than pixels."""
        found = laid_over(maps, shown)
        self._own.counts["resized"] += 0 if found[0] is maps else len(maps)
        return found

    def _stand_ins(self, names: Sequence[str], groups: Tensor, shown: Size) -> Baseline | None:
        """A map of another picture for each map of a batch that cannot exchange its own; None where it can."""
        if can_exchange(groups):
            return None
        counted = self._own.counts["resized"]
        chosen, known = [], []
        for at, name in enumerate(names):
            others = [found for picture, found in self._own.donors if picture != self._picture(name)]
            known.append(bool(others))
            donor = others[at % len(others)] if others else self._own.donors[0][1]
            chosen.append(self._laid(donor[None], shown)[0])
        self._own.counts["resized"] = counted
        return Baseline(torch.cat(chosen), torch.tensor(known)) if any(known) else None

    def _count_empty(self, empty: Tensor, names: Sequence[str]) -> None:
        if not bool(empty.any()):
            return
        if self._policies.empty == "stop":
            name = names[int(empty.nonzero()[0, 0])]
            raise DataError(f"the truth of '{name}' is empty; `empty=skip` leaves such maps out and counts them")
        self._own.counts["empty"] += int(empty.sum())

    def _picture(self, name: str) -> str:
        return picture_of(name, self._policies.separator)

    def _number(self, name: str) -> int:
        return self._own.pictures.setdefault(self._picture(name), len(self._own.pictures))

    def _scored(self) -> ScoreResult:
        scorer = self._own.scorer if self._points is None else self._points.scorer
        came = sorted(
            range(len(self._own.names)),
            key=lambda at: self._own.seen.get(self._own.names[at], len(self._own.seen) + at),
        )
        order = torch.tensor(came, dtype=torch.int64)  # (N,): as they came, not as they were scored
        names = tuple(self._own.names[at] for at in came)
        intervals = scorer.intervals()
        means = scorer.total.means()
        if "pr_auc" in means:
            n = max((found.n for found in intervals.values()), default=0)
            pictures = max((found.images for found in intervals.values()), default=0)
            nan = float("nan")
            intervals["pr_auc"] = Interval(means["pr_auc"], nan, nan, n, pictures, len(self._own.names) - n)
        counts = {
            "maps": len(self._own.seen),
            "truths": len(self._truths.expected(self._own.found)),
            "scored": len(self._own.names) - self._own.counts["empty"],
            "pictures": len(self._own.pictures),
            **{reason: len(names) for reason, names in self._own.left_out.items()},
            **self._own.counts,
            "rows": len(self._truths.unusable),
            "ignored": self._maps.ignored,
            **({} if self._points is None else {"outside": self._points.outside}),
            **({} if self._pool is None else {"twins": len(self._twins), "unread": self._pool.unread}),
        }
        left_out = {reason: tuple(names) for reason, names in self._own.left_out.items()}
        if self._policies.missing == "zero":
            left_out |= {reason: () for reason in left_out if reason.startswith("missing")}  # they were scored
        return ScoreResult(
            kind=self._truths.kind,
            scores=intervals,
            baselines={name: held.means() for name, held in scorer.baselines.items()},
            names=names,
            pictures=tuple(self._picture(name) for name in names),
            values={name: values[order] for name, values in scorer.total.values().items()},
            left_out=left_out,
            notes=self._own.notes,
            counts=counts,
            policies=self._policies,
            maps=self._maps.where,
            truth=self._truths.where,
            scene=None if self._pool is None else self._pool.finish(),
            sources=(self._maps, self._truths),
        )


def _readable(chunk: Chunk) -> Tensor:
    """The maps (B,h,w) of a chunk, or the error that reading them made."""
    if isinstance(chunk.maps, SaccadeError):
        raise chunk.maps
    return chunk.maps
