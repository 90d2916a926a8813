"""Chooses which tensors a weights file stores: those that differ from the base weights, in the requested type.

A model that started from published ImageNet weights keeps the tensors that training has changed; the others are read
from the published weights again when it is loaded, once their digest is the one that was noted. The same holds for a
model that is saved beside another one: it reads the tensors that both share from the other's file.

As ``int8``, a parameter that has rows lies in the file as whole numbers, and beside it, as ``NAME.scale``, are the
scales of its rows (:mod:`saccade.models.io.int8_rows`); the other parameters are float16.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade.backbones import pretrained
from saccade.errors import CheckpointError, DataError, MissingExtraError
from saccade.models.base import ImageModel
from saccade.models.io.facts import Base, ModelFacts, StoredType
from saccade.models.io.int8_rows import from_rows, has_rows, to_rows
from saccade.tensor_file import Entry

Tensors = dict[str, Tensor]
SCALE = ".scale"
"""Behind the name of a parameter; a parameter has no parts, so no tensor of a model is called so."""


class Stored(NamedTuple):
    """What is to be written, and who has the rest."""

    tensors: Tensors
    base: Base | None
    """The ImageNet weights that have some of the others; None when they have none."""
    leaves_to_neighbour: bool
    """Whether the model beside has some of the others."""


def to_stored(
    model: nn.Module, dtype: StoredType, beside: Mapping[str, Tensor] | None = None, *, whole: bool = False
) -> Stored:
    """The tensors to be written, without those that the ImageNet weights or the model ``beside`` have.

    With ``whole`` those of ImageNet are written too, so that the model loads where they are not. Parameters are written
    as ``dtype``; buffers, among them the running statistics of norms, as they are: a variance may be beyond what
    float16 holds, and they are few.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    _check_finite(tensors, "the model to be saved", "the training diverged")
    parameters = _parameter_names(model)
    base, published = (None, {}) if whole else _base_of(model)
    neighbour = _fitting(beside or {}, model, "the model beside")
    written: Tensors = {}
    left_out: set[str] = set()
    for name, tensor in tensors.items():
        if name not in neighbour and _is_same(tensor, published.get(name)):
            left_out.add(name)
            continue
        narrow = _narrowed(name, tensor, dtype) if name in parameters else {name: tensor.contiguous().clone()}
        as_read = _widened(narrow, {name: tensor}, parameters, "the model to be saved")
        _check_finite(as_read, "the model to be saved", f"it is too large for {dtype}; save it as float32")
        if _is_same(as_read[name], neighbour.get(name)):  # laid over the published ones when it is loaded
            left_out.add(name)
        else:
            written |= narrow
    return Stored(written, base if left_out - neighbour.keys() else None, bool(left_out & neighbour.keys()))


def check_header(header: Mapping[str, Entry], model: nn.Module, where: str) -> None:
    """Refuse a weights file whose header names a tensor that ``model`` does not have, or one of another shape.

    Numbers of ``model`` are not looked at, so it may be on the meta device. What the file leaves out is told later.
    """
    expected, parameters = model.state_dict(), _parameter_names(model)
    foreign = sorted(
        name
        for name in header
        if name not in expected and not (name.endswith(SCALE) and name.removesuffix(SCALE) in parameters)
    )
    _refuse_foreign(foreign, where)
    for name, tensor in expected.items():
        if name in header and header[name].shape != tuple(tensor.shape):
            raise CheckpointError(f"{where}: '{name}' should be {tuple(tensor.shape)}, found {header[name].shape}")


def from_stored(
    written: Tensors, model: nn.Module, facts: ModelFacts, where: str, beside: Mapping[str, Tensor] | None = None
) -> Tensors:
    """The whole state of ``model`` in its own types, from what :func:`to_stored` wrote, checked tensor by tensor."""
    expected, parameters = model.state_dict(), _parameter_names(model)
    _check_types(written, {name: _stored_type(expected[name], facts.dtype) for name in parameters}, where)
    own = _widened(written, expected, parameters, where)
    known = _fitting(beside or {}, model, f"what {where} leaves out")
    whole = {**_from_base(model, facts.base, where), **known, **own}
    _check_match(whole, expected, where)
    _check_finite(whole, where, "the training diverged or the file is bad")
    return whole


def _stored_type(parameter: Tensor, dtype: StoredType) -> torch.dtype:
    """The type in which a file of ``dtype`` holds ``parameter``."""
    if dtype == "int8" and not has_rows(parameter.shape):
        return torch.float16
    found: torch.dtype = getattr(torch, dtype)
    return found


def _narrowed(name: str, parameter: Tensor, dtype: StoredType) -> Tensors:
    """What is written of the parameter ``name``."""
    kept = _stored_type(parameter, dtype)
    if kept == torch.int8:
        return dict(zip((name, name + SCALE), to_rows(parameter), strict=True))
    return {name: parameter.to(kept).contiguous().clone()}


