"""ImageNet weights: how files of them are found, checked, read and converted into the state of our backbones.

They are searched in the cache folder, in this order, and never downloaded from here:

* ``weights/NAME.safetensors``: yours, under our names or under those of the published files;
* ``weights/FILE``: the published file itself, checked against the digits in its name;
* what ``saccade data get NAME-imagenet`` fetched.

Published files are pickles. They are read with ``weights_only``, and only if they have the published digest. Other
weights must be safetensors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import safetensors
import torch
from safetensors.torch import load_file
from torch import Tensor

from saccade.backbones.catalog import HF, TIMM, BackboneSpec, backbone_spec, has_imagenet_weights
from saccade.backbones.stages import IMAGENET_MEAN, IMAGENET_STD, Stages
from saccade.errors import ConfigError, DataError
from saccade.files import WEIGHTS, cache_home, file_digest


def imagenet_weights(name: str) -> dict[str, Tensor]:
    """The ImageNet weights of the backbone ``name``, with the keys of the state of ``build_backbone(name)``.

    A DataError says how to get them.
    """
    if name.startswith(TIMM):
        from saccade.backbones.timm_adapter import timm_weights

        return timm_weights(name.removeprefix(TIMM))
    if name.startswith(HF):
        from saccade.backbones.transformers_adapter import transformers_weights

        return transformers_weights(name.removeprefix(HF))
    if not has_imagenet_weights(name):
        raise ConfigError(f"pretrained: '{name}' has no ImageNet weights; set it to false")
    spec = backbone_spec(name)
    folder, fetched = cache_home() / "weights", f"{name}-imagenet"
    mine, published = folder / f"{name}.safetensors", folder / str(spec.published)
    if mine.exists():
        try:
            raw = load_file(mine)
        except (OSError, safetensors.SafetensorError) as error:
            raise DataError(f"{mine}: cannot be read as safetensors ({error}); write it again") from error
        return from_published_names(raw, spec, str(mine))
    if published.exists():  # NAME-DIGITS.pth, the first digits of its SHA-256
        digits = published.stem.rpartition("-")[2]
        return from_published_names(read_torch_file(published, digits), spec, str(published))
    by_hand = spec.published if spec.published_at is None else f"{spec.published_at}/{spec.published}"
    how = f"put {by_hand}, or your own {mine.name} with the same names, into {folder}"
    if fetched in WEIGHTS:
        path = cache_home() / fetched / WEIGHTS[fetched].name
        if path.exists():
            convert = from_normalised_vgg19 if name == "vgg19" else from_published_names
            return convert(read_torch_file(path, WEIGHTS[fetched].sha256), spec, str(path))
        how = f"get them with: saccade data get {fetched} (or {how})"
    raise DataError(f"the ImageNet weights of '{name}' are not on this machine: {how}")


def load_imagenet(stages: Stages, name: str) -> None:
    """Put the ImageNet weights of the backbone ``name`` into ``stages``: all of its stages, or the first few."""
    weights = imagenet_weights(name)
    state = stages.state_dict()
    stages.load_state_dict({key: weights[key] for key in state})


def weights_digest(name: str) -> str:
    """A SHA-256 of the ImageNet weights of ``name``: the same whatever file they were read from."""
    digest = hashlib.sha256()
    for key, tensor in sorted(imagenet_weights(name).items()):
        if not key.endswith(_COUNTER):
            digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
            digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


Tensors = dict[str, Tensor]
_CLASSIFIERS = ("fc.", "_fc.", "classifier.")
_COUNTER = "num_batches_tracked"  # of a norm; it decides nothing, and older files do not have it


def from_published_names(raw: Mapping[str, Tensor], spec: BackboneSpec, where: str) -> Tensors:
    """The backbone's state from a file in circulation, with or without its classifier; or from a file of our own."""
    expected = expected_state(spec)
    if expected.keys() <= raw.keys():
        return _as_state({name: raw[name] for name in expected}, expected, where)
    names = {ours: spec.published_key(ours) for ours in expected}
    foreign = sorted(name for name in raw.keys() - set(names.values()) if not name.startswith(_CLASSIFIERS))
    if foreign:
        raise DataError(f"{where}: '{foreign[0]}' is no layer of this backbone; these are the weights of another one")
    return _as_state({ours: raw[theirs] for ours, theirs in names.items() if theirs in raw}, expected, where)


