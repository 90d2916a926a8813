"""Crops: by any affine map that the network chooses, or at the place to which attention points.

**Spatial transformer.** Jaderberg et al., "Spatial Transformer Networks", 2015 (arXiv:1506.02025), with a query beside
the picture.

=========  ==============================================================
Sec. 3.1   θ = f_loc(U), here f_loc(U, q)         :meth:`SpatialTransformer.locate`
Eq. (1)    (x, y) of the picture = θ (x', y', 1)  :func:`saccade.geometry.sample_theta`
Eq. (5)    bilinear reading of the picture        :func:`saccade.geometry.sample_theta`
=========  ==============================================================

θ takes a cell of the crop to a point of the picture, both in [-1, 1] between outer edges (``align_corners=False``):
scales below 1 zoom in. Feature and query meet in a hidden layer; in one linear layer the query could only move the same
window over every picture.

**No free zooming out.** Beyond its border the picture repeats its border. ``bounded`` makes every θ a window inside the
picture, by smooth functions of six numbers:

* extent e = smallest + (1 − smallest)·σ(·) of each axis, so no axis grows beyond the picture nor shrinks to a point;
* turn u = ½ tanh(·), row i of the matrix = e_i · (1, u_i) / (1 + √(u_i² + ε²)), diagonal first: a row sums to less
  than e_i in absolute value, and u_x·u_y < ¼ keeps the determinant above e_x·e_y / 3, so that nothing is mirrored or
  flattened; a window turns by up to 27 degrees;
* place t = (1 − e)·tanh(·), so that the farthest corner, at e + |t| < 1, stays inside.

Deviations from the paper: the bounds (``bounded=False`` is the paper's θ), and the border. The last layer starts with
weights 0, so every picture starts with the same window: the identity, or if bounded a centred one of extent 0.9, as at
extent 1 the place has no gradient. ``pace`` below 1 slows the window: one that runs ahead ends in an empty corner,
where no gradient pulls it back. Coordinates are computed in float32.

**Pointing.** Seo et al. 2016 (arXiv:1606.02393), for the attention; Finn et al., "Deep Spatial Autoencoders for
Visuomotor Learning", 2016 (arXiv:1509.06113), for the point; Jaderberg et al. 2015, for the window.

=============  ==============================================================
Seo (2)-(4)    α = softmax g_att(f, q), f_att = Σ α f   :class:`saccade.attention.SoftAttention`
Finn           p = Σ_ij α_ij u_ij, the soft argmax      :func:`expected_point`
Jaderberg (2)  θ = [[e, 0, t_x], [0, e, t_y]]           :func:`square_window`
=============  ==============================================================

The window stays inside the picture: cells lie at u from −1 to 1, edge to edge, and t = (1 − e)·p. Its extent e is
smallest + (largest − smallest)·σ(·) of one number that the attended feature and the query decide. ``largest`` is well
below 1: in a window that shows everything no place is better than another, and training would start by widening it.

Deviations from the papers: Jaderberg's Eq. (2) has no bounds; Finn's points have no query. The number of the extent
starts in the middle of its range and moves at a tenth of the layer's pace, so that the place settles first.

Axes: B examples, C channels of the picture, F of the features, Q queries, H and W pixels, I and J cells.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.attention.scores import check_given
from saccade.attention.soft import SoftAttention
from saccade.geometry import Size
from saccade.trace import Act, Look, crop_spec

START = 0.9  # extent of a bounded window before training, as a share of the picture
_ROUNDING = 1e-3  # ε: rounds the kink of |u|


class CropOutput(NamedTuple):
    """Plain tensors of one crop, and of the attention that led to it if any did; fit for compiling and exporting."""

    crop: Tensor
    theta: Tensor
    attended: Act | None = None


class CropMechanism(nn.Module, ABC):
    """A mechanism that cuts a window out of a picture."""

    crop: Size

    @abstractmethod
    def attend(self, picture: Tensor, located: Tensor, query: Tensor, /, *, frame: Tensor | None = None) -> CropOutput:
        """The act as plain tensors: crop (B,C,h,w) and theta (B,2,3).

        A ``frame`` (B,2,3) that is given, cells of the crop → pixels of the picture, takes the place of its window.
        """

    def forward(
        self, picture: Tensor, located: Tensor, query: Tensor, /, *, name: str = "crop", frame: Tensor | None = None
    ) -> tuple[Tensor, Look]:
        """Crop and look; the picture is taken as the network input, ``frame`` as in :meth:`attend`."""
        cropped = self.attend(picture, located, query, frame=frame)
        spec = crop_spec(self.crop, (picture.shape[-2], picture.shape[-1]))
        return cropped.crop, spec.look(name, Act(theta=cropped.theta))


class SpatialTransformer(CropMechanism):
    """Picture (B,C,H,W), what localises (B,F) and a query vector (B,Q) → crop (B,C,h,w) and its look.

    ``query_size`` is 0 for a transformer that is asked nothing. ``bounded`` windows stay inside the picture;
    ``smallest`` is the extent of the smallest, as a share of the picture, below 0.9. ``pace``, above 0 and at most 1,
    is how far the window moves from its start, as a share of what the last layer says.

    >>> transformer = SpatialTransformer(16, 4, crop=(5, 6))
    >>> crop, look = transformer(torch.rand(2, 3, 11, 12), torch.rand(2, 16), torch.rand(2, 4))
    >>> crop.shape, look.kind, look.frame.shape
    (torch.Size([2, 3, 5, 6]), 'crop', torch.Size([2, 2, 3]))
    """

    def __init__(
        self,
        features: int,
        query_size: int,
        *,
        crop: Size,
        hidden: int = 32,
        bounded: bool = True,
        smallest: float = 0.1,
        pace: float = 1.0,
    ) -> None:
        super().__init__()
        self.crop, self.bounded, self.smallest, self.pace = crop, bounded, smallest, pace
        self.meet = nn.Linear(features + query_size, hidden)
        self.to_theta = nn.Linear(hidden, 6)
        nn.init.zeros_(self.to_theta.weight)
        with torch.no_grad():
            self.to_theta.bias.copy_(self._start())
        self.register_buffer("start", self._start(), persistent=False)

    start: Tensor

    def _start(self) -> Tensor:
        """The six numbers before training."""
        if not self.bounded:
            return torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])  # the identity, row by row
        share = (START - self.smallest) / (1 - self.smallest)
        extent = math.log(share / (1 - share))
        return torch.tensor([extent, extent, 0.0, 0.0, 0.0, 0.0])

    def locate(self, localisation: Tensor, query: Tensor) -> Tensor:
        """θ (B,2,3) from what localises (B,F) and the query (B,Q)."""
        with torch.autocast(localisation.device.type, enabled=False):
            met = F.relu(self.meet(torch.cat([localisation, query], dim=1).to(self.meet.weight.dtype)))  # (B,D)
            numbers = self.start + self.pace * (self.to_theta(met) - self.start)  # (B,6)
            return window(numbers, self.smallest) if self.bounded else numbers.reshape(-1, 2, 3)  # (B,2,3)

    def attend(self, picture: Tensor, located: Tensor, query: Tensor, /, *, frame: Tensor | None = None) -> CropOutput:
        """The act; what localises (B,F) may be a map (B,C,h,w) of as many numbers."""
        theta = self.locate(located.flatten(1), query) if frame is None else given_window(frame, self.crop, picture)
        return CropOutput(geometry.sample_theta(picture, theta, self.crop), theta)  # (B,C,h,w)


def window(numbers: Tensor, smallest: float) -> Tensor:
    """Six unbounded numbers (B,6), extents, turns and places as (x, y) pairs → θ (B,2,3) of a window in the picture."""
    extent, turn, place = numbers.reshape(-1, 3, 2).unbind(1)  # (B,2) each
    extent = smallest + (1 - smallest) * torch.sigmoid(extent)  # (B,2)
    turn = torch.tanh(turn) / 2  # (B,2)
    place = (1 - extent) * torch.tanh(place)  # (B,2)
    along = extent / (1 + (turn.square() + _ROUNDING**2).sqrt())  # (B,2): the diagonal
    across = along * turn  # (B,2): beside the diagonal
    rows = [along[:, 0], across[:, 0], place[:, 0], across[:, 1], along[:, 1], place[:, 1]]
    return torch.stack(rows, dim=1).reshape(-1, 2, 3)  # (B,2,3)


def given_window(frame: Tensor, crop: Size, picture: Tensor) -> Tensor:
    """θ (B,2,3) of a given frame (B,2,3), cells of the crop → pixels of the picture (B,C,H,W); in double precision."""
    check_given(frame, (picture.shape[0], 2, 3), "frame")
    size = (picture.shape[-2], picture.shape[-1])
    return geometry.frame_to_theta(frame.to(picture.device, torch.float64), crop, size)


_PACE = 0.1  # of the extent


class PointingTransformer(CropMechanism):
    """Picture (B,C,H,W), features (B,F,I,J) and a query vector (B,Q) → crop (B,C,h,w) and its look.

    Windows have extents from ``smallest`` to ``largest``, shares of the picture. If ``steered``, the crop teaches the
    point too; if not, the extent alone.

    >>> transformer = PointingTransformer(16, 4, crop=(5, 6))
    >>> crop, look = transformer(torch.rand(2, 3, 11, 12), torch.rand(2, 16, 4, 4), torch.rand(2, 4))
    >>> crop.shape, look.kind, look.frame.shape
    (torch.Size([2, 3, 5, 6]), 'crop', torch.Size([2, 2, 3]))
    """

    def __init__(
        self,
        channels: int,
        query_size: int,
        *,
        crop: Size,
        hidden: int = 32,
        smallest: float = 0.1,
        largest: float = 0.5,
        steered: bool = True,
    ) -> None:
        super().__init__()
        self.crop, self.smallest, self.largest, self.steered = crop, smallest, largest, steered
        self.attention = SoftAttention(channels, query_size, hidden=hidden)
        self.to_extent = nn.Linear(channels + query_size, 1)
        nn.init.zeros_(self.to_extent.weight)
        nn.init.zeros_(self.to_extent.bias)

    def attend(self, picture: Tensor, features: Tensor, query: Tensor, /, *, frame: Tensor | None = None) -> CropOutput:
        """The act on features (B,F,I,J); coordinates are in float32 whatever the precision around them."""
        attended = self.attention.attend(features, query)  # (B,F), (B,I,J)
        if frame is not None:
            theta = given_window(frame, self.crop, picture)  # (B,2,3)
            return CropOutput(geometry.sample_theta(picture, theta, self.crop), theta, attended)
        with torch.autocast(features.device.type, enabled=False):
            inputs = torch.cat([attended.context, query], dim=1).to(self.to_extent.weight.dtype)  # (B,F+Q)
            opened = torch.sigmoid(_PACE * self.to_extent(inputs))  # (B,1)
            extent = self.smallest + (self.largest - self.smallest) * opened  # (B,1)
            points = attended.weights if self.steered else attended.weights.detach()  # (B,I,J)
            theta = square_window(expected_point(points.to(extent.dtype)), extent)  # (B,2,3)
        return CropOutput(geometry.sample_theta(picture, theta, self.crop), theta, attended)


def expected_point(weights: Tensor) -> Tensor:
    """Mean place (B,2), as (x, y), of weights (B,I,J) that add up to 1; the outermost cells lie at −1 and 1."""
    rows, columns = (_places(cells, weights) for cells in weights.shape[-2:])  # (I,), (J,)
    return torch.stack([weights.sum(1) @ columns, weights.sum(2) @ rows], dim=1)  # (B,2)


def _places(cells: int, like: Tensor) -> Tensor:
    end = 1.0 if cells > 1 else 0.0
    return torch.linspace(-end, end, cells, dtype=like.dtype, device=like.device)  # (cells,)


def square_window(point: Tensor, extent: Tensor) -> Tensor:
    """θ (B,2,3) of the upright window of an extent (B,1) at a point (B,2), whose ends ±1 are the picture's edges."""
    place = (1 - extent) * point  # (B,2)
    size = torch.diag_embed(extent.expand_as(place))  # (B,2,2)
    return torch.cat([size, place.unsqueeze(2)], dim=2)  # (B,2,3)
