"""Builds a model as shapes without numbers, so that huge settings cost no memory before the weights file is checked.

Inside :class:`Sketching` the tensors that a layer makes for its weights and statistics lie on torch's meta device, and
nothing is drawn for them. What a model computes from its settings, such as where its cells lie, has its numbers, so
:func:`with_memory` can make the same model ready for the state of a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_MAKES = frozenset({torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn})
"""What layers make weights and statistics with."""
_FILLS = frozenset({nn.init.uniform_, nn.init.normal_, nn.init.constant_, nn.init.kaiming_uniform_,
                    Tensor.uniform_, Tensor.normal_, Tensor.fill_, Tensor.zero_, Tensor.erfinv_})  # fmt: skip
_META = torch.device("meta")


class Sketching(TorchFunctionMode):
    """A context in which new weights have shapes alone. It holds for the calling thread."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Make a tensor of ``func`` without numbers, and leave out what would fill one."""
        given = dict(kwargs or {})
        if func in _MAKES and given.get("device") is None:
            given["device"] = _META
        elif func in _FILLS and (filled := args[0] if args else given["tensor"]).is_meta:
            return filled
        return func(*args, **given)


def with_memory(sketch: nn.Module) -> bool:
    """Give every tensor of the state of ``sketch`` memory of its own, to be filled by ``load_state_dict``.

    Returns:
        False where the model keeps other tensors without numbers, which no file has: build it anew.
    """
    state = sketch.state_dict(keep_vars=True)
    own = {id(tensor) for tensor in state.values()}
    if any(tensor.is_meta and id(tensor) not in own for tensor in _tensors(sketch)):
        return False

    def filled(tensor: Tensor) -> Tensor:
        return torch.empty(tensor.shape, dtype=tensor.dtype) if tensor.is_meta else tensor

    sketch._apply(filled)  # type: ignore[no-untyped-call]  # torch has no types here
    return True


def _tensors(model: nn.Module) -> Iterator[Tensor]:
    """Parameters, buffers and plain attributes."""
    for module in model.modules():
        for held in (module._parameters, module._buffers, vars(module)):
            yield from (value for value in held.values() if isinstance(value, Tensor))
