"""Small pictures for the tests of query-guided models: a colour in each quadrant, the query names the quadrant."""

from __future__ import annotations

import torch
from torch import Tensor

QUADRANTS, COLOURS = 4, 3


def quadrant_batch(count: int, seed: int, *, each: bool = False) -> tuple[dict[str, Tensor], Tensor]:
    """Inputs ``images`` (B,3,31,34) and ``query`` (B,), and the colours asked for (B,); a function of the arguments.

    Args:
        count: number of questions B.
        seed: of everything drawn.
        each: ask every picture for each of its quadrants in turn, so that the answers cannot be learnt by heart from
            the pictures alone; otherwise every question has a picture of its own.
    """
    generator = torch.Generator().manual_seed(seed)
    pictures = -(-count // QUADRANTS) if each else count
    images = torch.rand(pictures, 3, 31, 34, generator=generator) * 0.1
    query = torch.randint(QUADRANTS, (pictures,), generator=generator)
    colours = torch.randint(COLOURS, (pictures, QUADRANTS), generator=generator)
    for place in range(QUADRANTS):
        top, left = 4 + 14 * (place // 2), 5 + 15 * (place % 2)
        images[torch.arange(pictures), colours[:, place], top : top + 9, left : left + 9] += 0.9
    if each:
        images, colours = (tensor.repeat_interleave(QUADRANTS, 0)[:count] for tensor in (images, colours))
        query = torch.arange(count) % QUADRANTS
    return {"images": images, "query": query}, colours.gather(1, query[:, None]).squeeze(1)
