"""Converts published weights into the state of our backbones: names, layouts and input statistics."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from saccade.backbones.catalog import BackboneSpec
from saccade.backbones.layers import IMAGENET_MEAN, IMAGENET_STD
from saccade.errors import DataError

Tensors = dict[str, Tensor]
_CLASSIFIERS = ("fc.", "_fc.", "classifier.")
_COUNTER = "num_batches_tracked"
"""How many batches a norm has seen; it decides nothing, and older files do not have it."""


def from_published_names(raw: Mapping[str, Tensor], spec: BackboneSpec, where: str) -> Tensors:
    """The backbone's state from a file in circulation, with or without its classifier; or from a file of our own."""
    expected = expected_state(spec)
    if expected.keys() <= raw.keys():
        return checked({name: raw[name] for name in expected}, expected, where)
    names = {ours: spec.module.published_name(ours) for ours in expected}
    foreign = sorted(name for name in raw.keys() - set(names.values()) if not name.startswith(_CLASSIFIERS))
    if foreign:
        raise DataError(f"{where}: '{foreign[0]}' is no layer of this backbone; these are the weights of another one")
    return checked({ours: raw[theirs] for ours, theirs in names.items() if theirs in raw}, expected, where)


def from_normalised_vgg19(raw: Mapping[str, Tensor], spec: BackboneSpec, where: str) -> Tensors:
    """VGG-19's convolutions from the file of the style-transfer networks (Huang and Belongie, 2017, arXiv:1703.06868).

    Their layers are scaled to a mean activation of one, which the rectifiers let through. A 1×1 convolution in front
    makes bytes in the order BGR, less a mean, of RGB 0..1. Being linear it is folded into the first real convolution,
    together with our own normalisation; at the border, where zeros are padded after rather than before it, this is off
    by the difference of two published means (less than 0.002 of the range).
    """
    expected = expected_state(spec)
    layers = sorted({int(name.partition(".")[0]) for name in raw})
    if len(layers) != 1 + len(expected) // 2:
        raise DataError(f"{where}: {len(layers)} layers, expected {1 + len(expected) // 2}; it is another network")
    first, *others = layers
    found: Tensors = {}
    ours = [name.removesuffix(".weight") for name in expected if name.endswith(".weight")]  # in order
    for name, layer in zip(ours, others):
        found |= {f"{name}.{kind}": raw[f"{layer}.{kind}"] for kind in ("weight", "bias")}
    colours = raw[f"{first}.weight"].double().flatten(1)  # (3,3): RGB 0..1 → their input
    mean, std = (torch.tensor(values, dtype=torch.float64) for values in (IMAGENET_MEAN, IMAGENET_STD))  # (3,)
    offset = colours @ mean + raw[f"{first}.bias"].double()  # (3,): their input where ours is zero
    weight, bias = found[f"{ours[0]}.weight"].double(), found[f"{ours[0]}.bias"].double()  # (64,3,3,3), (64,)
    found[f"{ours[0]}.weight"] = torch.einsum("ochw,ci->oihw", weight, colours * std).float()
    found[f"{ours[0]}.bias"] = (bias + torch.einsum("ochw,c->o", weight, offset)).float()
    return checked(found, expected, where)


def expected_state(spec: BackboneSpec) -> Tensors:
    """Names, shapes and types of the backbone's state; the caller's random numbers stay as they were.

    The numbers are drawn for nothing: on shapes alone torch would first load its compiler, which takes longer.
    """
    with torch.random.fork_rng(devices=[]):
        state: Tensors = spec.build().state_dict()
    return state


def checked(found: Tensors, expected: Mapping[str, Tensor], where: str) -> Tensors:
    """``found`` in the order and types of ``expected``; a DataError where a tensor is missing or has another shape."""
    whole: Tensors = {}
    for name, wanted in expected.items():
        if name not in found and name.endswith(_COUNTER):
            whole[name] = torch.zeros((), dtype=wanted.dtype)
        elif name not in found:
            raise DataError(f"{where}: no weights for '{name}'; these are the weights of another backbone")
        elif found[name].shape != wanted.shape:
            raise DataError(
                f"{where}: '{name}' should be {tuple(wanted.shape)}, found {tuple(found[name].shape)}; these are the "
                "weights of another backbone"
            )
        else:
            whole[name] = found[name].to(wanted.dtype).contiguous()
    return whole


def is_counter(name: str) -> bool:
    """Whether the entry ``name`` of a state only counts batches."""
    return name.endswith(_COUNTER)
