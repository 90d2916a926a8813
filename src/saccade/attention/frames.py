"""Where the cells of a feature map lie on the picture: the ``frame`` that a mechanism in a network of your own takes.

* :func:`frame_of` asks the network: one empty picture is run through it, and every convolution, pooling, padding, crop
  and resizing says how it moves the grid. Exact for strided networks with branches (ResNet, EfficientNet, ConvNeXt) and
  for networks that cut patches (ViT).
* :func:`frame_like` asks the sizes alone: the cells tile the picture. Exact for patches. A network with odd kernels and
  symmetric padding has its cells up to half a cell further left and up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from saccade import geometry
from saccade.errors import ConfigError, DataError, ShapeError
from saccade.geometry import Size

_MAX_OWN_TOKENS = 64
Box = Sequence[float] | Tensor


def frame_like(features: Tensor | Size, image: object, *, box: Box | None = None) -> Tensor:
    """The frame (2,3) of cells that tile the picture, from the sizes of both.

    Args:
        features: (B,C,h,w) or (h, w).
        image: what the network saw: a tensor (…,H,W), an array (H,W,3), a PIL image, or (H, W).
        box: xyxy, where ``image`` was cut out of a larger picture; the frame then leads to the pixels of that one.

    >>> frame_like((7, 7), (224, 224))[0].tolist()
    [32.0, 0.0, 0.0]
    """
    cells = _last_two(features, "features", "(B,C,h,w)") if isinstance(features, Tensor) else features
    height, width = geometry.checked_size(_size_of(image))
    rows, columns = geometry.checked_size(cells)
    return _in_box(geometry.scale_shift((width / columns, height / rows), (0.0, 0.0)), (height, width), box)


def frame_of(network: nn.Module, input_size: Size, *, channels: int | None = None, box: Box | None = None) -> Tensor:
    """The frame (2,3) of the cells that ``network`` makes of a picture, found by running it once on an empty one.

    Args:
        network: pictures (1,C,H,W) → a feature map (1,D,h,w) or tokens (1,N,D) of a grid of patches.
        input_size: (H, W) of its input.
        channels: C; by default those that its first convolution takes, or 3.
        box: as for :func:`frame_like`.

    >>> frame_of(nn.Sequential(nn.Conv2d(3, 4, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(2)), (32, 32))[0].tolist()
    [4.0, 0.0, -0.5]

    Raises:
        ConfigError: the network returns no grid of cells, or its layers move the grid in a way that does not show.
    """
    height, width = geometry.checked_size(input_size)
    weight = next(network.parameters(), torch.empty(0))
    taken = (module.in_channels for module in network.modules() if isinstance(module, nn.Conv2d))
    shape = (1, channels or next(taken, 3), height, width)
    was_training = [module for module in network.modules() if module.training]
    network.eval()
    try:
        with torch.inference_mode(False), torch.no_grad():  # in inference mode torch does not say what a layer does
            picture = torch.zeros(shape, dtype=weight.dtype, device=weight.device)
            moves = GridTracker(picture)
            with moves:
                output = network(picture)
    finally:
        for module in was_training:
            module.training = True
    name = type(network).__name__
    if not isinstance(output, Tensor) or output.dim() not in (3, 4):
        actual = f"a tensor {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        raise ConfigError(
            f"{name} returns {actual}, not a feature map (B,D,h,w) nor tokens (B,N,D): give the part of it that does"
        )
    grid, frame = moves.grid_and_frame(output)
    spans = (float(grid[0] * frame[1, 1]), float(grid[1] * frame[0, 0]))
    is_whole = all(abs(span - side) < 2 * side / cells for span, side, cells in zip(spans, (height, width), grid))
    more = output.shape[1] - grid[0] * grid[1]  # tokens beside those of the cells: of the class, registers
    if not is_whole or (tuple(output.shape[-2:]) != grid if output.dim() == 4 else not 0 <= more <= _MAX_OWN_TOKENS):
        raise ConfigError(
            f"{name} changes its grid by more than convolutions and poolings, so its frame is not known; if its "
            "cells tile the picture, use frame_like(features, image)"
        )
    return _in_box(frame, (height, width), box)


class GridTracker(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch has no types here
    """Keeps for each tensor that came of ``picture`` its grid (h, w) and the frame of that."""

    def __init__(self, picture: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no types here
        size = (picture.shape[-2], picture.shape[-1])
        self._known: dict[int, tuple[Tensor, Size, Tensor]] = {id(picture): (picture, size, geometry.identity())}

    def stop(self) -> None:
        """Forget all tensors: later ones are then unknown too."""
        self._known.clear()

    def grid_and_frame(self, tensor: Tensor) -> tuple[Size, Tensor]:
        """Grid and frame of ``tensor``."""
        if id(tensor) not in self._known:
            raise ConfigError("the output of the network does not depend on the picture, so it has no frame")
        _, grid, frame = self._known[id(tensor)]
        return grid, frame

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run ``func``; its output has the grid of an input, of its own shape if there is one, moved by the step."""
        output = func(*args, **(kwargs or {}))
        inputs = [self._known[id(leaf)] for leaf in tree_flatten((args, kwargs))[0] if id(leaf) in self._known]
        if not inputs:
            return output
        step = _STEPS.get(func.overloadpacket)
        for result in tree_flatten(output)[0]:
            if not isinstance(result, Tensor):
                continue
            source, grid, frame = next((item for item in inputs if item[0].shape == result.shape), inputs[0])
            if step is not None and source.dim() == 4 and result.dim() == 4:
                named = {item.name: value for item, value in zip(func._schema.arguments, args)} | (kwargs or {})
                frame = geometry.compose(frame, step(named, source, result))
                grid = (result.shape[-2], result.shape[-1])
            self._known[id(result)] = (result, grid, frame)
        return output


Step = Callable[[dict[str, Any], Tensor, Tensor], Tensor]
"""(arguments by name, input, output) → the frame from output cells to input cells."""


def _windowed(named: dict[str, Any], source: Tensor, result: Tensor) -> Tensor:
    kernel = named["weight"].shape[-2:] if "weight" in named else named["kernel_size"]
    stride = named.get("stride") or kernel  # a pooling without one strides by its kernel
    pairs = (kernel, stride, named.get("padding", 0), named.get("dilation", 1))
    frame = geometry.layer_frame(*(_pair(pair) for pair in pairs))
    return geometry.invert(frame) if named.get("transposed") else frame


def _padded(named: dict[str, Any], source: Tensor, result: Tensor) -> Tensor:
    """Cells put around the grid, or with a negative number cut off: (left, right, top, bottom)."""
    left, _, top, _ = (*named.get("pad", named.get("padding", ())), 0, 0)[:4]
    return geometry.scale_shift((1.0, 1.0), (-float(left), -float(top)))


def _cut(named: dict[str, Any], source: Tensor, result: Tensor) -> Tensor:
    """Every k-th row or column from some place on."""
    start, every = float(named.get("start") or 0), float(named.get("step") or 1)
    along = named.get("dim", 0) % 4
    start += source.shape[along] if start < 0 else 0
    keep, thin = (1.0, 0.0), (every, start + (1 - every) / 2)
    x, y = (thin if along == 3 else keep), (thin if along == 2 else keep)
    return geometry.scale_shift((x[0], y[0]), (x[1], y[1]))


def _resized(named: dict[str, object], source: Tensor, result: Tensor) -> Tensor:
    """The same area in another number of cells."""
    y, x = source.shape[-2] / result.shape[-2], source.shape[-1] / result.shape[-1]
    return geometry.scale_shift((x, y), (0.0, 0.0))


_ATEN = torch.ops.aten
_STEPS: dict[Any, Step] = {
    _ATEN.convolution: _windowed,
    _ATEN.max_pool2d_with_indices: _windowed,
    _ATEN.avg_pool2d: _windowed,
    _ATEN.constant_pad_nd: _padded,
    _ATEN.reflection_pad2d: _padded,
    _ATEN.replication_pad2d: _padded,
    _ATEN.slice: _cut,
    _ATEN._adaptive_avg_pool2d: _resized,
    _ATEN.adaptive_max_pool2d: _resized,
    _ATEN.upsample_nearest2d: _resized,
    _ATEN.upsample_bilinear2d: _resized,
    _ATEN.upsample_bicubic2d: _resized,
}


def _pair(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[-1])  # torch tells (k,) or (k, k)


def _size_of(image: Any) -> Size:
    """(H, W) of a picture in any of its forms."""
    if isinstance(image, Tensor):
        return _last_two(image, "image", "(…,H,W)")
    if hasattr(image, "getbands"):  # a PIL image tells (width, height)
        return image.height, image.width
    is_size = isinstance(image, tuple | list) and len(image) == 2
    shape: Sequence[int] = image if is_size else getattr(image, "shape", ())
    if len(shape) not in (2, 3):
        raise DataError(
            f"image: expected a tensor, an array, a PIL image or (height, width), found {type(image).__name__}"
        )
    return shape[0], shape[1]


def _last_two(tensor: Tensor, name: str, expected: str) -> Size:
    if tensor.dim() < (4 if name == "features" else 2):
        raise ShapeError(name, expected, tensor.shape)
    height, width = tensor.shape[-2:]
    return height, width


def _in_box(frame: Tensor, size: Size, box: Box | None) -> Tensor:
    """``frame`` on the picture that the network input was cut from."""
    if box is None:
        return frame
    corners = torch.as_tensor(box, dtype=torch.float64).cpu()  # (4,)
    if corners.shape != (4,) or bool((corners[2:] <= corners[:2]).any()):
        raise DataError(f"box: expected four numbers x1 y1 x2 y2 with an area, found {box}")
    return geometry.compose(geometry.crop_frame(corners, size), frame)
