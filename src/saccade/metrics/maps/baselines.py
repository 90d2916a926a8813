"""Maps to compare with, made on the grids of a model, and the best map that these grids allow.

* ``uniform``: the same weight everywhere;
* ``centre_gaussian``: the middle of the picture;
* ``shuffled``: the model's maps of other pictures;
* ``all_objects``: every object, on the model's grid;
* ``all_objects_exact``: the same to the pixel;
* ``grid_oracle``: the most that any weights ≥ 0 on the model's grids can reach in true-positive strength.

All go through the same projection as the model's own maps. A ``frame`` leads from the cells of a grid (h, w) to the
pixels of the picture that is scored, (2,3) or (B,2,3): a look's frame composed with the trace's canvas. A model's map
can pass through several grids, as the total of progressive attention is the product of one map for each stage.
:class:`Grids` then makes a baseline on each grid and combines the results as the model does.

**The bound of a product of grids** is exact. The map is ``Πₖ Σ_c w_kc · h_kc(x)`` with weights ≥ 0 and the projected
cells ``h_kc``. With all grids fixed but one, true-positive strength is a ratio of two linear functions of that grid's
weights, and a ratio of sums never exceeds the largest ratio of its parts: the best single cell does at least as well.
This holds for each grid in turn, so some choice of *one cell on each grid* reaches the most that any weights can, and
all choices are tried. A projected cell is a profile over rows times one over columns, and cells that do not overlap
give an empty product: a few hundred profiles are left on each axis, and two matrix products try them all.

Axes: B pictures, H and W pixels, P profiles over rows, Q profiles over columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial, reduce
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.geometry import Size
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.trace import COMBINE, AttentionTrace, Total


def uniform(frame: Tensor, grid: Size, size: Size, *, pictures: int = 1) -> Tensor:
    """The same weight on every cell: (pictures,H,W), on the frame's device."""
    return _lay(torch.ones(1, *grid, device=frame.device), frame, size, pictures)


SIGMA = 0.25
"""Standard deviation of ``centre_gaussian``, as a share of the picture's width and height."""


def centre_gaussian(frame: Tensor, grid: Size, size: Size, *, pictures: int = 1) -> Tensor:
    """A Gaussian around the picture's centre: (pictures,H,W), on the frame's device."""
    rows, columns = (torch.arange(cells, dtype=torch.float64, device=frame.device) + 0.5 for cells in grid)
    centres = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)  # (h,w,2) as (x, y)
    at = geometry.apply(frame.unsqueeze(-3).unsqueeze(-3), centres)  # ([B,]h,w,2) in pixels
    extent = torch.tensor([size[1], size[0]], dtype=torch.float64, device=frame.device)
    distance = (at / extent - 0.5) / SIGMA  # in standard deviations
    weights = torch.exp(-0.5 * distance.square().sum(-1)).float()  # ([B,]h,w)
    return _lay(weights.reshape(-1, *grid), frame, size, pictures)


BLIND_MAPS = {"uniform": uniform, "centre_gaussian": centre_gaussian}
"""Maps that need only the grids."""
EXCHANGES = 8
"""Permutations for ``shuffled``; scores are averaged, as a single one depends on its seed."""


def can_exchange(groups: Tensor) -> bool:
    """Whether maps can be exchanged between pictures (N,): no more than half are about one picture."""
    return len(groups) > 0 and 2 * int(torch.unique(groups, return_counts=True)[1].max()) <= len(groups)


def derangement(images: Tensor, *, seed: int = 0) -> Tensor:
    """A permutation (N,) that maps every example to one of another of the ``images`` (N,), by ``seed``.

    Examples are laid out image by image, in random order, and shifted by the size of the largest group.
    """
    count = len(images)
    if count == 0:
        return torch.zeros(0, dtype=torch.int64)
    pictures, image = torch.unique(images.cpu(), return_inverse=True)  # (G,), (N,)
    step = int(torch.bincount(image).max())
    generator = torch.Generator().manual_seed(seed)
    mixed = torch.randperm(count, generator=generator)  # (N,)
    place = torch.randperm(len(pictures), generator=generator)[image[mixed]]  # (N,) of the image of each mixed example
    order = mixed[torch.argsort(place, stable=True)]  # (N,) examples, image by image
    source = torch.empty_like(order)
    source[order] = order.roll(-step)
    return source


def all_objects(objects: Tensor, frame: Tensor, grid: Size) -> Tensor:
    """Each cell weighted by its share of all objects' pixels: (B,H,W)."""
    size = (objects.shape[1], objects.shape[2])
    pixels = objects.sum(dim=(-2, -1)).clamp(min=1).float()  # (B,)
    weights = seen_by_cells(objects, frame, grid) / pixels[:, None, None]  # (B,h,w)
    return geometry.project(weights, frame, size)


