"""Sees each attention call of a forward pass, and computes the rows of its weights that are wanted.

softmax(s·Q Kᵀ + M) V is computed in three ways; each is caught where it is called:

* ``scaled_dot_product_attention``, which never returns its weights: wanted rows are computed again from Q, K, M and s.
* ``nn.MultiheadAttention``: the same function is called again with the wanted rows as its queries. Its fast path of
  eval mode is not taken while a function mode is active.
* eager code, a softmax over the last axis that multiplies values: the weights are there, and wanted rows are copied.

:class:`AttentionCalls` is a function mode of torch: it belongs to the thread that entered it, for the length of its
``with`` block.

Axes: B examples, h heads, Q query rows, K keys, d channels of a head.
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from saccade.errors import ConfigError

QueryRows = Tensor | None  # (R,) numbers of query rows; None: all of them

_active = threading.local()


@dataclass(frozen=True, eq=False)
class AttentionCall:
    """One attention call, while it happens."""

    lead: tuple[int, ...]  # axes before queries and keys: (B, h), or (B·h,) of code that has them in one
    queries: int
    keys: int
    source: Tensor  # computed from the keys: says where they lie on the picture
    weights: Callable[[QueryRows], Tensor]  # rows → (*lead, R, K), which multiplied the values

    def heads(self, batch: int) -> int | None:
        """How many heads there are, if the call is about ``batch`` pictures; None where it is about something else."""
        if len(self.lead) == 2:
            return self.lead[1] if self.lead[0] == batch else None
        if len(self.lead) == 1 and self.lead[0] % batch == 0:
            return self.lead[0] // batch
        return None

    def rows(self, batch: int, rows: QueryRows = None) -> Tensor:
        """(B,h,R,K) weights of ``rows``, in float32 or wider; they share no memory with the model."""
        weights = self.weights(rows).detach()
        weights = weights.reshape(batch, -1, *weights.shape[-2:])  # (B,h,R,K)
        wide = _wide(weights)
        return wide.clone() if wide.data_ptr() == weights.data_ptr() else wide


class AttentionCalls(TorchFunctionMode):
    """Calls ``visit`` with each attention call of what runs inside its ``with`` block, before the call returns."""

    def __init__(self, visit: Callable[[AttentionCall], None]) -> None:
        super().__init__()
        self._visit = visit
        self._weights: Tensor | None = None  # what a softmax made and nothing has multiplied yet

    def __enter__(self) -> AttentionCalls:
        """Watch from here on; a ConfigError inside another one of this thread."""
        if getattr(_active, "is_on", False):
            raise ConfigError("trace_of was called while it runs a model in this thread: end the first call before")
        super().__enter__()  # type: ignore[no-untyped-call]  # torch has no types here
        _active.is_on = True
        return self

    def __exit__(self, *error: Any) -> None:
        """Watch no more."""
        _active.is_on = False
        super().__exit__(*error)  # type: ignore[no-untyped-call]  # torch has no types here

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run ``func`` as it is; tell of it if it is attention."""
        named = kwargs or {}
        if func is F.scaled_dot_product_attention:
            self._visit(_scaled_dot_product(*args, **named))
        elif func is F.multi_head_attention_forward:
            self._visit(_multi_head(args, named))
        elif self._weights is not None and func in _PRODUCTS and _is_left(func, args, self._weights):
            self._visit(_eager(self._weights))
            self._weights = None
        result = func(*args, **named)
        if func in _SOFTMAXES:
            self._weights = result if _is_over_keys(result, args, named) else None
        elif self._weights is not None and func in _KEEPING and args and args[0] is self._weights:
            is_kept = isinstance(result, Tensor) and result.shape[-2:] == self._weights.shape[-2:]
            self._weights = result if is_kept else None
        return result


