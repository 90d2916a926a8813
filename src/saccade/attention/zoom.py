"""Zoom: propose a square region, cut it out with a soft boxcar mask, and read it larger; crops can be nested.

Paper: Fu et al., "Look Closer to See Better: Recurrent Attention Convolutional Neural Network", CVPR 2017 (RA-CNN).

========  =====================================================================  ==============================
Eq. (2)   [t_x, t_y, t_l] = g(features): centre and half side of the region      :class:`AttentionProposal`
Eq. (3)   corners t_x ± t_l, t_y ± t_l                                           :func:`box_theta`
Eq. (4)   X_att = X ⊙ M(t_x, t_y, t_l)                                           :func:`apn_crop`
Eq. (5)   M = [h(x−x_0) − h(x−x_1)] · [h(y−y_0) − h(y−y_1)]                      :func:`mask_in_crop`
Eq. (6)   h(z) = 1 / (1 + e^(−kz))                                               :func:`boxcar`
Eq. (7)   bilinear reading of the region at a fixed size                         :func:`apn_crop`
========  =====================================================================  ==============================

Boxes (…,3) are (t_x, t_y, t_l) in **shares of the parent's sides**: 0 and 1 are the outer edges of the outer pixels. A
region has the shape of its parent. It is legal if its side is ``smallest`` of the parent's or more and all of it lies
inside: smallest / 2 ≤ t_l ≤ ½ and t_l ≤ t_x, t_y ≤ 1 − t_l. ``smallest`` is ⅓ here; public ports, which compare t_l
itself with a third of the side, never go below ⅔.

**Nesting.** θ (B,2,3) of a region takes normalised points of the crop to normalised points of the picture. Regions
compose (:func:`nested`), and every crop is read from the picture itself, without the blur of another crop.

Deviations from the paper: legal boxes by smooth functions of three numbers (:func:`legal_box`) instead of sigmoids that
may leave the picture; k counts in sides of the parent, not in pixels, where k = 10 is an almost hard edge. The mask is
taken at the points that are read, so in the crop it depends on t_l alone, and the centre is taught by the pixels under
the grid; the paper's gradient moves the mask over a fixed grid.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.geometry import Size

SMALLEST = 1 / 3  # side of the smallest region, as a share of its parent's
SHARPNESS = 40.0  # k: a logistic edge rises from 12 % to 88 % within a tenth of the parent's side


def legal_box(numbers: Tensor, smallest: float = SMALLEST) -> Tensor:
    """Any three numbers (…,3) → a legal box (…,3): t_l = lo + (½ − lo)·σ(·); t_x and t_y = t_l + (1 − 2 t_l)·σ(·).

    >>> legal_box(torch.zeros(3), smallest=0.5).tolist()
    [0.5, 0.5, 0.375]
    """
    shares = torch.sigmoid(numbers)  # (…,3)
    low = smallest / 2
    half = low + (0.5 - low) * shares[..., 2:]  # (…,1)
    return torch.cat([half + (1 - 2 * half) * shares[..., :2], half], dim=-1)


def clamped_box(box: Tensor, smallest: float = SMALLEST) -> Tensor:
    """The legal box (…,3) nearest to ``box``: the side first, then the centre."""
    half = box[..., 2:].clamp(smallest / 2, 0.5)  # (…,1)
    return torch.cat([torch.maximum(torch.minimum(box[..., :2], 1 - half), half), half], dim=-1)


def box_theta(box: Tensor) -> Tensor:
    """Eq. (3) as a map: box (…,3) → θ (…,2,3), normalised crop → normalised parent; side 2 t_l, centre 2 t − 1."""
    x, y, half = box.unbind(-1)
    zero = torch.zeros_like(x)
    rows = torch.stack([2 * half, zero, 2 * x - 1, zero, 2 * half, 2 * y - 1], dim=-1)
    return rows.reshape(*x.shape, 2, 3)


def theta_box(theta: Tensor) -> Tensor:
    """The inverse of :func:`box_theta`: upright windows (…,2,3) → (…,3); of an oblong one, half its mean side."""
    centre = (theta[..., 2] + 1) / 2  # (…,2)
    half = (theta[..., 0, :1] + theta[..., 1, 1:2]) / 4  # (…,1)
    return torch.cat([centre, half], dim=-1)


def nested(outer: Tensor, inner: Tensor) -> Tensor:
    """θ of a region of a region: ``inner`` (…,2,3) lies in the crop that ``outer`` (…,2,3) cuts out; never rounded."""
    with torch.autocast(outer.device.type, enabled=False):  # a product of matrices, which it would round
        return geometry.compose(outer, inner)


def boxcar(at: Tensor, low: Tensor, high: Tensor, sharpness: float = SHARPNESS) -> Tensor:
    """Eqs. (5, 6) along one axis: h(x − low) − h(x − high), nearly 1 between the two and ½ on the edges."""
    return torch.sigmoid(sharpness * (at - low)) - torch.sigmoid(sharpness * (at - high))


def mask_in_crop(half: Tensor, grid: Size, sharpness: float = SHARPNESS) -> Tensor:
    """Eq. (5) at the points that the crop reads: (B,) half sides t_l → the mask (B,h,w) over the cells of the crop."""
    side = 2 * half.unsqueeze(-1)  # (B,1)
    zero = torch.zeros_like(side)
    columns = boxcar(side * _centres(grid[1], half), zero, side, sharpness)  # (B,w)
    rows = boxcar(side * _centres(grid[0], half), zero, side, sharpness)  # (B,h)
    return rows.unsqueeze(-1) * columns.unsqueeze(-2)


def apn_crop(
    picture: Tensor, theta: Tensor, half: Tensor, grid: Size, sharpness: float = SHARPNESS
) -> tuple[Tensor, Tensor]:
    """Eqs. (4, 7): the window ``theta`` (B,2,3) of the picture (B,C,H,W), read at ``grid``: (B,C,h,w), and its mask.

    ``half`` (B,) is t_l in the region's own parent: it decides how wide the soft edge is in the crop. The points that
    are read keep the precision of the picture: rounded to bfloat16 they were off by up to 0.3 of 224 pixels.
    """
    with torch.autocast(picture.device.type, enabled=False):
        crop = geometry.sample_theta(picture, theta, grid)  # (B,C,h,w)
    return crop, mask_in_crop(half, grid, sharpness).to(picture.dtype)


class AttentionProposal(nn.Module):
    """Eq. (2): features (B,C,h,w) → a legal box (B,3), by two layers: flatten → linear → tanh → linear.

    It starts as the centred region of half the parent's side, whatever the features: the last layer has weights 0.

    >>> AttentionProposal(8, (3, 4), hidden=5)(torch.rand(1, 8, 3, 4)).tolist()
    [[0.5, 0.5, 0.25]]
    """

    def __init__(self, channels: int, grid: Size, *, hidden: int, smallest: float = SMALLEST) -> None:
        super().__init__()
        self.smallest = smallest
        self.meet = nn.Linear(channels * grid[0] * grid[1], hidden)
        self.propose = nn.Linear(hidden, 3)
        nn.init.zeros_(self.propose.weight)
        with torch.no_grad():
            self.propose.bias.copy_(torch.tensor([0.0, 0.0, start_number(smallest)]))

    def forward(self, features: Tensor) -> Tensor:
        """Box (B,3), computed in float32 or wider whatever the precision around it."""
        with torch.autocast(features.device.type, enabled=False):
            flat = features.flatten(1).to(self.meet.weight.dtype)  # (B,C·h·w)
            return legal_box(self.propose(torch.tanh(self.meet(flat))), self.smallest)


def start_number(smallest: float) -> float:
    """The number whose region has half the parent's side, or the nearest legal one that can still move."""
    low = smallest / 2
    share = min(max((0.25 - low) / (0.5 - low), 0.05), 0.95) if low < 0.5 else 0.5
    return math.log(share / (1 - share))


