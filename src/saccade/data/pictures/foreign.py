"""Foreign pictures by which features are chosen: kinds that no model here learned from, and grey copies of its own.

How well features tell foreign pictures is reported on other kinds.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Maker = Callable[[Tensor, torch.Generator], Tensor]


def uniform_noise(images: Tensor, generator: torch.Generator) -> Tensor:
    """Every number drawn alone."""
    return torch.rand(images.shape, generator=generator)


def gradients(images: Tensor, generator: torch.Generator) -> Tensor:
    """From one colour to another, left to right or top to bottom."""
    count, _, height, width = images.shape
    first, last = torch.rand(2, count, 3, 1, 1, generator=generator)
    across = torch.linspace(0, 1, width).expand(height, width)
    down = torch.linspace(0, 1, height)[:, None].expand(height, width)
    is_across = torch.rand(count, 1, 1, 1, generator=generator) < 0.5
    made: Tensor = first + (last - first) * torch.where(is_across, across, down)
    return made


def grey_copies(images: Tensor, generator: torch.Generator) -> Tensor:
    """Pictures of the right kind without their colours."""
    return images.mean(1, keepdim=True).expand_as(images).contiguous()


CHOOSING: dict[str, Maker] = {"noise": uniform_noise, "gradients": gradients, "grey copies": grey_copies}
"""By which features are chosen; nothing is reported on these."""
