"""Does the answer depend on the pixels that a map marks? And maps made from gradients, to compare with.

**Deletion and insertion** (Petsiuk, Das and Saenko 2018, RISE, arXiv 1806.07421). Pixels are taken in the order of the
map, highest first, in equal steps; after each step the probability of the answer is read. ``deletion`` replaces them by
a fill (a low area: what the map marks was needed), ``insertion`` brings them back into a picture made of the fill (a
high area: it was enough).

Deviations: 20 steps of equal area instead of a fixed number of pixels; the caller states the fill; tied pixels are
ordered by a fixed hash of their position, so that a constant map is a random order; values that agree to about five
decimal digits count as tied, because a projected constant map is constant only up to rounding. Areas compare only with
the same fill, steps and picture size.

**Maps from gradients** of the answer, on the same network:

=====================  ===============================================================================================
HiResCAM                relu(Σ_c A_c ⊙ ∂y/∂A_c) of the last feature map A; Draelos and Carin 2020 (arXiv:2011.08891).
                        With a mean and one linear layer behind A, it is exactly what each cell adds to the logit y.
gradient × input        |Σ_c x_c ⊙ ∂y/∂x_c| of the picture x; Shrikumar et al. 2016 (arXiv:1605.01713)
=====================  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import DataError
from saccade.metrics.maps.localisation import check_maps, quantise, scale_to_peak

Probability = Callable[[Tensor, Tensor], Tensor]
"""``probability(images (N,C,H,W), pictures (N,)) -> (N,)``: how probable the model finds each picture's answer.

