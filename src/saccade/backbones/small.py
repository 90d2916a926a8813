"""The small convolutional stack of the attribute experiments: four times {3×3 convolution, ReLU, 2×2 max pooling}.

Paper: Seo et al., 2016 (arXiv:1606.02393), Section 5.1; sizes from its authors' released code: **valid** convolutions,
and a pooling that drops the odd border, so a 100×100 picture becomes 49², 23², 10² and 4² cells. The 4×4 map therefore
does not tile the picture: its cell centres lie at 23, 39, 55 and 71 pixels. Same-padding would give another resolution.

Deviations from the paper: Glorot-uniform initial weights come from the released code, not from the paper.
"""

from __future__ import annotations

from collections import OrderedDict

import torch
from torch import Tensor, nn

from saccade.backbones.stages import Stages


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
