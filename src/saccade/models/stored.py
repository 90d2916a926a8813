"""What of a model its weights file holds: parameters in the type asked for, and nothing that is known already.

A model that started from published ImageNet weights keeps the tensors that training has changed; the others are read
from the published weights again when it is loaded, once their digest is the one that was noted. So it is with a model
that is saved beside another and shares tensors with it bit for bit: it keeps the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade.backbones import pretrained
from saccade.errors import CheckpointError, DataError, MissingExtraError
from saccade.models.base import SeeingModel
from saccade.models.facts import Base, ModelFacts, StoredType

Tensors = dict[str, Tensor]


class Stored(NamedTuple):
    """What is to be written, and who has the rest."""

    tensors: Tensors
    base: Base | None
    """The ImageNet weights that have some of the others; None when they have none."""
    leaves_to_neighbour: bool
    """Whether the model beside has some of the others."""


def to_stored(model: nn.Module, dtype: StoredType, beside: Mapping[str, Tensor] | None = None) -> Stored:
    """The tensors to be written, without those that the ImageNet weights or the model ``beside`` have.

    Parameters are written as ``dtype``; buffers, among them the running statistics of norms, as they are: a variance
    may be beyond what float16 holds, and they are few.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    _check_finite(tensors, "the model to be saved", "the training diverged")
    base, published = _base_of(model)
    neighbour = _fitting(beside or {}, model)
    known = {**published, **neighbour}  # in the order in which they are laid over each other when it is loaded
    own = {name: tensor for name, tensor in tensors.items() if not _is_known(name, tensor, known)}
    left_out = tensors.keys() - own.keys()
    parameters = _parameter_names(model)
    written = {
        name: tensor.to(getattr(torch, dtype) if name in parameters else tensor.dtype).contiguous().clone()
        for name, tensor in own.items()
    }
    _check_finite(written, "the model to be saved", f"it is too large for {dtype}; save it as float32")
    return Stored(written, base if left_out - neighbour.keys() else None, bool(left_out & neighbour.keys()))


def from_stored(
    written: Tensors, model: nn.Module, facts: ModelFacts, where: str, beside: Mapping[str, Tensor] | None = None
) -> Tensors:
    """The whole state of ``model`` in its own types, from what :func:`to_stored` wrote, checked tensor by tensor."""
    expected, parameters = model.state_dict(), _parameter_names(model)
    stored = getattr(torch, facts.dtype)
    widened = {
        name: tensor.to(expected[name].dtype) if name in parameters and tensor.dtype == stored else tensor
        for name, tensor in written.items()
    }
    whole = {**_from_base(model, facts.base, where), **_fitting(beside or {}, model), **widened}
    _check_match(whole, expected, where)
    _check_finite(whole, where, "the training diverged or the file is bad")
    return whole


# ---------------------------------------------------------------- what is known already


def _base_of(model: nn.Module) -> tuple[Base | None, Tensors]:
    """The published weights that ``model`` started from, under the names that it has for them."""
    if not isinstance(model, SeeingModel) or not getattr(model.config, "pretrained", False):
        return None, {}
    name = model.config.backbone
    try:
        return Base(name, pretrained.weights_digest(name)), _named(name)
    except (MissingExtraError, DataError):  # trained where they were, saved where they are not: everything is written
        return None, {}


def _from_base(model: nn.Module, base: Base | None, where: str) -> Tensors:
    """The tensors of ``model`` that ``base`` has."""
    if base is None:
        return {}
    if not isinstance(model, SeeingModel) or base.backbone != getattr(model.config, "backbone", None):
        raise CheckpointError(f"{where}: lies on ImageNet weights of '{base.backbone}', which the model does not have")
    try:
        found = pretrained.weights_digest(base.backbone)
    except DataError as error:
        raise CheckpointError(f"{where}: holds only what training has changed: {error}") from error
    if found != base.sha256:
        raise CheckpointError(
            f"{where}: lies on other ImageNet weights of '{base.backbone}' than those found here (SHA-256 "
            f"{base.sha256[:12]}…, found {found[:12]}…); get the weights it was trained from"
        )
    expected = model.state_dict()
    return {name: tensor for name, tensor in _named(base.backbone).items() if name in expected}


def _named(backbone: str) -> Tensors:
    """The published weights of ``backbone`` under the names of a model that has it."""
    return {f"backbone.{name}": tensor for name, tensor in pretrained.imagenet_weights(backbone).items()}


def _fitting(beside: Mapping[str, Tensor], model: nn.Module) -> Tensors:
    """Those tensors in the weights file of the model ``beside`` that ``model`` has too, its parameters in its type."""
    expected, parameters = model.state_dict(), _parameter_names(model)
    return {
        name: tensor.to(expected[name].dtype) if name in parameters else tensor
        for name, tensor in beside.items()
        if name in expected
    }


def _is_known(name: str, tensor: Tensor, known: Mapping[str, Tensor]) -> bool:
    return name in known and known[name].dtype == tensor.dtype and torch.equal(known[name], tensor)


# ---------------------------------------------------------------- checks


def _parameter_names(model: nn.Module) -> set[str]:
    return {name for name, _ in model.named_parameters(remove_duplicate=False)}


def _check_match(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], where: str) -> None:
    missing, foreign = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    if missing:
        raise CheckpointError(f"{where}: no tensor '{missing[0]}'{_more(missing)}; the weights are of another model")
    if foreign:
        raise CheckpointError(
            f"{where}: unexpected tensor '{foreign[0]}'{_more(foreign)}; the weights are of another model"
        )
    for name, wanted in expected.items():
        tensor = found[name]
        if tensor.shape != wanted.shape:
            raise CheckpointError(f"{where}: '{name}' should be {tuple(wanted.shape)}, found {tuple(tensor.shape)}")
        if tensor.dtype != wanted.dtype:
            raise CheckpointError(f"{where}: '{name}' should be {wanted.dtype}, found {tensor.dtype}")


def _check_finite(tensors: Mapping[str, Tensor], where: str, why: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise CheckpointError(f"{where}: '{name}' holds NaN or infinity; {why}")


def _more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