def from_normalised_vgg19(raw: Mapping[str, Tensor], spec: BackboneSpec, where: str) -> Tensors:
    """VGG-19's convolutions from the file of the style-transfer networks (Huang and Belongie, 2017, arXiv:1703.06868).

    A 1×1 convolution in front makes BGR bytes, less a mean, of RGB 0..1. It is folded into the first real convolution,
    together with our own normalisation; at the border this is off by less than 0.002 of the range.
    """
    expected = expected_state(spec)
    layers = sorted({int(name.partition(".")[0]) for name in raw})
    first, *others = layers
    state: Tensors = {}
    ours = [name.removesuffix(".weight") for name in expected if name.endswith(".weight")]  # in order
    for name, layer in zip(ours, others):
        state |= {f"{name}.{kind}": raw[f"{layer}.{kind}"] for kind in ("weight", "bias")}
    colours = raw[f"{first}.weight"].double().flatten(1)  # (3,3): RGB 0..1 → their input
    mean, std = (torch.tensor(values, dtype=torch.float64) for values in (IMAGENET_MEAN, IMAGENET_STD))  # (3,)
    offset = colours @ mean + raw[f"{first}.bias"].double()  # (3,): their input where ours is zero
    weight, bias = state[f"{ours[0]}.weight"].double(), state[f"{ours[0]}.bias"].double()  # (64,3,3,3), (64,)
    state[f"{ours[0]}.weight"] = torch.einsum("ochw,ci->oihw", weight, colours * std).float()
    state[f"{ours[0]}.bias"] = (bias + torch.einsum("ochw,c->o", weight, offset)).float()
    return _as_state(state, expected, where)


def expected_state(spec: BackboneSpec) -> Tensors:
    """The state of a fresh backbone, for its names, shapes and types."""
    with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay as they were
        return spec.build().state_dict()


def _as_state(state: Tensors, expected: Mapping[str, Tensor], where: str) -> Tensors:
    """``state`` in the order and types of ``expected``; a DataError where a tensor is missing or has another shape."""
    whole: Tensors = {}
    for name, wanted in expected.items():
        if name not in state and name.endswith(_COUNTER):
            whole[name] = torch.zeros((), dtype=wanted.dtype)
        elif name not in state or state[name].shape != wanted.shape:
            shape = tuple(state[name].shape) if name in state else "none"
            raise DataError(
                f"{where}: '{name}' should be {tuple(wanted.shape)}, found {shape}; these are the weights of another "
                "backbone"
            )
        else:
            whole[name] = state[name].to(wanted.dtype).contiguous()
    return whole


def read_torch_file(path: Path, sha256: str) -> dict[str, Tensor]:
    """The tensors in ``path`` by name, if its SHA-256 starts with ``sha256``; else a DataError."""
    try:
        digest = file_digest(path)
        if not digest.startswith(sha256):
            mend = "delete it and get it again; weights of your own are read from safetensors"
            raise ValueError(f"SHA-256 {digest[:12]}…, expected {sha256[:12]}…, so it is not opened: {mend}")
        content = torch.load(path, map_location="cpu", weights_only=True)
        if not all(isinstance(tensor, Tensor) for tensor in content.values()):
            raise TypeError("expected tensors by name")
    except Exception as error:  # its reader fails in many ways; each means that this file is no use
        raise DataError(f"{path}: cannot be read ({type(error).__name__}: {error})") from error
    return {str(name): tensor for name, tensor in content.items()}