def strongest(response: Tensor) -> Tensor:
    """The centre (B,2), as (x, y) in cells, of the strongest cell of a map (B,h,w); of equal ones the first.

    >>> strongest(torch.tensor([[[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]])).tolist()
    [[3.5, 0.5]]
    """
    width = response.shape[-1]
    cell = response.flatten(1).argmax(1)  # (B,)
    return torch.stack([cell % width, cell // width], dim=-1).to(response.dtype) + 0.5


def responding_region(response: Tensor) -> Tensor:
    """The square (B,3) in which a map (B,h,w) responds, in shares of the map.

    Cells are weighted by how far they respond above the mean of the map. The centre is the centroid. The side is that
    of an even square which spreads as widely, on the axis that spreads more: √12 σ. A map of one value is the whole.

    Cells tile what was seen: a deep network responds to an object in the cell that covers it, wherever the receptive
    field of that cell is centred.

    >>> responding_region(torch.tensor([[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0]]])).tolist()
    [[0.75, 0.5, 0.5]]
    """
    above = (response - response.mean((1, 2), keepdim=True)).clamp(min=0)  # (B,h,w)
    flat = above.amax((1, 2), keepdim=True) <= 1e-6 * response.abs().amax((1, 2), keepdim=True)  # (B,1,1)
    above = torch.where(flat, torch.ones_like(above), above)
    above = above / above.sum((1, 2), keepdim=True)
    centres, variances = [], []
    for marginal in (above.sum(1), above.sum(2)):  # (B,w), (B,h)
        at = _centres(marginal.shape[1], marginal)
        centre = (marginal * at).sum(1)  # (B,); autocast would round a matrix product
        inside = 1 / (12 * marginal.shape[1] ** 2)  # variance within one cell
        variances.append((marginal * (at - centre.unsqueeze(1)).square()).sum(1) + inside)
        centres.append(centre)
    half = (3 * torch.maximum(*variances)).sqrt()  # (B,): √12 σ / 2
    return torch.stack([*centres, half], dim=-1)


class Downsample(nn.Module):
    """A smaller view of a picture: triangle filters as wide as the shrinking, as two matrix products.

    The same as ``interpolate(mode="bilinear", antialias=True)``, which not every exporter knows.

    >>> Downsample((2, 4), (1, 2))(torch.tensor([[[[0.0, 0.0, 4.0, 4.0], [0.0, 0.0, 4.0, 4.0]]]])).shape
    torch.Size([1, 1, 1, 2])
    """

    rows: Tensor
    columns: Tensor

    def __init__(self, picture: Size, size: Size) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("rows", _triangles(picture[0], size[0]), persistent=False)  # (h,H)
        self.register_buffer("columns", _triangles(picture[1], size[1]), persistent=False)  # (w,W)

    def forward(self, images: Tensor) -> Tensor:
        """(B,C,H,W) → (B,C,h,w); pixels keep their precision, whatever is used around."""
        with torch.autocast(images.device.type, enabled=False):
            return self.rows.to(images.dtype) @ images @ self.columns.to(images.dtype).T


def _centres(cells: int, like: Tensor) -> Tensor:
    return (torch.arange(cells, dtype=like.dtype, device=like.device) + 0.5) / cells


def _triangles(pixels: int, cells: int) -> Tensor:
    """(cells,pixels): how much each pixel gives to each cell of a shorter row; every row sums to 1."""
    ratio = pixels / cells
    support = max(ratio, 1.0)
    at = (torch.arange(cells, dtype=torch.float64) + 0.5) * ratio  # (cells,)
    centres = torch.arange(pixels, dtype=torch.float64) + 0.5  # (pixels,)
    weights = (1 - (centres - at.unsqueeze(-1)).abs() / support).clamp(min=0)  # (cells,pixels)
    return (weights / weights.sum(-1, keepdim=True)).float()
