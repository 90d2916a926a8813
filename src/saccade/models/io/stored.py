"""What a weights file holds of a model: the tensors that differ from the base weights, in the requested type.

A model that started from published ImageNet weights keeps the tensors that training has changed; the others are read
from the published weights again when it is loaded, once their digest is the one that was noted.

As ``int8``, a parameter that has rows lies in the file as whole numbers, and beside it, as ``NAME.scale``, are the
scales of its rows; the other parameters are float16. The numbers of a row (first axis) are whole multiples, −127 …
127, of its scale, which is a 127th of its largest absolute value and is kept as bfloat16, which has every magnitude
that float32 has: eight bits of scale times seven of the number fit into the 24 of a float32, so no product is
rounded. Hence what has been rounded once stays as it is: the largest number of a row is 127 scales, exactly, and
gives the same scale again. Smaller scales, which clip the largest numbers of a row for the sake of the others, were
tried: the best of 80 lowers the squared error of trained models by 2 %, as rows of some hundred numbers have no long
tails.

Kernels that see pixels are not for rounding. A flat ground makes all errors of such a row pull the same way, and
everything behind it was trained on what that ground looked like: with them rounded, ``sat-soft-scenes`` said 41.9 % of
the first 1,000 test scenes exactly instead of 98.7 %, and none of the empty ones; without, it loses nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from saccade.backbones import pretrained
from saccade.errors import CheckpointError, ConfigError, DataError, MissingExtraError
from saccade.models.base import ImageModel
from saccade.models.io.facts import Base, StoredType
from saccade.untrusted import Entry

Tensors = dict[str, Tensor]
SCALE = ".scale"
"""Behind the name of a parameter; a parameter has no parts, so no tensor of a model is called so."""
LARGEST = 127
SHORTEST_ROW = 3
"""Numbers in a row; a shorter one would not be smaller than as float16."""
MIN_CHANNELS = 4
"""That a kernel runs over: fewer have those that see pixels, and those of one channel each, which are small."""
_NAMES = {
    torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
    torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL",
}  # fmt: skip
"""What safetensors calls the types of tensors."""


def to_stored(model: nn.Module, dtype: StoredType, *, whole: bool = False) -> tuple[Tensors, Base | None]:
    """The tensors to be written, and the ImageNet weights that have the others; None where these have none.

    With ``whole`` those of ImageNet are written too, so that the model loads where they are not. Parameters are written
    as ``dtype``; buffers, among them the running statistics of norms, as they are: a variance may be beyond what
    float16 holds, and they are few.
    """
    tensors = {name: tensor.detach().cpu() for name, tensor in model.state_dict().items()}
    _check_finite(tensors, "the model to be saved", "the training diverged")
    parameters = _parameter_names(model)
    base, published = (None, {}) if whole else _base_of(model)
    written: Tensors = {}
    left_out = {name for name, tensor in tensors.items() if _is_same(tensor, published.get(name))}
    for name, tensor in tensors.items():
        if name not in left_out:
            written |= _narrowed(name, tensor, dtype) if name in parameters else {name: tensor.contiguous().clone()}
    why = f"it is too large for {dtype}; save it as float32"
    _check_finite(_widened(written, tensors, parameters), "the model to be saved", why)
    return written, base if left_out else None


def published_tensors(model: nn.Module, base: Base | None, where: str) -> Tensors:
    """The tensors of ``model`` that ``base`` has; a CheckpointError where these weights are not here."""
    if base is None:
        return {}
    if not isinstance(model, ImageModel) or base.backbone != getattr(model.config, "backbone", None):
        raise CheckpointError(f"{where}: needs ImageNet weights of '{base.backbone}', which the model does not have")
    try:
        found = pretrained.weights_digest(base.backbone)
    except DataError as error:
        raise CheckpointError(f"{where}: holds only what training has changed: {error}") from error
    if found != base.sha256:
        raise CheckpointError(
            f"{where}: was stored relative to other ImageNet weights of '{base.backbone}' than those found here "
            f"(SHA-256 {base.sha256[:12]}…, found {found[:12]}…); get the weights it was trained from"
        )
    expected = model.state_dict()
    return {name: tensor for name, tensor in _named(base.backbone).items() if name in expected}


def check_header(
    header: Mapping[str, Entry], model: nn.Module, dtype: StoredType, published: Tensors, where: str
) -> None:
    """Refuse a weights file that, together with ``published``, has not all tensors of ``model`` in type and shape."""
    expected: dict[str, Entry] = {}
    parameters = _parameter_names(model)
    for name, tensor in model.state_dict().items():
        kept = _stored_type(tensor, dtype) if name in parameters else tensor.dtype
        expected[name] = Entry(_NAMES[kept], tuple(tensor.shape))
        if kept == torch.int8:
            expected[name + SCALE] = Entry("BF16", tuple(tensor.shape[:1]))
    left_out = published.keys() | {name + SCALE for name in published}
    wrong = [f"no tensor '{name}'" for name in sorted(expected.keys() - header.keys() - left_out)]
    for name, entry in sorted(header.items()):
        wanted = expected.get(name, "no such tensor")
        if entry != wanted:
            wrong.append(f"'{name[:80]}' should be {wanted}, found {entry}")
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise CheckpointError(f"{where}: {wrong[0]}{more}; the weights are of another model")


def from_stored(written: Tensors, model: nn.Module, published: Tensors, where: str) -> Tensors:
    """The whole state of ``model`` in its own types, from what :func:`to_stored` wrote."""
    whole = published | _widened(written, model.state_dict(), _parameter_names(model))
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


def _widened(written: Tensors, expected: Tensors, parameters: set[str]) -> Tensors:
    """What a weights file holds, the parameters in the types of ``expected`` and without the scales of their rows."""
    wide = dict(written)
    for name in parameters & written.keys():
        if wide[name].dtype == torch.int8:
            wide[name] = from_rows(wide[name], wide.pop(name + SCALE))
        wide[name] = wide[name].to(expected[name].dtype)
    return wide


def _base_of(model: nn.Module) -> tuple[Base | None, Tensors]:
    """The published weights that ``model`` started from, under the names that it has for them."""
    if not isinstance(model, ImageModel) or not getattr(model.config, "pretrained", False):
        return None, {}
    name = model.config.backbone
    try:
        return Base(name, pretrained.weights_digest(name)), _named(name)
    except (MissingExtraError, DataError):  # trained where they were, saved where they are not: everything is written
        return None, {}


def _named(backbone: str) -> Tensors:
    """The published weights of ``backbone`` under the names of a model that has it."""
    return {f"backbone.{name}": tensor for name, tensor in pretrained.imagenet_weights(backbone).items()}


def _is_same(tensor: Tensor, known: Tensor | None) -> bool:
    return known is not None and known.dtype == tensor.dtype and torch.equal(known, tensor)


def _parameter_names(model: nn.Module) -> set[str]:
    return {name for name, _ in model.named_parameters(remove_duplicate=False)}


def _check_finite(tensors: Mapping[str, Tensor], where: str, why: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise CheckpointError(f"{where}: '{name}' holds NaN or infinity; {why}")


class Int8Rows(NamedTuple):
    """A parameter as it is written."""

    numbers: Tensor
    """int8, in the shape of the parameter."""
    scales: Tensor
    """bfloat16, (rows,)."""


def has_rows(shape: torch.Size) -> bool:
    """Whether a parameter of this shape is rounded by rows; others, as biases and the weights of norms, are few."""
    if len(shape) < 2 or shape[1:].numel() < SHORTEST_ROW:
        return False
    return len(shape) == 2 or shape[1] >= MIN_CHANNELS


def to_rows(parameter: Tensor) -> Int8Rows:
    """Round ``parameter``, whose values are finite, to the nearest multiples of the scales of its rows."""
    rows = parameter.float().flatten(1)  # (R,C)
    scales = (rows.abs().amax(1) / LARGEST).bfloat16()  # (R,)
    scales[scales < torch.finfo(torch.bfloat16).tiny] = 0  # so small that it would lose its bits: a row of zeros
    steps = scales.float().where(scales > 0, torch.inf)[:, None]  # (R,1)
    numbers = (rows / steps).round().clamp(-LARGEST, LARGEST).to(torch.int8)  # (R,C)
    return Int8Rows(numbers.view(parameter.shape), scales)


def from_rows(numbers: Tensor, scales: Tensor) -> Tensor:
    """The parameter as float32."""
    return (numbers.flatten(1) * scales.float()[:, None]).view(numbers.shape)


def load_matching(model: nn.Module, weights: Mapping[str, Tensor], where: str) -> tuple[str, ...]:
    """Give ``model`` those of ``weights`` that fit it.

    Args:
        model: whatever it has begun with.
        weights: by the name of their place.
        where: what they come from, for messages.

    Returns:
        The places that keep what they had.

    Raises:
        ConfigError: no weight that can be learned fits.
    """
    places = model.state_dict()
    fitting = {
        name: weights[name] for name, own in places.items() if name in weights and weights[name].shape == own.shape
    }
    if not fitting.keys() & {name for name, _ in model.named_parameters()}:
        raise ConfigError(
            f"start: nothing of {where} fits this model, which has {_few(list(places))} where that has "
            f"{_few(list(weights))}; start from a model of the same kind and sizes"
        )
    model.load_state_dict(fitting, strict=False)
    return tuple(name for name in places if name not in fitting)


def _few(names: list[str]) -> str:
    return ", ".join(names[:2]) + (" …" if len(names) > 2 else "")