def grid_oracle(evidence: Tensor, frame: Tensor, grid: Size) -> Tensor:
    """The map (B,H,W) of the single cell with the highest true-positive strength for each picture.

    This is the exact bound of one grid for that score, see the module. If evidence is empty, the cell is arbitrary.
    """
    size = (evidence.shape[1], evidence.shape[2])
    everywhere = evidence.new_ones(1 if frame.dim() == 2 else len(frame), *size)
    on_evidence = seen_by_cells(evidence, frame, grid)  # (B,h,w): nᵢ
    footprint = seen_by_cells(everywhere, frame, grid)  # (B|1,h,w): dᵢ
    strength = torch.where(footprint > 0, on_evidence / footprint, -1.0)  # a cell may lie outside the picture
    best = strength.flatten(1).argmax(1)  # (B,)
    weights = torch.unflatten(F.one_hot(best, grid[0] * grid[1]).float(), 1, grid)  # (B,h,w)
    return geometry.project(weights, frame, size)


def seen_by_cells(mask: Tensor, frame: Tensor, grid: Size) -> Tensor:
    """The pixels of ``mask`` (B,H,W) that each cell sees, (B,h,w): the transpose of :func:`geometry.project`."""
    size = (mask.shape[1], mask.shape[2])
    if frame.dim() == 2 and (along := geometry.cell_profiles(frame.to(mask.device), grid, size)) is not None:
        rows, columns = along  # (h,H), (w,W)
        return (rows @ mask.to(rows) @ columns.T).float()
    with torch.inference_mode(False), torch.enable_grad():
        weights = torch.zeros(len(mask), *grid, device=mask.device, requires_grad=True)  # (B,h,w)
        laid = geometry.project(weights, frame.detach().clone(), size)  # (B,H,W)
        (per_cell,) = torch.autograd.grad(laid, weights, grad_outputs=mask.to(laid))
    return per_cell


def _lay(weights: Tensor, frame: Tensor, size: Size, pictures: int) -> Tensor:
    if frame.dim() == 3:
        weights = weights.expand(pictures, -1, -1)  # (B,h,w)
    return geometry.project(weights, frame, size).expand(pictures, -1, -1)  # (B,H,W)


MAX_PROFILES = 4096
"""Most profiles on an axis; with more there is no bound."""
MAX_OVERLAP = 256
"""Most cells of a further grid tried with each profile, before those that do not overlap are dropped."""
_CELLS_AT_ONCE = 16_000_000  # strengths held in memory together


def best_cells(evidence: Tensor, frames: Sequence[Tensor], cells: Sequence[Size]) -> Tensor | None:
    """The map (B,H,W) of the cells, one on each grid, whose product has the highest true-positive strength.

    None if a frame turns or shears, or with more than :data:`MAX_PROFILES` profiles on an axis. If evidence is empty,
    the cells are arbitrary.
    """
    if all(frame.dim() == 2 for frame in frames):
        return _on_shared_frames(evidence, frames, cells)
    maps = []
    for number in range(len(evidence)):
        picture_frames = [frame[number] if frame.dim() == 3 else frame for frame in frames]
        laid = _on_shared_frames(evidence[number : number + 1], picture_frames, cells)
        if laid is None:
            return None
        maps.append(laid)
    return torch.cat(maps)


