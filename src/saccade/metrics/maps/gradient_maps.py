"""Maps that are made afterwards from gradients of the answer: what attention is compared with on the same network.

=====================  ===============================================================================================
HiResCAM                relu(Σ_c A_c ⊙ ∂y/∂A_c) of the last feature map A; Draelos and Carin 2020 (arXiv:2011.08891).
                        With a mean and one linear layer behind A, it is exactly what each cell adds to the logit y.
gradient × input        |Σ_c x_c ⊙ ∂y/∂x_c| of the picture x; Shrikumar et al. 2016 (arXiv:1605.01713)
=====================  ===============================================================================================
"""

from __future__ import annotations

from torch import Tensor

from saccade.errors import ShapeError


def hirescam(features: Tensor, gradient: Tensor) -> Tensor:
    """Features and the gradient of the answer with respect to them, (B,C,h,w) each → (B,h,w), never below 0."""
    return _product(features, gradient).relu()


def gradient_times_input(images: Tensor, gradient: Tensor) -> Tensor:
    """Pictures and the gradient of the answer with respect to them, (B,3,H,W) each → (B,H,W), never below 0."""
    return _product(images, gradient).abs()


def _product(values: Tensor, gradient: Tensor) -> Tensor:
    if values.dim() != 4 or gradient.shape != values.shape:
        raise ShapeError("gradient", f"{tuple(values.shape)}, as (B,C,H,W)", gradient.shape)
    return (values * gradient).sum(1)
