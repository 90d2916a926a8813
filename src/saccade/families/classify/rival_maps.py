"""Gradient maps of the same network, for comparison with a classifier's own masks."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade import geometry
from saccade.metrics.maps.faithfulness import gradient_times_input, hirescam
from saccade.metrics.maps.scorer import Baseline
from saccade.models.base import LAST_MAP, ImageOnlyModel

TOGETHER = 32
"""Pictures whose gradients are computed at once."""


def rival_maps(model: ImageOnlyModel, images: Tensor, answer: Tensor) -> dict[str, Baseline]:
    """HiResCAM and gradient × input of the answers (B,) to pictures (B,3,H,W), by name; none of a model without a map.

    A map that is zero all over says nothing, and is undefined.
    """
    if model.last_frame is None:
        return {}
    frame = model.last_frame
    parts = [
        _of_some(model, frame, *each) for each in zip(torch.split(images, TOGETHER), torch.split(answer, TOGETHER))
    ]
    laid = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}  # (B,H,W) each
    return {name: Baseline(maps, maps.flatten(1).amax(1) > 0) for name, maps in laid.items()}


@torch.enable_grad()
def _of_some(model: ImageOnlyModel, frame: Tensor, images: Tensor, answer: Tensor) -> dict[str, Tensor]:
    images = images.detach().requires_grad_()
    raw = model.forward_raw(images)
    features = raw[LAST_MAP]  # (B,C,h,w)
    logit = raw["logits"].gather(1, answer[:, None]).sum()
    by_features, by_pixels = torch.autograd.grad(logit, (features, images))
    size = (images.shape[-2], images.shape[-1])
    cells = hirescam(features.detach(), by_features)  # (B,h,w)
    return {
        "hirescam": geometry.project(cells, frame, size),
        "gradient_times_input": gradient_times_input(images.detach(), by_pixels),
    }
