"""Where a cell of a network really looks: the centre of mass of its gradient in the picture.

A copy of the network is made linear and even (every convolution weight 1, max pooling → mean pooling, activations and
norms → nothing), so that the gradient of a cell is its receptive field and the centre of mass is the field's centre.
Of a transformer, every cell of which sees the whole picture: the cell that a patch changes most.
"""

import copy

import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.backbones.stages import Stages


def made_linear(network: nn.Module) -> nn.Module:
    """A float64 copy of ``network`` without weights of its own: sums and means only."""
    network = copy.deepcopy(network).double().eval()
    for module in list(network.modules()):
        for name, child in module.named_children():
            setattr(module, name, _linear_layer(child))
    return network


def _linear_layer(layer: nn.Module) -> nn.Module:
    if isinstance(layer, nn.Conv2d):
        nn.init.ones_(layer.weight)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
        return layer
    if isinstance(layer, nn.MaxPool2d):
        return nn.AvgPool2d(layer.kernel_size, layer.stride, layer.padding, layer.ceil_mode)
    if isinstance(layer, (nn.ReLU, nn.ReLU6, nn.SiLU, nn.GELU, nn.Hardswish, nn.BatchNorm2d, nn.Dropout)):
        return nn.Identity()
    return layer


def gradient_centre(images: Tensor, features: Tensor, row: int, column: int) -> tuple[float, float]:
    """(x, y), in pixels with centres at k + 0.5, of the centre of mass of ∂features[row, column]/∂images."""
    (gradient,) = torch.autograd.grad(features[0, :, row, column].sum(), images, retain_graph=True)
    mass = gradient[0].sum(0)  # (H,W)
    ys = torch.arange(mass.shape[0], dtype=mass.dtype) + 0.5
    xs = torch.arange(mass.shape[1], dtype=mass.dtype) + 0.5
    return float((mass.sum(0) * xs).sum() / mass.sum()), float((mass.sum(1) * ys).sum() / mass.sum())


def check_bright_patch(backbone: Stages, *, cell: int = 8) -> None:
    """A patch that is made bright changes its own cell most, at every size and shape of the picture.

    Sizes that are no multiple of the patch lose what is left over at the right and the bottom.
    """
    for height, width, row, column in ((32, 32, 1, 2), (48, 80, 5, 7), (45, 71, 3, 7)):
        images = torch.full((2, 3, height, width), 0.5)
        images[1, :, row * cell : (row + 1) * cell, column * cell : (column + 1) * cell] = 1.0
        with torch.no_grad():
            features = backbone(images)
        grid = (height // cell, width // cell)
        assert tuple(features.shape[-2:]) == grid == backbone.grid((height, width))["features"]
        change = (features[1] - features[0]).square().sum(0)  # (h,w)
        assert divmod(int(change.argmax()), grid[1]) == (row, column)
        centre = geometry.apply(backbone.frames["features"], torch.tensor([column + 0.5, row + 0.5]))
        assert centre.tolist() == [cell * (column + 0.5), cell * (row + 0.5)]