``pictures`` says which picture of the batch each altered copy comes from. If pictures are asked several questions, the
result is (N,A).
"""

_TIE_BITS = 17  # values that agree to 2^-17 ≈ 8e-6 are tied


@dataclass(frozen=True)
class SweepCurve:
    """The probability of the answer while pixels are exchanged, and the area under it."""

    share: Tensor  # (K+1,) of the pixels exchanged, 0 … 1
    probability: Tensor  # (B,K+1), or (B,A,K+1) of several answers

    @property
    def area(self) -> Tensor:
        """(B,) or (B,A) by the trapezoid rule: the mean probability over the sweep."""
        return torch.trapezoid(self.probability, self.share, dim=-1)


def deletion_and_insertion(
    probability: Probability,
    images: Tensor,
    maps: Tensor,
    *,
    fill: float | Tensor,
    steps: int = 20,
    max_batch: int = 256,
) -> tuple[SweepCurve, SweepCurve]:
    """Replace pixels by ``fill``, most attended first (a lower area is better), and bring them back (a higher one is).

    Args:
        probability: see :data:`Probability`; called without gradients.
        images: (B,C,H,W), as the callable wants them.
        maps: (B,H,W) ≥ 0, on the pixels of ``images``.
        fill: what replaces a pixel: one value, or a tensor that broadcasts to ``images``, such as a mean colour
            (C,1,1) or :func:`blurred` pictures.
        steps: K, in how many equal parts the pixels are exchanged.
        max_batch: the most altered pictures in one call of ``probability``.
    """
    filled = torch.as_tensor(fill).to(images).expand(images.shape)
    deleted = _sweep(probability, images, filled, maps, steps, max_batch)
    ends = deleted.probability[..., -1], deleted.probability[..., 0]  # (B[,A]) each: all filled, nothing filled
    return deleted, _sweep(probability, filled, images, maps, steps, max_batch, ends)


def blurred(images: Tensor, sigma: float) -> Tensor:
    """Pictures (B,C,H,W) after a Gaussian blur of ``sigma`` pixels, the border repeated: a softer fill."""
    reach = max(1, round(3 * sigma))
    offsets = torch.arange(-reach, reach + 1, device=images.device, dtype=images.dtype)
    kernel = torch.softmax(-0.5 * (offsets / sigma).square(), dim=0)  # (2r+1,) a normalised Gaussian
    channels = images.shape[1]
    down = kernel.view(1, 1, -1, 1).expand(channels, 1, -1, 1)
    across = kernel.view(1, 1, 1, -1).expand(channels, 1, 1, -1)
    padded = F.pad(images, (reach, reach, reach, reach), mode="replicate")  # (B,C,H+2r,W+2r)
    return F.conv2d(F.conv2d(padded, down, groups=channels), across, groups=channels)  # (B,C,H,W)


def pixel_ranks(maps: Tensor) -> Tensor:
    """The rank of each pixel (B,H,W) int64 in its map: 0 is attended most; ties by a fixed hash."""
    maps = check_maps(maps)
    value = quantise(scale_to_peak(maps), _TIE_BITS).flatten(1).long()  # (B,P)
    position = torch.arange(value.shape[1], device=maps.device)  # (P,)
    key = (value << 32) | _scramble(position)  # (B,P) all different
    order = key.argsort(dim=1, descending=True)  # (B,P)
    ranks = torch.empty_like(order).scatter_(1, order, position.expand_as(order))  # (B,P)
    return ranks.view(maps.shape)


def _scramble(numbers: Tensor) -> Tensor:
    """A fixed one-to-one hash of 32-bit numbers: odd multipliers and xor-shifts lose nothing."""
    low = 0xFFFFFFFF
    mixed = (numbers + 0x9E3779B9) & low
    for multiplier, shift in ((0x21F0AAAD, 16), (0x735A2D97, 15)):
        mixed = ((mixed ^ (mixed >> shift)) * multiplier) & low
    return mixed ^ (mixed >> 15)


@torch.inference_mode()
def _sweep(
    probability: Probability,
    start: Tensor,
    end: Tensor,
    maps: Tensor,
    steps: int,
    max_batch: int,
    ends: tuple[Tensor, Tensor] | None = None,
) -> SweepCurve:
    """Exchange the pixels of ``start`` for those of ``end`` in the order of the maps.

    ``ends`` are the probabilities (B[,A]) for both, if known.
    """
    ranks = pixel_ranks(maps.to(start.device))  # (B,H,W)
    pixels = maps.shape[1] * maps.shape[2]
    exchanged = torch.tensor([round(pixels * k / steps) for k in range(steps + 1)], device=start.device)  # (K+1,)
    between = exchanged if ends is None else exchanged[1:-1]  # (S,): how much of a picture that is asked about
    copies = torch.arange(len(maps) * len(between), device=start.device)  # every step of every picture
    answers = []
    for part in torch.split(copies, max_batch):
        picture = part // len(between)  # (N,)
        limit = between[part % len(between)]  # (N,)
        done = (ranks[picture] < limit[:, None, None]).unsqueeze(1)  # (N,1,H,W)
        answers.append(_probabilities(probability(torch.where(done, end[picture], start[picture]), picture), picture))
    if answers:
        curve = torch.unflatten(torch.cat(answers), 0, (len(maps), len(between))).movedim(1, -1)  # (B,[A,]S)
    else:  # no pictures, or nothing between the ends
        curve = start.new_zeros(len(maps), len(between)) if ends is None else ends[0].unsqueeze(-1)[..., :0]
    if ends is not None:
        curve = torch.cat([ends[0].unsqueeze(-1), curve, ends[1].unsqueeze(-1)], dim=-1)  # (B,[A,]K+1)
    return SweepCurve((exchanged.double() / pixels).to(curve.dtype), curve)


def _probabilities(values: Tensor, picture: Tensor) -> Tensor:
    values = values if values.dtype == torch.float64 else values.float()
    outside = ~((values >= -1e-4) & (values <= 1 + 1e-4))  # NaN is outside too
    if bool(outside.any()):
        where = outside.nonzero()[0]  # (1,) or (2,)
        raise DataError(
            f"probability of picture {int(picture[where[0]])} is {float(values[tuple(where)]):g}, not within 0..1: "
            "return the softmax probability of the answer, not its logit"
        )
    return values


def hirescam(features: Tensor, gradient: Tensor) -> Tensor:
    """Features and the gradient of the answer with respect to them, (B,C,h,w) each → (B,h,w), never below 0."""
    return (features * gradient).sum(1).relu()


def gradient_times_input(images: Tensor, gradient: Tensor) -> Tensor:
    """Pictures and the gradient of the answer with respect to them, (B,3,H,W) each → (B,H,W), never below 0."""
    return (images * gradient).sum(1).abs()
