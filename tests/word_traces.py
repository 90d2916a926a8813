"""A trace of one caption whose maps, gates and words are known beforehand."""

from __future__ import annotations

import torch

from saccade import geometry
from saccade.trace import AttentionTrace, Look

GRID = (4, 5)
CELLS = (6, 7, 13, 19)  # The cell that holds most of the weight, word by word.
GATES = (0.25, 0.5, 1.0, 0.0)
WORDS = (("a", 0.9), ("small", 0.75), ("red", 1.0), ("seven", 0.5))


def word_trace(size: tuple[int, int] = (40, 50), steps: int = 5, *, gates: bool = True) -> AttentionTrace:
    """``steps`` steps on a grid of 4 × 5 over a picture of ``size``: four words, then the end and padding."""
    weights = torch.full((1, steps, GRID[0] * GRID[1]), 0.01)  # (1,T,20)
    for step in range(steps):
        weights[0, step, CELLS[min(step, 3)]] = 0.81
    frame = geometry.scale_shift((size[1] / GRID[1], size[0] / GRID[0]), (0.0, 0.0))
    emits = torch.tensor([[2, 3, 4, 5] + [0] * (steps - 4)])
    gain = torch.tensor([[*GATES, *[0.5] * (steps - 4)]]) if gates else None
    look = Look(
        "word", "soft", "multiplier", weights.unflatten(2, GRID), norm="softmax", frame=frame, gain=gain, emits=emits,
        active=(torch.arange(steps) < 5)[None],
    )  # fmt: skip
    return AttentionTrace((look,), answer=emits, image_size=torch.tensor([size]), total="mean").validate()
