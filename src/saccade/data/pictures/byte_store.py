"""Numbered byte tensors of one shape, decoded by a pool of threads and kept on the device up to a limit.

All of them are decoded once when the store is made, so what cannot be read is known before the first batch and a batch
always has its full size. As many as the limit allows stay on the device, the first ones for good: in shuffled epochs
each is as likely to be asked for as any other, so replacing one by another would gain nothing. The rest is decoded
again whenever it is asked for.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import torch
from torch import Tensor

from saccade.errors import DataError

_AT_ONCE = 256  # decoded before they go to the device together


class ByteStore:
    """Numbers 0 … count − 1 to byte tensors.

    Args:
        count: how many there are.
        decode: number → uint8 tensor of ``shape``; called from several threads. What it raises as DataError makes that
            number unreadable.
        shape: of each tensor.
        device: where they are kept.
        limit: bytes kept at most.
        progress: called with (decoded, count).
    """

    def __init__(
        self,
        count: int,
        decode: Callable[[int], Tensor],
        shape: tuple[int, ...],
        device: torch.device | str = "cpu",
        *,
        limit: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._decode = decode
        self.unreadable: dict[int, str] = {}
        """Number → what is wrong with it. Asking for one of these is the caller's mistake."""
        kept = min(count, limit // max(1, math.prod(shape)))
        self._kept = torch.zeros((kept, *shape), dtype=torch.uint8, device=device)
        self._all_kept = kept == count
        for start in range(0, count, _AT_ONCE):
            stop = min(start + _AT_ONCE, count)
            made = dict(zip(range(start, stop), self._pool.map(self._try, range(start, stop))))
            self.unreadable |= {number: found for number, found in made.items() if isinstance(found, str)}
            readable = {number: found for number, found in made.items() if not isinstance(found, str) and number < kept}
            if readable:
                self._kept[list(readable)] = torch.stack(list(readable.values())).to(device)
            if progress is not None:
                progress(stop, count)

    def take(self, numbers: Tensor) -> Tensor:
        """The tensors ``numbers`` (B,), repeats allowed: (B, *shape) uint8 on the device."""
        if self._all_kept:
            return self._kept[numbers.to(self._kept.device)]
        numbers = numbers.cpu()
        to_decode = numbers >= len(self._kept)  # (B,)
        taken = self._kept.new_empty(len(numbers), *self._kept.shape[1:])
        taken[~to_decode] = self._kept[numbers[~to_decode].to(self._kept.device)]
        decoded = list(self._pool.map(self._decode, numbers[to_decode].tolist()))
        if decoded:
            taken[to_decode] = torch.stack(decoded).to(self._kept.device)
        return taken

    def _try(self, number: int) -> Tensor | str:
        """The tensor, or what is wrong with it."""
        try:
            return self._decode(number)
        except DataError as error:
            return str(error)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(min(16, os.cpu_count() or 1), thread_name_prefix="decode")