def _scaled_dot_product(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> AttentionCall:
    """Arguments and meaning as torch has them; the weights are computed when they are asked for."""
    queries, keys = query.shape[-2], key.shape[-2]

    def weights(rows: QueryRows) -> Tensor:
        chosen = _wide(query if rows is None else query.index_select(-2, rows))  # (B,h,R,d)
        all_keys = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3) if enable_gqa else key  # (B,h,K,d)
        scores = chosen @ _wide(all_keys).transpose(-2, -1)  # (B,h,R,K)
        scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
        if attn_mask is not None:
            mask = attn_mask if rows is None or attn_mask.shape[-2] == 1 else attn_mask.index_select(-2, rows)
            scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
        if is_causal:
            number = torch.arange(queries, device=query.device) if rows is None else rows
            scores = scores.masked_fill(torch.arange(keys, device=query.device) > number[:, None], -math.inf)
        is_shut = scores.amax(-1, keepdim=True) == -math.inf  # a row that may see nothing: torch gives it zeros
        return scores.softmax(-1).masked_fill(is_shut, 0.0)  # (B,h,R,K)

    return AttentionCall(tuple(query.shape[:-2]), queries, keys, key, weights)


def _wide(tensor: Tensor) -> Tensor:
    return tensor if tensor.dtype == torch.float64 else tensor.float()


_MULTI_HEAD = tuple(inspect.signature(F.multi_head_attention_forward).parameters)


def _multi_head(args: Sequence[Any], named: dict[str, Any]) -> AttentionCall:
    """The function behind ``nn.MultiheadAttention``, whose tensors are (tokens, B, channels)."""
    arguments = {**dict(zip(_MULTI_HEAD, args)), **named}
    query, key = arguments["query"], arguments["key"]
    queries, keys = query.shape[0], key.shape[0]

    def weights(rows: QueryRows) -> Tensor:
        changed: dict[str, Any] = {"need_weights": True, "average_attn_weights": False}
        changed |= {"is_causal": False, "training": False}
        mask = arguments.get("attn_mask")
        if rows is not None:
            changed["query"] = query.index_select(0, rows)  # (R,B,E)
            changed["attn_mask"] = None if mask is None else mask.index_select(-2, rows)  # (R,K) or (B·h,R,K)
        # need_weights is set: they are no None
        computed: Tensor = F.multi_head_attention_forward(**{**arguments, **changed})[1]  # type: ignore[assignment]
        return computed  # (B,h,R,K)

    lead = (query.shape[1], arguments["num_heads"]) if query.dim() == 3 else ()
    return AttentionCall(lead, queries, keys, key, weights)


_SOFTMAXES = frozenset({torch.softmax, Tensor.softmax, F.softmax, torch.special.softmax})
_PRODUCTS = frozenset({torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm, torch.einsum})
_KEEPING = frozenset(
    {F.dropout, torch.dropout, Tensor.to, Tensor.type_as, Tensor.type, Tensor.float, Tensor.half, Tensor.bfloat16}
    | {Tensor.contiguous, Tensor.view, Tensor.reshape, torch.reshape}
)
"""What may happen to weights between their softmax and the product: their rows stay rows."""


def _is_over_keys(result: object, args: Sequence[object], named: dict[str, object]) -> bool:
    """Whether a softmax ran over the last axis of something with rows and columns for each head."""
    dim = named.get("dim", args[1] if len(args) > 1 else None)
    return isinstance(result, Tensor) and result.dim() in (3, 4) and dim in (-1, result.dim() - 1)


def _is_left(func: Any, args: Sequence[Any], weights: Tensor) -> bool:
    """Whether the product is weights times values: (…,Q,K) and (…,K,d)."""
    if func is not torch.einsum:
        return args[0] is weights
    if len(args) != 3 or args[1] is not weights or "->" not in args[0]:
        return False
    left, product = args[0].replace(" ", "").split("->")
    first, second = left.split(",")
    return first[-1] not in product and first[-1] in second and first[-2] in product


def _eager(computed: Tensor) -> AttentionCall:
    def weights(rows: QueryRows) -> Tensor:
        return computed if rows is None else computed.index_select(-2, rows)  # (…,R,K)

    return AttentionCall(tuple(computed.shape[:-2]), computed.shape[-2], computed.shape[-1], computed, weights)
