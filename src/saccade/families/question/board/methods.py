"""Maps that attribution methods make of models that answer questions, for many questions at once.

The methods are those of ``saccade score --method``; here all questions of a batch go through a model together, by plain
autograd. The score that is explained is the logit of the model's own answer.

``gradcam`` and ``hirescam`` read the last feature map of the model's stack. Of SOFT, cross-attention and the
transformer it has not met the query: Grad-CAM weighs its channels, so the query can move no weight from place to place.

Axes: B questions, C channels, h and w cells, H and W pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from saccade import geometry
from saccade.backbones import Stages
from saccade.errors import ConfigError, nearest
from saccade.geometry import Size
from saccade.metrics.maps.faithfulness import (
    grad_cam,
    gradient_times_input,
    hirescam,
    integrated_gradients,
    occlusion,
)
from saccade.models.base import QueryModel
from saccade.models.vit import VitModel
from saccade.tasks.forward_passes import at_once, in_parts

Maker = Callable[[Tensor, Tensor], Tensor]
"""Pictures (B,3,H,W) and what is asked about each (B,) → maps (B,H,W), never below 0."""

OWN, ROLLOUT = "own", "rollout"
ATTRIBUTIONS = ("gradcam", "hirescam", "gradxinput", "ig", "occlusion")
LAYERS = ("layer 1", "layer 2", "layer 3")
"""The class token's rows of the layers before the last, of a transformer; those of the last are its own."""
METHODS = (OWN, *LAYERS, ROLLOUT, *ATTRIBUTIONS)
STEPS = 32
"""Steps of integrated gradients."""
WINDOWS = 8
"""Windows of occlusion along each side; they move by half their width."""


def maker(method: str, model: QueryModel) -> Maker:
    """What makes the maps of ``method`` on ``model``, a few pictures at a time.

    Raises:
        ConfigError: no such method, or the model has nothing for it.
    """
    if method not in METHODS:
        raise ConfigError(f"no method '{method}': {nearest(method, METHODS)}")
    if method in (ROLLOUT, *LAYERS) and not isinstance(model, VitModel):
        raise ConfigError(f"{method}: of layers of self-attention, and {type(model).__name__} has none")
    make = {OWN: _own, **dict.fromkeys((ROLLOUT, *LAYERS), _of_layers)}.get(method, _attributed)

    def some(images: Tensor, query: Tensor) -> Tensor:
        parts = zip(torch.split(images, at_once(images)), torch.split(query, at_once(images)))
        return torch.cat([make(method, model, *part).detach() for part in parts])

    return some


def _own(method: str, model: QueryModel, images: Tensor, query: Tensor) -> Tensor:
    """The total of the model's trace."""
    with torch.no_grad():
        return model.wrap(in_parts(model, images, query), _size(images)).trace.image_map("total")


def _of_layers(method: str, model: QueryModel, images: Tensor, query: Tensor) -> Tensor:
    """Rollout, or the class token's row of one layer."""
    vit = cast(VitModel, model)
    encoding = vit.encode(images)
    if method == ROLLOUT:
        shares = vit.rollout(encoding, query)  # (B,h,w)
    else:
        shares = vit.class_rows(encoding, query)[:, LAYERS.index(method)]  # (B,h,w)
    frame = vit.backbone.frames[vit.look_name].to(images.device)
    return geometry.project(shares.float(), frame, _size(images))


def _attributed(method: str, model: QueryModel, images: Tensor, query: Tensor) -> Tensor:
    images = images.clone()  # made in inference mode, it would take no gradient
    with torch.no_grad():
        answer = model.forward_raw(images, query)["logits"].argmax(-1, keepdim=True)  # (B,1)

    def logit(pictures: Tensor) -> Tensor:
        return model.forward_raw(pictures, query)["logits"].gather(1, answer).squeeze(1)  # (B,)

    if method in ("gradcam", "hirescam"):
        return _cam(method, model, images, logit)
    if method == "ig":
        return integrated_gradients(logit, images, steps=STEPS)
    if method == "occlusion":
        window = max(1, min(_size(images)) // WINDOWS)
        with torch.no_grad():
            return occlusion(logit, images, window=window, stride=max(1, window // 2))
    pixels = images.requires_grad_()
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(logit(pixels).sum(), pixels)
    return gradient_times_input(pixels.detach(), gradient)


def _cam(method: str, model: QueryModel, images: Tensor, logit: Callable[[Tensor], Tensor]) -> Tensor:
    stages = next((part for part in model.children() if isinstance(part, Stages)), None)
    if stages is None:
        raise ConfigError(f"{method}: {type(model).__name__} has no feature map of the whole picture")
    held: list[Tensor] = []
    last = stages.names[-1]
    handle = stages.stages[last].register_forward_hook(lambda module, given, made: held.append(made))
    try:
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(logit(images.requires_grad_()).sum(), held[-1])
    finally:
        handle.remove()
    make = grad_cam if method == "gradcam" else hirescam
    return geometry.project(
        make(held[-1].detach(), gradient).float(), stages.frames[last].to(images.device), _size(images)
    )


def _size(images: Tensor) -> Size:
    return images.shape[-2], images.shape[-1]
