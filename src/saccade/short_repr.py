"""A one-line repr for dataclasses that hold tensors: it shows shapes instead of numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

_LONGEST = 60  # characters of one value
_MOST = 300  # of all


class ShortRepr:
    """Base of dataclasses (with ``repr=False``) whose repr fits a screen; fields that say nothing are left out."""

    def __repr__(self) -> str:
        # a mixin of dataclasses
        held = {item.name: getattr(self, item.name) for item in dataclasses.fields(self)}  # type: ignore[arg-type]
        told = ", ".join(f"{name}={shown(value)}" for name, value in held.items() if not _is_nothing(value))
        return f"{type(self).__name__}({told if len(told) <= _MOST else told[:_MOST] + '…'})"


def shown(value: object) -> str:
    """A value in few characters: a tensor as its shape, a long collection as its length.

    >>> shown([1, 2]), len(shown("x" * 80)), shown(list(range(1000)))
    ('[1, 2]', 60, '[1000 items]')
    """
    shape = getattr(value, "shape", None)
    if shape is not None:
        return f"({','.join(str(length) for length in shape)})"
    if isinstance(value, ShortRepr):
        return type(value).__name__
    if isinstance(value, (list, tuple)) and any(isinstance(each, ShortRepr) for each in value):
        return f"[{', '.join(str(getattr(each, 'name', type(each).__name__)) for each in value)}]"
    if isinstance(value, Mapping) and any(hasattr(each, "shape") for each in value.values()):
        return f"{{{', '.join(f'{name}: {shown(each)}' for name, each in value.items())}}}"
    text = repr(value)
    if len(text) <= _LONGEST:
        return text
    if isinstance(value, (list, tuple, Mapping)):
        return f"[{len(value)} items]"
    return f"{text[: _LONGEST - 2]}…{text[-1]}"


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, (str, tuple, list, Mapping)) and not value)
