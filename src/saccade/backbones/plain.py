"""Networks without shortcuts, small and VGG; and what all networks share: their input, and how weights start.

What the published ImageNet networks share: the statistics of their input, and how their weights start.

The small convolutional stack of the attribute experiments: four times {3×3 convolution, ReLU, 2×2 max pooling}.

Paper: Seo et al., 2016 (arXiv:1606.02393), Section 5.1; sizes from its authors' released code: **valid** convolutions,
and a pooling that drops the odd border, so a 100×100 picture becomes 49², 23², 10² and 4² cells. The 4×4 map therefore
does not tile the picture: its cell centres lie at 23, 39, 55 and 71 pixels. Same-padding would give another resolution.

Deviations from the paper: Glorot-uniform initial weights come from the released code, not from the paper.

VGG-16 and VGG-19, convolutions only: five blocks of 3×3 convolutions, each followed by a 2×2 max pooling.

Paper: Simonyan and Zisserman, "Very Deep Convolutional Networks", 2015 (arXiv:1409.1556), Table 1, columns D and E.
The convolutions of a block and its pooling are stages of their own, because heads attach on both sides: to "pool3",
"pool4" and "pool5" (Seo et al., 2016) and to the 14×14×512 map "conv5" before the last pooling (Xu et al., 2015).

Deviations from the paper: no fully connected layers; He-normal initial weights instead of training in steps of depth.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from saccade.backbones.stages import Stages

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


class HalvingPool(nn.MaxPool2d):
    """2×2 max pooling. For inference on a CPU it is two maxima of neighbours, which take less than half the time.

    torch's pooling also notes where each maximum lies, for a gradient that inference does not have. The values are the
    same to the last bit.
    """

    def __init__(self) -> None:
        super().__init__(2)

    def forward(self, features: Tensor) -> Tensor:
        """(B,C,H,W) → (B,C,⌊H/2⌋,⌊W/2⌋)."""
        is_inferring = not torch.compiler.is_compiling() and torch.is_inference_mode_enabled()  # a compiler cannot ask
        on_cpu = is_inferring and features.device.type == "cpu"
        if not (on_cpu and features.is_contiguous(memory_format=torch.channels_last)):
            pooled: Tensor = super().forward(features)
            return pooled
        even = features[..., : features.shape[2] // 2 * 2, : features.shape[3] // 2 * 2]  # an odd border is dropped
        rows = torch.maximum(even[:, :, ::2], even[:, :, 1::2])  # (B,C,H/2,W)
        return torch.maximum(rows[..., ::2], rows[..., 1::2])


def small_stack(*, channels: int = 32, depth: int = 4, in_channels: int = 3) -> Stages:
    """``depth`` stages "stage1" … of {valid 3×3 convolution, ReLU, 2×2 max pooling}.

    >>> small_stack().grid((100, 100))
    {'stage1': (49, 49), 'stage2': (23, 23), 'stage3': (10, 10), 'stage4': (4, 4)}
    """
    stages: OrderedDict[str, nn.Module] = OrderedDict()
    for number in range(1, depth + 1):
        convolution = nn.Conv2d(in_channels if number == 1 else channels, channels, 3)
        nn.init.xavier_uniform_(convolution.weight)
        nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]  # it was made with a bias
        # Rectifying and taking the maximum commute; pooling first leaves a quarter of the cells to rectify.
        stages[f"stage{number}"] = nn.Sequential(convolution, HalvingPool(), nn.ReLU(inplace=True))
    return Stages(stages, dict.fromkeys(stages, channels))


CONVOLUTIONS: dict[int, tuple[int, ...]] = {16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}
"""Layers → convolutions in each block."""
_WIDTHS = (1, 2, 4, 8, 8)


def vgg(layers: int, *, width: int = 64) -> Stages:
    """Stages "conv1", "pool1" … "conv5", "pool5" of the VGG net of 16 or 19 ``layers``; ``width`` channels in "conv1".

    >>> grid = vgg(19).grid((224, 224))
    >>> grid["conv5"], grid["pool5"]
    ((14, 14), (7, 7))
    """
    stages: OrderedDict[str, nn.Module] = OrderedDict()
    channels: dict[str, int] = {}
    incoming, index = 3, 0  # layers bear their place in the published list of features, which names their weights
    for block, count in enumerate(CONVOLUTIONS[layers], start=1):
        outgoing = width * _WIDTHS[block - 1]
        convolutions: OrderedDict[str, nn.Module] = OrderedDict()
        if block == 1:
            convolutions["normalise"] = Normalise()
        for _ in range(count):
            convolutions[str(index)] = nn.Conv2d(incoming, outgoing, 3, padding=1)
            convolutions[str(index + 1)] = nn.ReLU(inplace=True)
            incoming, index = outgoing, index + 2
        stages[f"conv{block}"] = nn.Sequential(convolutions)
        stages[f"pool{block}"] = nn.MaxPool2d(2)
        index += 1
        channels |= {f"conv{block}": outgoing, f"pool{block}": outgoing}
    network = Stages(stages, channels)
    start_weights(network)
    return network


def vgg_key(key: str) -> str:
    """The name, in the weights in circulation, of the entry ``key`` of the state of :func:`vgg`."""
    _, _, layer = key.split(".", 2)  # stages.conv2.5.weight: layers are numbered through, whatever their stage
    return f"features.{layer}"