def _widened(
    written: Mapping[str, Tensor], expected: Mapping[str, Tensor], parameters: Set[str], where: str
) -> Tensors:
    """What a weights file holds, the parameters in the types of ``expected`` and without the scales of their rows."""
    wide = dict(written)
    for name in filter(parameters.__contains__, written):
        if wide[name].dtype == torch.int8:
            scales = _checked_scales(wide.pop(name + SCALE, None), name, wide[name], where)
            wide[name] = from_rows(wide[name], scales)
        wide[name] = wide[name].to(expected[name].dtype)
    return wide


def _checked_scales(scales: Tensor | None, name: str, numbers: Tensor, where: str) -> Tensor:
    """The scales of the rows of ``numbers``, if they can be that."""
    if scales is None:
        raise CheckpointError(f"{where}: no tensor '{name}{SCALE}', the scales of the rows of '{name}'")
    if scales.dtype != torch.bfloat16 or scales.shape != numbers.shape[:1] or numbers.dim() < 2:
        raise CheckpointError(
            f"{where}: '{name}{SCALE}' should be torch.bfloat16 and one for each row of '{name}' "
            f"{tuple(numbers.shape)}, found {scales.dtype} {tuple(scales.shape)}"
        )
    if not bool(scales.isfinite().all()) or bool((scales < 0).any()):
        raise CheckpointError(f"{where}: '{name}{SCALE}' holds NaN, infinity or a number below 0; the file is bad")
    return scales


def _base_of(model: nn.Module) -> tuple[Base | None, Tensors]:
    """The published weights that ``model`` started from, under the names that it has for them."""
    if not isinstance(model, ImageModel) or not getattr(model.config, "pretrained", False):
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
    if not isinstance(model, ImageModel) or base.backbone != getattr(model.config, "backbone", None):
        raise CheckpointError(
            f"{where}: was stored relative to ImageNet weights of '{base.backbone}', which the model does not have"
        )
    try:
        found = pretrained.weights_digest(base.backbone)
    except DataError as error:
        raise CheckpointError(f"{where}: holds only what training has changed: {error}") from error
    if found != base.sha256:
        raise CheckpointError(
            f"{where}: was stored relative to other ImageNet weights of '{base.backbone}' than those found here "
            "(SHA-256 "
            f"{base.sha256[:12]}…, found {found[:12]}…); get the weights it was trained from"
        )
    expected = model.state_dict()
    return {name: tensor for name, tensor in _named(base.backbone).items() if name in expected}


def _named(backbone: str) -> Tensors:
    """The published weights of ``backbone`` under the names of a model that has it."""
    return {f"backbone.{name}": tensor for name, tensor in pretrained.imagenet_weights(backbone).items()}


def _fitting(beside: Mapping[str, Tensor], model: nn.Module, where: str) -> Tensors:
    """Those tensors in the weights file of the model ``beside`` that ``model`` has too, its parameters in its type."""
    expected = model.state_dict()
    shared = {name: tensor for name, tensor in beside.items() if {name, name.removesuffix(SCALE)} & expected.keys()}
    return _widened(shared, expected, _parameter_names(model), where)


def _is_same(tensor: Tensor, known: Tensor | None) -> bool:
    return known is not None and known.dtype == tensor.dtype and torch.equal(known, tensor)


def _parameter_names(model: nn.Module) -> set[str]:
    return {name for name, _ in model.named_parameters(remove_duplicate=False)}


def _check_types(written: Mapping[str, Tensor], types: Mapping[str, torch.dtype], where: str) -> None:
    """Parameters lie in a file in the types that the facts say."""
    for name, kept in types.items():
        if name in written and written[name].dtype != kept:
            raise CheckpointError(f"{where}: '{name}' should be {kept}, found {written[name].dtype}")


def _check_match(found: Mapping[str, Tensor], expected: Mapping[str, Tensor], where: str) -> None:
    missing, foreign = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    if missing:
        raise CheckpointError(f"{where}: no tensor '{missing[0]}'{_more(missing)}; the weights are of another model")
    _refuse_foreign(foreign, where)
    for name, wanted in expected.items():
        tensor = found[name]
        if tensor.shape != wanted.shape:
            raise CheckpointError(f"{where}: '{name}' should be {tuple(wanted.shape)}, found {tuple(tensor.shape)}")
        if tensor.dtype != wanted.dtype:
            raise CheckpointError(f"{where}: '{name}' should be {wanted.dtype}, found {tensor.dtype}")


def _refuse_foreign(names: list[str], where: str) -> None:
    if names:
        raise CheckpointError(
            f"{where}: unexpected tensor '{names[0][:80]}'{_more(names)}; the weights are of another model"
        )


def _check_finite(tensors: Mapping[str, Tensor], where: str, why: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise CheckpointError(f"{where}: '{name}' holds NaN or infinity; {why}")


def _more(names: list[str]) -> str:
    return f" (and {len(names) - 1} more)" if len(names) > 1 else ""
