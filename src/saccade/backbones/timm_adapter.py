"""Models of the timm library as backbones (extra ``timm``): its feature maps become stages.

A model that timm can take apart into a chain has a stage for each of its feature maps, named after the layer that makes
it; any other has the one stage "features", its last map. Of a vision transformer (ViT, CLIP, SigLIP, DINOv2, DINOv3,
EVA) that is the patches of its last layer behind the final norm, without class and register tokens. It takes pictures
of any size: position embeddings are interpolated, and pixels that fill no patch, right and at the bottom, are left out.

Frames come from what timm says about a model (the reduction of each map) and from its strided layers: where these cut
the picture into patches (kernel = stride, no padding) cells tile the picture; elsewhere they are taken to be centred
(odd kernel, symmetric padding). With TensorFlow's "same" padding cells are off by up to half a cell of the previous
map.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch
from torch import Tensor, nn

from saccade.backbones.hub import from_hub, open_library
from saccade.backbones.stages import IMAGENET_MEAN, IMAGENET_STD, Chain, Normalise, Stages
from saccade.errors import ConfigError, nearest

# Modules of timm whose transformers take pictures of any size, and what they need for it
_OF_ANY_SIZE = {
    "vision_transformer": {"dynamic_img_size": True},
    "deit": {"dynamic_img_size": True},
    "eva": {"dynamic_img_size": True},
    "naflexvit": {},
}


class LastMap(nn.Module):
    """The last of the feature maps that a network returns."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → (B,C,h,w)."""
        try:
            last: Tensor = self.network(images)[-1]
        except AssertionError as error:  # such as: Input height (224) doesn't match model (384)
            height, width = images.shape[-2:]
            raise ConfigError(
                f"this model cannot take pictures of {height}×{width} pixels: {error}; set size"
            ) from error
        return last

    @property
    def has_class_token(self) -> bool:
        """Whether the network is a transformer with one, which timm then gives beside the map."""
        inner = getattr(self.network, "model", None)
        has = getattr(inner, "cls_token", None) is not None or bool(getattr(inner, "has_class_token", False))
        return has and hasattr(inner, "forward_intermediates")

    def with_class_token(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(B,3,H,W) → the last map (B,C,h,w) and the class token (B,C) of the same layer."""
        network: Any = self.network
        ((features, prefix),) = network.model.forward_intermediates(
            images,
            indices=[network.out_indices[-1]],
            norm=network.norm,
            output_fmt="NCHW",
            return_prefix_tokens=True,
            intermediates_only=True,
        )
        return features, prefix[:, 0]


class PatchMap(nn.Module):
    """The patches of the last layer of a vision transformer of timm, behind its final norm, as a map."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        network.prune_intermediate_layers(1)  # all layers stay, and the head goes
        self.network, self.reduction = network, int(network.feature_info[-1]["reduction"])
        has_class = getattr(network, "cls_token", None) is not None
        self.has_class_token = bool(getattr(network, "has_class_token", has_class))

    def forward(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → (B,C,h,w)."""
        features: Tensor = self._last(images)[0]
        return features

    def with_class_token(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """(B,3,H,W) → the map (B,C,h,w) and the class token (B,C)."""
        features, prefix = self._last(images, return_prefix_tokens=True)[0]
        return features, prefix[:, 0]

    def _last(self, images: Tensor, **options: bool) -> Any:
        height, width = (side // self.reduction * self.reduction for side in images.shape[-2:])
        whole = images[..., :height, :width]
        return self.network.forward_intermediates(whole, indices=1, norm=True, intermediates_only=True, **options)


def timm_stages(name: str) -> Stages:
    """The timm model ``name`` with fresh weights as stages; nothing is downloaded."""
    return _as_stages(_features(name, pretrained=False), name)


def timm_weights(name: str) -> dict[str, Tensor]:
    """The published weights of the timm model ``name``, as timm's own client finds or downloads them."""
    timm_with(name)  # before the hub is asked
    with torch.random.fork_rng(devices=[]):  # building draws weights that are replaced at once
        with from_hub(f"the weights of timm:{name}"):
            network = _features(name, pretrained=True)
        return dict(_as_stages(network, name).state_dict())


def timm_with(name: str) -> Any:
    """The module timm, if it has the model ``name``."""
    timm = open_library("timm", "a timm model")
    if not timm.is_model(name):
        alike = timm.list_models(f"{name[:4]}*")[:20]
        hint = nearest(name, alike) if alike else "timm.list_models() names those it has"
        raise ConfigError(f"timm {timm.__version__} has no model '{name}': {hint}")
    return timm


def _features(name: str, *, pretrained: bool) -> Any:
    """The timm model ``name`` as a network that returns its feature maps, or as a :class:`PatchMap`."""
    timm = timm_with(name)
    try:
        module = timm.model_entrypoint(name).__module__.rpartition(".")[2]
        if module in _OF_ANY_SIZE:
            return PatchMap(timm.create_model(name, pretrained=pretrained, **_OF_ANY_SIZE[module]))
        return timm.create_model(name, pretrained=pretrained, features_only=True)
    except (RuntimeError, AttributeError, AssertionError, TypeError, OSError) as error:
        raise ConfigError(
            f"timm cannot give the feature maps of '{name}'{' with its weights' if pretrained else ''} "
            f"({type(error).__name__}: {error}); choose another model"
        ) from error


def _normalise(network: Any) -> Normalise:
    config = getattr(network, "pretrained_cfg", None) or {}
    return Normalise(tuple(config.get("mean", IMAGENET_MEAN)), tuple(config.get("std", IMAGENET_STD)))


def _as_stages(network: Any, name: str) -> Stages:
    stages: OrderedDict[str, nn.Module]
    if isinstance(network, PatchMap):
        stages = OrderedDict(features=Chain([_normalise(network.network), network], network.reduction))
        return Stages(stages, {"features": int(network.network.num_features)})
    layout = getattr(network, "output_fmt", "NCHW")
    if getattr(layout, "value", layout) != "NCHW":
        raise ConfigError(f"timm:{name} has its channels last ({layout}); choose a model with maps (B,C,H,W)")
    normalise = _normalise(network)
    channels, reductions = network.feature_info.channels(), network.feature_info.reduction()
    taps = getattr(network, "return_layers", None)
    if taps is None:
        stages = OrderedDict(features=Chain([normalise, LastMap(network)], reductions[-1]))
        return Stages(stages, {"features": channels[-1]})
    stages = OrderedDict()
    layers: list[nn.Module] = [normalise]
    before = 1
    for key, layer in network.items():
        layers.append(layer)
        if key in taps:
            reduction = reductions[len(stages)]
            stages[key] = Chain(layers, reduction // before)
            layers, before = [], reduction
    return Stages(stages, dict(zip(stages, channels)))
