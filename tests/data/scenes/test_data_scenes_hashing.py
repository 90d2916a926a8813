"""The counter hash: pinned, uniform, avalanching, and the same however draws are grouped."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.scenes.hashing import hash_u32, uniform_below, uniform_pair_below


def plain_hash(seed: int, *counters: int) -> int:
    """The same function in Python's unbounded integers, written from the module's description."""

    def mix(x: int) -> int:
        x ^= x >> 16
        x = x * 0x7FEB352D % 2**32
        x ^= x >> 15
        x = x * 0x846CA68B % 2**32
        return x ^ (x >> 16)

    a, b = 0x243F6A88, 0x85A308D3
    for counter in (seed, *counters):
        a = mix(a ^ counter % 2**32)
        b = mix((b + a) % 2**32 ^ counter >> 32)
    return b


def test_values_are_pinned():
    """Every recorded result depends on these numbers: a change here is a new data set."""
    assert hash_u32(0, torch.arange(3)).tolist() == [2512016629, 3013776045, 957188526]


@given(st.integers(0, 2**63 - 1), st.lists(st.integers(0, 2**62), min_size=1, max_size=4))
def test_agrees_with_unbounded_integers(seed, counters):
    tensors = [torch.tensor([counter]) for counter in counters]
    assert hash_u32(seed, *tensors).tolist() == [plain_hash(seed, *counters)]


def test_uniform_below_reaches_both_ends():
    assert uniform_below(torch.tensor([0, 2**32 - 1, 2**31]), 10).tolist() == [0, 9, 5]
    first, second = uniform_pair_below(hash_u32(0, torch.arange(200_000)), 7)
    joint = torch.bincount(first * 7 + second, minlength=49).double()
    assert ((joint - 200_000 / 49) ** 2 / (200_000 / 49)).sum() < 90  # 48 degrees of freedom
