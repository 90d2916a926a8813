"""What the published ImageNet networks share: the statistics of their input, and how their weights start."""

from __future__ import annotations

import torch
from torch import Tensor, nn

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Normalise(nn.Module):
    """RGB pictures 0..1 → (x − mean) / std of each channel; the first layer of a backbone, not a setting of the data.

    The statistics are constants of the network, so they are neither trained nor saved.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: tuple[float, ...] = IMAGENET_MEAN, std: tuple[float, ...] = IMAGENET_STD) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)  # (C,1,1)
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1), persistent=False)  # (C,1,1)

    @property
    def grid_path(self) -> tuple[nn.Module, ...]:
        """Nothing that moves the grid: every pixel stays where it is."""
        return ()

    def forward(self, images: Tensor) -> Tensor:
        """(B,C,H,W) → (B,C,H,W)."""
        return (images - self.mean) / self.std


def start_weights(network: nn.Module) -> None:
    """He-normal convolutions (by fan out), biases zero: how the published networks start before they learn."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
