"""Maps made smooth for display, as Xu et al. (2015, Section 5.4) show theirs: upsampled, then a Gaussian filter.

The paper does not say how wide its filter is. Half a cell is enough to hide the creases that bilinear upsampling leaves
along the cell centres, and too little to move a peak into another cell.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.show.scaling import Values, as_map

WIDTH = 0.5
"""Standard deviation of the filter, in cells."""
_REACH = 3.0  # standard deviations that the kernel goes to each side


def smooth(values: Values, cell: tuple[float, float], width: float = WIDTH) -> Values:
    """``values`` (H,W) under a Gaussian filter; the border goes on as it ends, so a uniform map stays uniform.

    Args:
        values: a map over the picture, already at the size it is shown.
        cell: (width, height) of one cell of the model's grid there, in pixels.
        width: standard deviation of the filter in cells; 0 leaves the map as it is.
    """
    image = torch.from_numpy(values)[None, None]  # (1,1,H,W)
    for axis, side in ((-1, cell[0]), (-2, cell[1])):
        kernel = _gaussian(width * abs(side))  # (K,)
        reach = len(kernel) // 2
        padding, shape = ((reach, reach, 0, 0), (1, 1, 1, -1)) if axis == -1 else ((0, 0, reach, reach), (1, 1, -1, 1))
        image = F.conv2d(F.pad(image, padding, mode="replicate"), kernel.reshape(shape))  # (1,1,H,W)
    return as_map(image[0, 0])


def _gaussian(deviation: float) -> Tensor:
    """A kernel (K,) of odd length that sums to 1; a single 1 for a filter much narrower than a pixel."""
    reach = round(_REACH * deviation)
    if reach == 0:
        return torch.ones(1)
    places = torch.arange(-reach, reach + 1, dtype=torch.float32)
    weights = torch.exp(-0.5 * (places / deviation).square())
    return weights / weights.sum()
