"""Orders captions so that every batch has (nearly) one caption length and little padding.

Xu et al., "Show, Attend and Tell" (arXiv:1502.03044, §4.3), draw a length and then 64 captions of it. Here an epoch is
a permutation: captions are sorted by length, equal ones shuffled, cut into batches, and the batches shuffled.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.data.scenes.hashing import hash_u32, uniform_below

_TIES, _SHORT, _BATCHES = range(3)  # streams of draws within an epoch


def bucketed_order(lengths: Tensor, batch_size: int, seed: int, epoch: int) -> Tensor:
    """(N,) the numbers 0 … N − 1 in an order to be cut into batches of ``batch_size``; a function of its arguments.

    What does not fill a batch is a batch of its own at the end, cut from anywhere among the lengths: whoever leaves it
    out does not leave out the longest captions every time.

    Args:
        lengths: (N,) of the captions.
        batch_size: of all batches but the last.
        seed: of the shuffles.
        epoch: which shuffle.
    """
    count = len(lengths)
    full, rest = divmod(count, batch_size)
    shuffled = torch.argsort(hash_u32(seed, epoch, _TIES, torch.arange(count)), stable=True)  # (N,)
    by_length = shuffled[torch.argsort(lengths.cpu()[shuffled], stable=True)]  # (N,)
    cut = int(uniform_below(hash_u32(seed, epoch, _SHORT), full + 1)) * batch_size  # where the short batch begins
    short, rows = by_length[cut : cut + rest], torch.cat([by_length[:cut], by_length[cut + rest :]])
    batches = rows.view(full, batch_size)
    order = torch.argsort(hash_u32(seed, epoch, _BATCHES, torch.arange(full)), stable=True)  # (full,)
    return torch.cat([batches[order].flatten(), short])
