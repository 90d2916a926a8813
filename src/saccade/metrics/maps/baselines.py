"""Maps that a model is compared with, laid over the picture by the same projection as the model's own.

What each says:

* ``uniform``: looking nowhere in particular scores this;
* ``centre_gaussian``: knowing only that pictures are composed around their middle;
* ``shuffled``: the model's own habit, without the picture at hand;
* ``all_objects``: finding every object without reading the question, on the model's grid;
* ``all_objects_exact``: the same from a perfect segmenter, to the pixel;
* ``grid_oracle``: the most that any weights ≥ 0 on the model's grids can reach in true-positive strength.

These functions are about one grid. :class:`saccade.metrics.maps.grids.Grids` makes them on every grid of a model and
combines them as the model combines its maps.

A ``frame`` goes from the cells of a grid (h, w) to the pixels of the picture that is scored, (2,3) or (B,2,3): a look's
frame composed with the trace's canvas. Without such a frame a coarse grid would be compared with a fine one.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade import geometry
from saccade.errors import ConfigError, DataError, ShapeError
from saccade.geometry import Size
from saccade.metrics.maps.values import check_mask


def uniform(frame: Tensor, grid: Size, size: Size, *, pictures: int = 1) -> Tensor:
    """The same weight on every cell: (pictures,H,W), on the frame's device."""
    return _lay(torch.ones(1, *grid, device=frame.device), frame, size, pictures)


def centre_gaussian(frame: Tensor, grid: Size, size: Size, *, pictures: int = 1, sigma: float = 0.25) -> Tensor:
    """A Gaussian of the cell centres' distance from the picture's centre: (pictures,H,W), on the frame's device.

    Args:
        frame: cells → pixels of the picture.
        grid: (h, w) of the cells.
        size: (H, W) of the picture.
        pictures: how many maps.
        sigma: standard deviation as a share of the picture's width (along x) and height (along y).
    """
    if not sigma > 0:
        raise ConfigError(f"centre_gaussian: sigma must be above 0, found {sigma:g}")
    rows, columns = (torch.arange(cells, dtype=torch.float64, device=frame.device) + 0.5 for cells in grid)
    centres = torch.stack(torch.meshgrid(columns, rows, indexing="xy"), dim=-1)  # (h,w,2) as (x, y)
    at = geometry.apply(frame.unsqueeze(-3).unsqueeze(-3), centres)  # ([B,]h,w,2) in pixels
    extent = torch.tensor([size[1], size[0]], dtype=torch.float64, device=frame.device)
    distance = (at / extent - 0.5) / sigma  # in standard deviations
    weights = torch.exp(-0.5 * distance.square().sum(-1)).float()  # ([B,]h,w)
    return _lay(weights.reshape(-1, *grid), frame, size, pictures)


def derangement(images: Tensor, *, seed: int = 0) -> Tensor:
    """A fixed permutation (N,) that gives every example the place of one with another image.

    Examples are laid out image by image, in random order, and moved on by the size of the largest group: no group is
    longer than that step, so no example gets a map of its own image. With all images different it is a random cycle.

    Args:
        images: id of each example's image, (N,).
        seed: the same ids and seed give the same permutation.
    """
    if images.dim() != 1:
        raise ShapeError("images", "(N,)", images.shape)
    count = len(images)
    if count == 0:
        return torch.zeros(0, dtype=torch.int64)
    found, image = torch.unique(images.cpu(), return_inverse=True)  # (G,), (N,)
    step = int(torch.bincount(image).max())
    if 2 * step > count:
        raise DataError(
            f"cannot shuffle: {step} of {count} examples share one image, at most half may; use a larger batch"
        )
    generator = torch.Generator().manual_seed(seed)
    mixed = torch.randperm(count, generator=generator)  # (N,)
    place = torch.randperm(len(found), generator=generator)[image[mixed]]  # (N,) of the image of each mixed example
    order = mixed[torch.argsort(place, stable=True)]  # (N,) examples, image by image
    source = torch.empty_like(order)
    source[order] = order.roll(-step)
    return source


def shuffled(maps: Tensor, images: Tensor | None = None, *, seed: int = 0) -> Tensor:
    """The model's own maps (B,H,W), each one taken from another picture by a fixed derangement.

    Args:
        maps: at picture resolution; all pictures have one size.
        images: id of each map's picture, (B,); None when all pictures differ. Two questions about one picture never
            exchange maps.
        seed: of the derangement.
    """
    if images is not None and images.shape != maps.shape[:1]:
        raise ShapeError("images", f"({len(maps)},)", images.shape)
    ids = torch.arange(len(maps)) if images is None else images
    return maps[derangement(ids, seed=seed).to(maps.device)]