def _on_shared_frames(evidence: Tensor, frames: Sequence[Tensor], cells: Sequence[Size]) -> Tensor | None:
    """:func:`best_cells` of frames (2,3)."""
    size = (evidence.shape[1], evidence.shape[2])
    places = tuple(tuple(frame.double().flatten().tolist()) for frame in frames)
    profiles = _profiles(places, tuple(cells), size, (MAX_PROFILES, MAX_OVERLAP), evidence.device)
    if profiles is None:
        return None
    rows, columns = profiles  # (P,H), (Q,W)
    at_once = max(1, _CELLS_AT_ONCE // (len(rows) * len(columns)))
    strengths = (
        rows @ part.to(rows) @ columns.T for part in torch.split(evidence, at_once)
    )  # (b,P,Q): profiles sum to 1
    chosen = torch.cat([strength.flatten(1).argmax(1) for strength in strengths])  # (B,)
    row, column = rows[chosen // len(columns)], columns[chosen % len(columns)]  # (B,H), (B,W)
    return (row.unsqueeze(-1) * column.unsqueeze(-2)).float()  # (B,H,W)


@lru_cache(maxsize=16)
def _profiles(
    frames: tuple[tuple[float, ...], ...],
    cells: tuple[Size, ...],
    size: Size,
    most: tuple[int, int],
    device: torch.device,
) -> tuple[Tensor, Tensor] | None:
    """The profiles of these grids over rows (P,H) and columns (Q,W); cached, as every batch has the same."""
    placed = [torch.tensor(frame, dtype=torch.float64).view(2, 3) for frame in frames]
    along = [geometry.cell_profiles(frame, grid, size) for frame, grid in zip(placed, cells)]
    upright = [pair for pair in along if pair is not None]
    if len(upright) < len(along):
        return None
    rows, columns = (_products([pair[axis].to(device) for pair in upright], *most) for axis in (0, 1))  # (P,H), (Q,W)
    return None if rows is None or columns is None else (rows, columns)


def _products(profiles: Sequence[Tensor], most: int, overlap: int) -> Tensor | None:
    """Every distinct non-zero product of one profile of each grid (c,H), summing to 1: (P,H) in float64."""
    products = profiles[0].new_ones(1, profiles[0].shape[1])
    for profile in profiles:
        if len(products) * len(profile) > most * overlap:
            return None
        products = (products.unsqueeze(1) * profile).flatten(0, 1)  # (P·c,H)
        products = products[products.sum(1) > 0]
        products = torch.unique(products / products.sum(1, keepdim=True), dim=0)  # (P,H)
    return products if len(products) <= most else None


class Grid(NamedTuple):
    """Cells laid over a picture."""

    frame: Tensor
    """(2,3) or (B,2,3): cells → pixels of the picture that is scored."""
    cells: Size
    """(h, w)."""


@dataclass(frozen=True)
class Grids:
    """All grids of one map, and how maps on them combine."""

    grids: tuple[Grid, ...]
    total: Total = "last"
    has_crops: bool = False
    """Whether the map includes a crop: then there is no bound."""

    @classmethod
    def pixels(cls, size: Size) -> Grids:
        """A single grid of the pixels of a picture of ``size`` (H, W)."""
        return cls((Grid(geometry.identity(), size),))

    @property
    def is_shared(self) -> bool:
        """Whether all pictures have the same grids, so that blind maps are made once."""
        return all(frame.dim() == 2 for frame, _ in self._used())

    def through(self, make: Callable[[Tensor, Size], Tensor]) -> Tensor:
        """The combined map (B,H,W) of what ``make(frame, cells)`` lays over the picture, grid by grid."""
        maps = [make(frame, cells) for frame, cells in self._used()]
        if len(maps) == 1:
            return maps[0]
        combined = reduce(COMBINE[self.total][0], maps)
        return combined / len(maps) if self.total == "mean" else combined

    def blind(self, lay: Callable[..., Tensor], size: Size, pictures: int) -> Tensor:
        """A map of :data:`BLIND_MAPS`: (1,H,W) if all pictures share the grids, else (pictures,H,W)."""
        return self.through(partial(lay, size=size, pictures=1 if self.is_shared else pictures))

    def oracle(self, evidence: Tensor) -> Tensor | None:
        """The map (B,H,W) with the highest true-positive strength that weights ≥ 0 on these grids can have.

        For one grid, or the last one, its best single cell (:func:`grid_oracle`); for a mean the best single cell of
        all grids, as a mean never exceeds its best part; for a product :func:`best_cells`. None if no such map is
        known: a crop is part of the map, a product has frames that turn, or grids overlap in too many ways.
        """
        used = self._used()
        if self.has_crops:
            return None
        if not len(evidence):
            return evidence.float()
        if self.total == "product" and len(used) > 1:
            return best_cells(evidence, [frame for frame, _ in used], [cells for _, cells in used])
        best = grid_oracle(evidence, *used[0])  # (B,H,W)
        for frame, cells in used[1:]:
            other = grid_oracle(evidence, frame, cells)
            is_better = true_positive_strength(other, evidence) > true_positive_strength(best, evidence)  # (B,)
            best = torch.where(is_better[:, None, None], other, best)
        return best

    def at(self, rows: Tensor) -> Grids:
        """The grids of the examples ``rows`` (N,) of the batch."""
        return replace(self, grids=tuple(
            grid._replace(frame=grid.frame[rows.to(grid.frame.device)]) if grid.frame.dim() == 3 else grid
            for grid in self.grids
        ))  # fmt: skip

    def to(self, device: torch.device) -> Grids:
        """On another device."""
        return replace(self, grids=tuple(grid._replace(frame=grid.frame.to(device)) for grid in self.grids))

    def _used(self) -> tuple[Grid, ...]:
        return self.grids[-1:] if self.total == "last" else self.grids


def grids_of(trace: AttentionTrace, size: Size) -> Grids | None:
    """The grids of all looks in the total, on the picture shown at ``size``; None for crops alone.

    A look with steps counts once per step, as in the total; parts of a mean on one grid count once.
    """
    looks = trace.looks_of_total[-1:] if trace.total == "last" else trace.looks_of_total
    grids: list[Grid] = []
    for look in looks:
        if look.weights is not None:
            frame = trace.frame_on(look, size).to(look.weights.device)
            if frame.dim() == 3 and len(frame) and bool((frame == frame[:1]).all()):
                frame = frame[0]  # a baseline is then laid out once for all pictures
            grids += [Grid(frame, (look.weights.shape[-2], look.weights.shape[-1]))] * look.steps
    if not grids:
        return None
    first = grids[0]
    if trace.total != "product" and all(
        other.cells == first.cells and torch.equal(other.frame, first.frame) for other in grids
    ):
        grids = [first]
    return Grids(tuple(grids), trace.total, has_crops=any(look.weights is None for look in looks))
