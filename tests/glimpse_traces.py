"""A trace of one example that was read label by label, with every map and glimpse known beforehand."""

from __future__ import annotations

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
