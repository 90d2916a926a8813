"""Maps that are made afterwards from gradients of the answer: what attention is compared with on the same network.

Two of them need no gradient of features: they ask for the score of altered pictures.

=====================  ===============================================================================================
Grad-CAM                relu(Σ_c ᾱ_c A_c), ᾱ_c the mean of ∂y/∂A_c over the cells; Selvaraju et al. 2017
                        (arXiv:1610.02391). It weighs channels, never places: where A does not depend on the query, what
                        is asked for moves nothing from place to place.
HiResCAM                relu(Σ_c A_c ⊙ ∂y/∂A_c) of the last feature map A; Draelos and Carin 2020 (arXiv:2011.08891).
                        With a mean and one linear layer behind A, it is exactly what each cell adds to the logit y.
gradient × input        |Σ_c x_c ⊙ ∂y/∂x_c| of the picture x; Shrikumar et al. 2016 (arXiv:1605.01713)
integrated gradients    |Σ_c x_c ⊙ ∫₀¹ ∂y(αx)/∂x_c dα| from a black picture, by the midpoints of equal steps;
                        Sundararajan et al. 2017 (arXiv:1703.01365)
occlusion               |y − y_w|, y_w with a black window over the pixel, the mean over all windows that cover it;
                        Zeiler and Fergus 2014 (arXiv:1311.2901)
=====================  ===============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from saccade.errors import ConfigError, ShapeError

Score = Callable[[Tensor], Tensor]
"""Pictures (B,3,H,W) → the score y (B,) that each map explains."""


def grad_cam(features: Tensor, gradient: Tensor) -> Tensor:
    """Features and the gradient of the answer with respect to them, (B,C,h,w) each → (B,h,w), never below 0."""
    return _product(features, gradient.mean((-2, -1), keepdim=True).expand_as(features)).relu()


def hirescam(features: Tensor, gradient: Tensor) -> Tensor:
    """Features and the gradient of the answer with respect to them, (B,C,h,w) each → (B,h,w), never below 0."""
    return _product(features, gradient).relu()


def gradient_times_input(images: Tensor, gradient: Tensor) -> Tensor:
    """Pictures and the gradient of the answer with respect to them, (B,3,H,W) each → (B,H,W), never below 0."""
    return _product(images, gradient).abs()


def integrated_gradients(score: Score, images: Tensor, *, steps: int = 32) -> Tensor:
    """Maps (B,H,W) of pictures (B,3,H,W), never below 0; ``steps`` gradients each."""
    if steps < 1:
        raise ConfigError(f"integrated gradients: at least one step, found {steps}")
    total = torch.zeros_like(images)
    for step in range(steps):
        part = (images.detach() * ((step + 0.5) / steps)).requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(score(part).sum(), part)
        total += gradient
    return gradient_times_input(images, total / steps)


def occlusion(score: Score, images: Tensor, *, window: int, stride: int) -> Tensor:
    """Maps (B,H,W) of pictures (B,3,H,W), never below 0.

    Windows begin every ``stride`` pixels; the last of a row or column ends with the picture, where it is cut off.
    """
    if not 1 <= stride <= window:
        raise ConfigError(f"occlusion: a stride of 1 up to the window of {window}, found {stride}")
    height, width = images.shape[-2:]
    whole = score(images)  # (B,)
    total, covers = images.new_zeros(len(images), height, width), images.new_zeros(height, width)
    for top in _starts(height, window, stride):
        for left in _starts(width, window, stride):
            place = (slice(top, top + window), slice(left, left + window))
            altered = images.clone()
            altered[:, :, *place] = 0
            total[:, *place] += (whole - score(altered))[:, None, None]
            covers[place] += 1
    return (total / covers).abs()


def _starts(length: int, window: int, stride: int) -> range:
    """Where windows begin, so that all of a side is covered."""
    return range(0, max(length - window, 0) + stride, stride)


def _product(values: Tensor, gradient: Tensor) -> Tensor:
    if values.dim() != 4 or gradient.shape != values.shape:
        raise ShapeError("gradient", f"{tuple(values.shape)}, as (B,C,H,W)", gradient.shape)
    return (values * gradient).sum(1)
