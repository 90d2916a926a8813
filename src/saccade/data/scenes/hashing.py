"""Random numbers by counter: the same integers on every device, in any order and for any batch size.

A draw is a pure function of a seed and a few counters (scene, object, try …).

The state has two 32-bit lanes (a, b), carried in int64. One counter c is taken in by

    a ← mix(a ⊕ low(c))
    b ← mix(b + a ⊕ high(c))

with ``mix`` the 32-bit finaliser "lowbias32" (two odd multipliers, three shifts). Each step is a bijection of the
state, and two counters that differ always part the lanes; b is what a draw returns. Multipliers are below 2³¹, so that
no product leaves int64.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF
_FIRST_MULTIPLIER = 0x7FEB352D
_SECOND_MULTIPLIER = 0x846CA68B - (1 << 32)  # the same residue mod 2³², small enough for an exact int64 product

# Start lanes: digits of pi, so that seed 0 is no special case.
_START = (0x243F6A88, 0x85A308D3)

State = tuple[Tensor, Tensor]
Lane = TypeVar("Lane", int, Tensor)


def hash_state(seed: int, *counters: int | Tensor) -> State:
    """The state after ``seed`` and ``counters``, which broadcast; to be continued by :func:`hash_more`."""
    a, b = hash_words(_START, seed, *counters)
    return torch.as_tensor(a), torch.as_tensor(b)


def hash_more(state: State, *counters: int | Tensor) -> Tensor:
    """The draw that continues ``state`` with ``counters``: int64 values in [0, 2³²)."""
    return hash_words(state, *counters)[1]


def hash_u32(seed: int, *counters: int | Tensor) -> Tensor:
    """A draw in [0, 2³²) as int64, from the seed and any number of non-negative counters, which broadcast.

    >>> hash_u32(0, torch.arange(3)).shape
    torch.Size([3])
    """
    return hash_state(seed, *counters)[1]


def derive_seed(seed: int, *counters: int) -> int:
    """A new seed of 63 bits for a sub-stream (a split, a kind of draw)."""
    a, b = hash_state(seed, *counters)
    return (int(a) << 32 | int(b)) >> 1


def uniform_below(bits: Tensor, bound: int | Tensor) -> Tensor:
    """Integers in [0, bound) from 32 random bits by multiply and shift; the bias is below bound/2³²."""
    return (bits * bound) >> 32


def uniform_pair_below(bits: Tensor, bound: int | Tensor) -> State:
    """Two independent integers in [0, bound) from the same 32 bits: the second from what the first left over.

    The bias of the pair is below bound²/2³².
    """
    product = bits * bound
    return product >> 32, ((product & _MASK) * bound) >> 32


def distinct_below(bits: Tensor, bound: int | Tensor, count: int | Tensor) -> Tensor:
    """A random subset of 0 … bound − 1, every one as likely: its numbers in the first ``count`` columns of each row.

    By Floyd's method: each of ``count`` draws is from one number more than the one before, and a number that is taken
    already becomes the largest it could have been. The order within a row is not random.

    Returns:
        (B, K) int64, of as many random ``bits``; columns from ``count`` on mean nothing. Bound and count may be (B,).
    """
    chosen = torch.empty_like(bits)
    for draw in range(bits.shape[1]):
        largest = bound - count + draw
        number = uniform_below(bits[:, draw], largest + 1)  # (B,)
        taken = (chosen[:, :draw] == number[:, None]).any(dim=1)
        chosen[:, draw] = torch.where(taken, largest, number)
    return chosen


def rounded_normal(bits: Tensor, sigma: float) -> Tensor:
    """Normal draws of standard deviation ``sigma`` rounded to integers, by inverting the distribution in integers."""
    thresholds = _normal_thresholds(sigma, bits.device)
    return torch.bucketize(bits, thresholds, right=True) - len(thresholds) // 2


@lru_cache
def _normal_thresholds(sigma: float, device: torch.device) -> Tensor:
    """P(round(x) ≤ n)·2³² for n from −6σ to 6σ − 1; how many of them a draw reaches is its value plus 6σ."""
    reach = math.ceil(6 * sigma)
    z_scores = ((n + 0.5) / sigma for n in range(-reach, reach))
    return torch.tensor([round(2**31 * math.erfc(-z / math.sqrt(2.0))) for z in z_scores], device=device)


def hash_words(state: tuple[Any, Any], *counters: int | Tensor) -> State:
    """Two words of 32 bits for the price of one draw: both lanes, of which the second is :func:`hash_more`'s.

    Lanes are whole numbers until the first tensor comes, and tensors from then on.
    """
    a, b = state
    for counter in counters:
        a = _mix(a ^ (counter & _MASK))
        b = (b + a) & _MASK
        high = counter >> 32
        b = _mix(b if isinstance(high, int) and high == 0 else b ^ high)
    return a, b


def _mix(x: Lane) -> Lane:
    x = x ^ (x >> 16)  # a new tensor; from here on in place
    x *= _FIRST_MULTIPLIER
    x &= _MASK
    x ^= x >> 15
    x *= _SECOND_MULTIPLIER
    x &= _MASK
    x ^= x >> 16
    return x
