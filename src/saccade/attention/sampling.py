"""Samples from a categorical distribution without reading back from the device, so it works inside a CUDA graph.

The Gumbel-max trick: the largest of logits plus independent Gumbel noise is a draw from their softmax. Unlike
``torch.multinomial`` it needs no synchronisation, and the noise of a whole rollout can be drawn at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def gumbel_noise(shape: Sequence[int], *, like: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Independent standard Gumbel noise of ``shape``, on the device of ``like``.

    Always float32 or wider: bfloat16 is too coarse to draw in.

    >>> gumbel_noise((2, 3), like=torch.zeros(1, dtype=torch.bfloat16)).dtype
    torch.float32
    """
    dtype = torch.promote_types(like.dtype, torch.float32)
    uniform = torch.rand(tuple(shape), generator=generator, dtype=dtype, device=like.device)
    return -torch.log(-torch.log(uniform))


def gumbel_max(logits: Tensor, noise: Tensor | None) -> Tensor:
    """A draw from softmax(logits) by its ``noise`` of the same shape (…,N), or without noise the likeliest: (…)."""
    return (logits if noise is None else logits.detach() + noise).argmax(-1)