def all_objects(objects: Tensor, frame: Tensor, grid: Size) -> Tensor:
    """Each cell weighted by the share of all objects' pixels that it sees through the projection: (B,H,W).

    The weights of a picture with objects sum to 1. Through a coarse grid this is a blurred mask; compare it with
    :func:`all_objects_exact`.
    """
    check_mask(objects, "objects")
    size = (objects.shape[1], objects.shape[2])
    pixels = objects.sum(dim=(-2, -1)).clamp(min=1).float()  # (B,)
    weights = seen_by_cells(objects, frame, grid) / pixels[:, None, None]  # (B,h,w)
    return geometry.project(weights, frame, size)


def all_objects_exact(objects: Tensor) -> Tensor:
    """The mask of all objects itself, as a map (B,H,W): what a perfect segmenter gets without the question."""
    check_mask(objects, "objects")
    return objects.float()


def grid_oracle(evidence: Tensor, frame: Tensor, grid: Size) -> Tensor:
    """The map (B,H,W) of the single cell with the highest true-positive strength for each picture.

    True-positive strength is a ratio of two linear functions of the weights, Σ wᵢ·nᵢ / Σ wᵢ·dᵢ, and a ratio of sums
    never exceeds the largest ratio of its parts: no mixture of cells beats the best single one. So this is the exact
    bound of one grid for that score (not for the others); see :mod:`saccade.metrics.maps.bounds` for a product of
    grids. Where evidence is empty the cell is arbitrary, as the score is undefined.

    Args:
        evidence: (B,H,W) bool.
        frame: cells → pixels of the picture.
        grid: (h, w) of the cells.
    """
    check_mask(evidence, "evidence")
    size = (evidence.shape[1], evidence.shape[2])
    everywhere = evidence.new_ones(1 if frame.dim() == 2 else len(frame), *size)
    on_evidence = seen_by_cells(evidence, frame, grid)  # (B,h,w): nᵢ
    footprint = seen_by_cells(everywhere, frame, grid)  # (B|1,h,w): dᵢ
    strength = torch.where(footprint > 0, on_evidence / footprint, -1.0)  # a cell may lie outside the picture
    best = strength.flatten(1).argmax(1)  # (B,)
    weights = torch.unflatten(F.one_hot(best, grid[0] * grid[1]).float(), 1, grid)  # (B,h,w)
    return geometry.project(weights, frame, size)


def seen_by_cells(mask: Tensor, frame: Tensor, grid: Size) -> Tensor:
    """How many pixels of ``mask`` (B,H,W) each cell sees through the projection: (B,h,w).

    This is the transpose of :func:`geometry.project`: of upright grids two small products. For frames that turn,
    projection being linear, autograd gives its transpose exactly, at the cost of one projection.
    """
    if frame.dim() == 3 and len(frame) != len(mask):
        raise ShapeError("frame", f"(2,3) or ({len(mask)},2,3)", frame.shape)
    size = (mask.shape[1], mask.shape[2])
    if frame.dim() == 2 and (along := geometry.cell_profiles(frame.to(mask.device), grid, size)) is not None:
        rows, columns = along  # (h,H), (w,W)
        return (rows @ mask.to(rows) @ columns.T).float()
    with torch.inference_mode(False), torch.enable_grad():
        weights = torch.zeros(len(mask), *grid, device=mask.device, requires_grad=True)  # (B,h,w)
        laid = geometry.project(weights, frame.detach().clone(), size)  # (B,H,W)
        (seen,) = torch.autograd.grad(laid, weights, grad_outputs=mask.to(laid))
    return seen


def _lay(weights: Tensor, frame: Tensor, size: Size, pictures: int) -> Tensor:
    """Project weights (1|B,h,w) and repeat a shared result for all pictures, without a copy."""
    if frame.dim() == 3 and len(frame) != pictures:
        raise ShapeError("frame", f"(2,3) or ({pictures},2,3)", frame.shape)
    if frame.dim() == 3:
        weights = weights.expand(pictures, -1, -1)  # (B,h,w)
    return geometry.project(weights, frame, size).expand(pictures, -1, -1)  # (B,H,W)
