"""Traces of one example whose steps are known beforehand: one read label by label, and a caption."""

import torch

from saccade import geometry
from saccade.trace import AttentionTrace, Look

GRID = (4, 5)
GLIMPSES = torch.tensor([[0, 7], [13, 13], [19, 3], [2, 2]])  # cells of four steps, two glimpses each


def glimpse_trace(labels: int = 2, size: tuple[int, int] = (40, 50)) -> AttentionTrace:
    """Four steps on a grid of 4 × 5 over a picture of ``size``; ``labels`` of them said a label."""
    steps, cells = len(GLIMPSES), GRID[0] * GRID[1]
    frame = geometry.scale_shift((size[1] / GRID[1], size[0] / GRID[0]), (0.0, 0.0))
    generator = torch.Generator().manual_seed(0)
    active = (torch.arange(steps) < labels)[None]  # (1,T)
    maps = [torch.rand(1, steps, *GRID, generator=generator) for _ in range(3)]
    left = maps[0].flatten(2).scatter(2, GLIMPSES[None], 0.0).unflatten(2, GRID)
    policy = torch.full((1, 2 * steps, *GRID), 1 / cells)

    def fed(name: str, weights: torch.Tensor) -> Look:
        return Look(name, "soft", "input", weights, norm="sigmoid", frame=frame, active=active)

    twice = active.repeat_interleave(2, dim=1)
    choice = GLIMPSES.reshape(1, -1)
    looks = (
        fed("saliency", maps[0]),
        Look("covert", "soft", "multiplier", maps[1], frame=frame, active=active),
        fed("priority", maps[2]),
        Look("glimpse", "hard", "policy", policy, norm="softmax", frame=frame, choice=choice, active=twice),
        fed("inhibited", left),
    )
    said = torch.where(active, 1, 3)
    return AttentionTrace(looks, answer=said, image_size=torch.tensor([size]), total="mean").validate()


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
