"""Small pictures for the tests of models: squares of one colour in the quadrants, each quadrant asked for or none."""

from __future__ import annotations

import torch
from torch import Tensor

QUADRANTS, COLOURS = 4, 3
SQUARES = 2
"""At most, where nothing is asked."""


def quadrant_batch(count: int, seed: int, *, each: bool = False) -> tuple[dict[str, Tensor], Tensor]:
    """Inputs ``images`` (B,3,31,34) and ``query`` (B,), and the colours asked for (B,); a function of the arguments.

    Args:
        count: number of questions B.
        seed: of everything drawn.
        each: ask every picture for each of its quadrants in turn, so that the answers cannot be learned by heart from
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


def squares_batch(count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
    """Inputs ``images`` (B,3,31,34) with up to two squares, and their colours (B,2) in reading order.

    Behind the last colour stands -1. A function of the arguments; one picture in eight is empty.
    """
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 3, 31, 34, generator=generator) * 0.1
    places = torch.rand(count, QUADRANTS, generator=generator).argsort(1)[:, :SQUARES].sort(1).values  # (B,2)
    colours = torch.randint(COLOURS, (count, SQUARES), generator=generator)  # (B,2)
    full = torch.randint(1, SQUARES + 1, (count,), generator=generator) * (torch.arange(count) % 8 != 7)  # (B,)
    labels = colours.masked_fill(torch.arange(SQUARES) >= full[:, None], -1)  # (B,2)
    for picture, slot in (labels >= 0).nonzero().tolist():
        place = int(places[picture, slot])
        top, left = 4 + 14 * (place // 2), 5 + 15 * (place % 2)
        images[picture, labels[picture, slot], top : top + 9, left : left + 9] += 0.9
    return {"images": images}, labels


def square_batch(count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
    """Inputs ``images`` (B,3,31,34) with one square somewhere, and its colour (B,); a function of the arguments."""
    generator = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 3, 31, 34, generator=generator) * 0.1
    colours = torch.randint(COLOURS, (count,), generator=generator)
    top, left = (torch.randint(2, 31 - 11, (count,), generator=generator).tolist() for _ in range(2))
    for picture, (down, across) in enumerate(zip(top, left)):
        images[picture, int(colours[picture]), down : down + 9, across : across + 9] += 0.9
    return {"images": images}, colours
