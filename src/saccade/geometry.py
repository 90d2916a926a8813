"""The only place with coordinates: frames, crops, canvases and the projection of maps onto pictures.

Conventions:

* A grid of W cells spans [0, W]; cell k covers [k, k+1] and has its **centre at k + 0.5**. Pixels are cells.
* A **frame** is an affine map (…,2,3) from the coordinates of one grid to another: ``[x', y'] = A [x, y] + t``.
  A look's frame goes from its cells to the pixels of the network input; a **canvas** goes from the network input to
  the original picture, upright as a viewer shows it (any EXIF rotation is applied when the picture is read).
* Points are (x, y), sizes are (height, width), boxes are xyxy in pixels. Where a layer wants normalised coordinates
  they are in [-1, 1] with ``align_corners=False``: -1 and 1 are the outer edges of the outer cells.

**Projection**: bilinear between cell centres, the edge cells extended to the border, so a uniform map stays uniform and
every pixel gets a value.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.errors import ConfigError, DataError
from saccade.files import MAX_PIXELS

Size = tuple[int, int]
Pair = int | tuple[int, int]


def checked_size(size: Size) -> Size:
    """``size`` as (height, width) in whole pixels, or a DataError."""
    try:
        height, width = (operator.index(side) for side in size)
    except (TypeError, ValueError):
        height = width = 0
    if min(height, width) < 1 or height * width > MAX_PIXELS:
        raise DataError(f"size: expected (height, width), 1 to {MAX_PIXELS:,} pixels together, found {size!r}")
    return height, width


def identity(*batch: int) -> Tensor:
    """The frame that changes nothing, (*batch,2,3), in main memory."""
    return torch.eye(2, 3, dtype=torch.float64, device="cpu").expand(*batch, 2, 3)


def scale_shift(scale: tuple[float, float], shift: tuple[float, float]) -> Tensor:
    """The frame x' = scale_x · x + shift_x, y' = scale_y · y + shift_y; both pairs are (x, y).

    It stays in main memory on torch's meta device too, so a model built without numbers knows where its cells lie.
    """
    rows = [[scale[0], 0.0, shift[0]], [0.0, scale[1], shift[1]]]
    return torch.tensor(rows, dtype=torch.float64, device="cpu")


def compose(outer: Tensor, inner: Tensor) -> Tensor:
    """The frame that applies ``inner`` first, then ``outer``; batch axes broadcast."""
    outer, inner = _same_kind(outer, inner)
    linear = outer[..., :2] @ inner[..., :2]  # (…,2,2)
    shift = outer[..., :2] @ inner[..., 2:] + outer[..., 2:]  # (…,2,1)
    return torch.cat([linear, shift], dim=-1)  # (…,2,3)


def invert(frame: Tensor) -> Tensor:
    """The frame that undoes ``frame``."""
    a, b, tx, c, d, ty = frame.flatten(-2).unbind(-1)
    det = a * d - b * c
    rows = torch.stack([d, -b, b * ty - d * tx, -c, a, c * tx - a * ty], dim=-1) / det.unsqueeze(-1)
    return torch.unflatten(rows, -1, (2, 3))  # (…,2,3)


def apply(frame: Tensor, points: Tensor) -> Tensor:
    """Map points (…,2) as (x, y) through ``frame`` (2,3) or with matching leading axes."""
    frame, points = _same_kind(frame, points)
    return (frame[..., :2] * points.unsqueeze(-2)).sum(-1) + frame[..., 2]  # (…,2)


def apply_to_boxes(frame: Tensor, boxes: Tensor) -> Tensor:
    """Map boxes (…,4) xyxy through ``frame``: the upright box round where the four corners go; NaN stays NaN."""
    x0, y0, x1, y1 = boxes.unbind(-1)
    corners = torch.unflatten(torch.stack([x0, y0, x1, y0, x0, y1, x1, y1], dim=-1), -1, (4, 2))  # (…,4,2)
    placed = apply(frame.unsqueeze(-3), corners)  # (…,4,2)
    return torch.cat([placed.amin(-2), placed.amax(-2)], dim=-1)  # (…,4)


def _same_kind(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in their widest common float type, on the device of the last one."""
    dtype = tensors[0].dtype
    for tensor in tensors[1:]:
        dtype = torch.promote_types(dtype, tensor.dtype)
    return tuple(tensor.to(device=tensors[-1].device, dtype=dtype) for tensor in tensors)


def layer_frame(kernel: Pair, stride: Pair = 1, padding: Pair = 0, dilation: Pair = 1) -> Tensor:
    """Frame of a convolution or pooling layer: its output cells → its input cells.

    Output cell j sees input cells j·s − p … j·s − p + (k−1)·d; its centre is the centre of that span. With centres at
    k + 0.5 this is x' = s·x + (1 − s)/2 − p + (k − 1)·d/2. Pairs are (y, x), as torch layers have them.
    """
    (ky, kx), (sy, sx), (py, px), (dy, dx) = map(_pair, (kernel, stride, padding, dilation))
    shift_x = (1 - sx) / 2 - px + (kx - 1) * dx / 2
    shift_y = (1 - sy) / 2 - py + (ky - 1) * dy / 2
    return scale_shift((sx, sy), (shift_x, shift_y))


def frame_through(modules: nn.Module | Iterable[nn.Module], start: Tensor | None = None) -> Tensor:
    """Frame of the grid that comes out of a chain of layers, given the frame ``start`` of the grid that goes in.

    Layers are convolutions, poolings and those that keep the grid. A module of another kind names the chain inside it
    that moves the grid by an attribute ``grid_path``, or says its own frame by an attribute ``frame_step`` (2,3),
    output cells → input cells.
    """
    frame = identity() if start is None else start
    for module in [modules] if isinstance(modules, nn.Module) else modules:
        step = getattr(module, "frame_step", None)
        if step is not None:
            frame = compose(frame, step)
        elif (inside := _inside(module)) is not None:
            frame = frame_through(inside, frame)
        elif isinstance(module, nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d):
            frame = compose(frame, layer_frame(*_window(module)))
        elif not isinstance(module, _KEEPS_GRID):
            raise ConfigError(
                f"a layer {type(module).__name__} does not say how it moves the grid: give it an attribute frame_step "
                "(2,3), output cells → input cells, or grid_path, the layers in it that do"
            )
    return frame


def grid_through(modules: nn.Module | Iterable[nn.Module], size: Size) -> Size | None:
    """The cells (h, w) that come out of a chain of layers when ``size`` go in; None where a layer does not tell."""
    for module in [modules] if isinstance(modules, nn.Module) else modules:
        if (inside := _inside(module)) is not None and not hasattr(module, "frame_step"):
            after = grid_through(inside, size)
        elif isinstance(module, nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d):
            after = _cells_after(module, size)
        else:
            after = size if isinstance(module, _KEEPS_GRID) else None
        if after is None or min(after) < 1:
            return after
        size = after
    return size


def _inside(module: nn.Module) -> Iterable[nn.Module] | None:
    """The chain of layers in ``module`` that moves the grid; None for a layer of its own."""
    if isinstance(module, nn.Sequential):
        return module.children()
    path: Iterable[nn.Module] | None = getattr(module, "grid_path", None)
    return path


def _cells_after(layer: nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d, size: Size) -> Size | None:
    """⌊(n + paddings − dilation · (kernel − 1) − 1) / stride⌋ + 1 in each direction; ``behind`` pads one side only."""
    if isinstance(layer, nn.Conv2d):
        if type(layer).forward is not nn.Conv2d.forward and not hasattr(layer, "behind"):
            return None  # it pads in a way of its own
        if layer.padding == "same":
            return size
    elif layer.ceil_mode:
        return None
    kernel, stride, padding, dilation = _window(layer)
    behind = getattr(layer, "behind", 0)
    height, width = (
        (size[axis] + 2 * padding[axis] + behind - dilation[axis] * (kernel[axis] - 1) - 1) // stride[axis] + 1
        for axis in (0, 1)
    )
    return height, width


def _window(layer: nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d) -> tuple[Size, Size, Size, Size]:
    # layers of pictures have pairs
    kernel, stride = _pair(layer.kernel_size), _pair(layer.stride)  # type: ignore[arg-type]  # as above
    dilation = _pair(getattr(layer, "dilation", 1))
    if layer.padding == "same":  # the stride is 1; an odd total leaves the smaller half in front
        return kernel, stride, (dilation[0] * (kernel[0] - 1) // 2, dilation[1] * (kernel[1] - 1) // 2), dilation
    padding = (0, 0) if layer.padding == "valid" else _pair(layer.padding)  # type: ignore[arg-type]  # as above
    return kernel, stride, padding, dilation


_KEEPS_GRID = (
    nn.Identity, nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.Hardswish,
    nn.BatchNorm2d, nn.GroupNorm, nn.Dropout, nn.Dropout2d,
)  # fmt: skip


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])


def crop_frame(box: Tensor, grid: Size) -> Tensor:
    """Frame of a crop: a grid of (height, width) cells laid over ``box`` (…,4) xyxy of the picture."""
    x0, y0, x1, y1 = box.unbind(-1)
    zero = torch.zeros_like(x0)
    rows = torch.stack([(x1 - x0) / grid[1], zero, x0, zero, (y1 - y0) / grid[0], y0], dim=-1)  # (…,6)
    return torch.unflatten(rows, -1, (2, 3))  # (…,2,3)


def tilt_frame(turn: Tensor, slant: Tensor, picture: Size) -> Tensor:
    """Frame of a picture turned and slanted about its centre, from its pixels to those of the upright one.

    A thing lies ``turn`` radians (…) further round, from the x axis to the y axis, and ``slant`` (…) further right for
    each pixel below the centre: [x', y'] = R(turn) [x + slant · y, y], x and y from the centre.
    """
    x, y = picture[1] / 2, picture[0] / 2
    cos, sin = turn.cos(), turn.sin()
    a, b, c, d = cos, slant * cos - sin, sin, slant * sin + cos  # (…) each
    rows = torch.stack([a, b, x - a * x - b * y, c, d, y - c * x - d * y], dim=-1)  # (…,6)
    return torch.unflatten(rows, -1, (2, 3))  # (…,2,3)


def theta_to_frame(theta: Tensor, grid: Size, picture: Size) -> Tensor:
    """``theta`` (…,2,3) of a spatial transformer (normalised output → normalised input) as a frame in pixels."""
    to_normal = scale_shift((2 / grid[1], 2 / grid[0]), (-1.0, -1.0)).to(theta)
    to_pixels = scale_shift((picture[1] / 2, picture[0] / 2), (picture[1] / 2, picture[0] / 2)).to(theta)
    return compose(to_pixels, compose(theta, to_normal))


def frame_to_theta(frame: Tensor, grid: Size, picture: Size) -> Tensor:
    """The inverse of :func:`theta_to_frame`, ready for ``affine_grid``."""
    to_pixels = scale_shift((grid[1] / 2, grid[0] / 2), (grid[1] / 2, grid[0] / 2)).to(frame)
    to_normal = scale_shift((2 / picture[1], 2 / picture[0]), (-1.0, -1.0)).to(frame)
    return compose(to_normal, compose(frame, to_pixels))


def sample(picture: Tensor, frame: Tensor, grid: Size, *, padding_mode: str = "border") -> Tensor:
    """Read ``picture`` (B,C,H,W) at the cells of a grid laid over it by ``frame`` (2,3) or (B,2,3) → (B,C,h,w)."""
    frame = frame.to(picture.device).expand(picture.shape[0], 2, 3)
    theta = frame_to_theta(frame, grid, (picture.shape[-2], picture.shape[-1]))  # (B,2,3)
    return sample_theta(picture, theta, grid, padding_mode=padding_mode)


def sample_theta(picture: Tensor, theta: Tensor, grid: Size, *, padding_mode: str = "border") -> Tensor:
    """:func:`sample` for ``theta`` (B,2,3) of a spatial transformer, which no constant from the host has to reach."""
    points = F.affine_grid(theta.to(picture.dtype), [picture.shape[0], 1, *grid], align_corners=False)  # (B,h,w,2)
    return F.grid_sample(picture, points, mode="bilinear", padding_mode=padding_mode, align_corners=False)


@dataclass(frozen=True)
class Fit:
    """How a picture is laid into the network input: resized to (height, width), placed at (top, left)."""

    height: int
    width: int
    top: int
    left: int
    canvas: Tensor  # (2,3): network input → original picture


def fit_inside(picture: Size, target: Size) -> Fit:
    """Lay the whole ``picture`` into ``target`` without distortion, centred; what is left over is border."""
    ratio = min(target[0] / picture[0], target[1] / picture[1])
    height = min(target[0], max(1, round(picture[0] * ratio)))
    width = min(target[1], max(1, round(picture[1] * ratio)))
    top, left = (target[0] - height) // 2, (target[1] - width) // 2
    scale = (picture[1] / width, picture[0] / height)  # exact also where rounding bent the aspect by a pixel
    return Fit(height, width, top, left, scale_shift(scale, (-left * scale[0], -top * scale[1])))


def fit_stretched(picture: Size, target: Size) -> Fit:
    """Stretch the whole ``picture`` to ``target``; nothing is border."""
    scale = (picture[1] / target[1], picture[0] / target[0])
    return Fit(*target, 0, 0, scale_shift(scale, (0.0, 0.0)))


def project(maps: Tensor, frame: Tensor, size: Size) -> Tensor:
    """Lay maps (B,…,h,w) over a picture of ``size`` pixels, given ``frame`` (2,3) or (B,2,3): cells → its pixels.

    Bilinear between cell centres; edge cells go on to the border. It is computed in float64, so that in float32 a
    uniform map stays uniform to the last bit.
    """
    batched = _batched(frame.to(maps.device))  # (B|1,2,3)
    flat = maps.reshape(maps.shape[0], -1, *maps.shape[-2:]).to(torch.float64)  # (B,N,h,w)
    if _is_axis_aligned(batched):  # two small products
        rows = _hat_weights(batched[:, 1, 1], batched[:, 1, 2], maps.shape[-2], size[0])  # (B|1,H,h)
        cols = _hat_weights(batched[:, 0, 0], batched[:, 0, 2], maps.shape[-1], size[1])  # (B|1,W,w)
        laid = _products(rows.unsqueeze(1), flat, cols.unsqueeze(1).transpose(-1, -2), maps.dtype)  # (B,N,H,W)
    else:
        laid = sample(flat, invert(batched), size)  # (B,N,H,W)
    return laid.to(maps.dtype).reshape(*maps.shape[:-2], *size)


def _products(rows: Tensor, flat: Tensor, cols: Tensor, dtype: torch.dtype) -> Tensor:
    """The product rows (B|1,1,H,h) @ flat (B,N,h,w) @ cols (B|1,1,w,W) in ``dtype``: (B,N,H,W).

    On a CPU a part at a time, whole maps or rows of a large one: float64 on all pixels would not fit into its cache.
    """
    shape = (*flat.shape[:2], rows.shape[-2], cols.shape[-1])
    pixels = shape[1] * shape[2] * shape[3]  # pixels of an example
    if flat.requires_grad or flat.device.type != "cpu" or shape[0] * pixels <= _PIXELS_AT_ONCE:
        return rows @ flat @ cols
    laid = torch.empty(shape, dtype=dtype)
    many, high = max(1, _PIXELS_AT_ONCE // max(1, pixels)), max(1, _PIXELS_AT_ONCE // max(1, shape[1] * shape[3]))
    for start in range(0, shape[0], many):
        some = slice(start, start + many)
        down, across = (part if len(part) == 1 else part[some] for part in (rows, cols))
        for top in range(0, shape[2], high):
            laid[some, :, top : top + high] = down[:, :, top : top + high] @ flat[some] @ across
    return laid


def cell_profiles(frame: Tensor, grid: Size, size: Size) -> tuple[Tensor, Tensor] | None:
    """How much each cell gives to each row (h,H) and to each column (w,W) of a picture, as :func:`project` lays it.

    A cell's map is the product of the two. None for a ``frame`` (2,3) that turns or shears.
    """
    batched = _batched(frame)  # (1,2,3)
    if not _is_axis_aligned(batched):
        return None
    rows = _hat_weights(batched[:, 1, 1], batched[:, 1, 2], grid[0], size[0])  # (1,H,h)
    cols = _hat_weights(batched[:, 0, 0], batched[:, 0, 2], grid[1], size[1])  # (1,W,w)
    return rows[0].T, cols[0].T


def _batched(frame: Tensor) -> Tensor:
    """(2,3) or (B,2,3) → (1,2,3) or (B,2,3), in float64."""
    return frame.to(torch.float64).reshape(-1, 2, 3)


def _is_axis_aligned(batched: Tensor) -> bool:
    """Whether no frame of (B,2,3) turns or shears: rows stay rows and columns stay columns."""
    return not bool(batched[:, [0, 1], [1, 0]].any())


def _hat_weights(scale: Tensor, shift: Tensor, cells: int, pixels: int) -> Tensor:
    """(B,pixels,cells): how much each cell gives to each pixel along one axis (linear interpolation, clamped)."""
    centres = torch.arange(pixels, dtype=torch.float64, device=scale.device) + 0.5  # (P,)
    at = (centres - shift.unsqueeze(-1)) / scale.unsqueeze(-1) - 0.5  # (B,P) in cell indices
    at = at.clamp(0, cells - 1)
    index = torch.arange(cells, dtype=torch.float64, device=scale.device)  # (C,)
    return (1 - (at.unsqueeze(-1) - index).abs()).clamp(min=0)  # (B,P,C)


_PIXELS_AT_ONCE = 1 << 17  # of a projection, in float64
_FINE = 4  # lattice points of a pixel each way, by which a turned crop is laid out
_POINTS_AT_ONCE = 1 << 18


def coverage(frame: Tensor, grid: Size, size: Size) -> Tensor:
    """The map of a crop: the share of each pixel (B,H,W) that lies inside the crop's grid laid over the picture.

    Exact for upright crops; for turned ones the points of a 4×4 lattice in every pixel are counted.
    """
    batched = _batched(frame)  # (B,2,3)
    if _is_axis_aligned(batched):
        cols = interval_share(batched[:, 0, 2], batched[:, 0, 2] + grid[1] * batched[:, 0, 0], size[1])  # (B,W)
        rows = interval_share(batched[:, 1, 2], batched[:, 1, 2] + grid[0] * batched[:, 1, 1], size[0])  # (B,H)
        return rows.unsqueeze(-1) * cols.unsqueeze(-2)  # (B,H,W)
    # A few pictures at a time: what is computed of them stays in a CPU's cache.
    few = max(1, (_POINTS_AT_ONCE if frame.device.type == "cpu" else 1 << 27) // (_FINE**2 * size[0] * size[1]))
    return torch.cat([_counted(part, grid, size) for part in torch.split(invert(batched), few)])  # (B,H,W)


def _counted(inverse: Tensor, grid: Size, size: Size) -> Tensor:
    """The share of each pixel's points (B,H,W) that ``inverse`` (B,2,3), pixels → cells, takes into the grid."""
    ys, xs = (
        (torch.arange(side * _FINE, dtype=torch.float64, device=inverse.device) + 0.5) / _FINE for side in size
    )  # (fH,), (fW,)
    inverse = inverse[..., None, None]  # (B,2,3,1,1)
    column = inverse[:, 0, 0] * xs + inverse[:, 0, 1] * ys[:, None] + inverse[:, 0, 2]  # (B,fH,fW)
    row = inverse[:, 1, 0] * xs + inverse[:, 1, 1] * ys[:, None] + inverse[:, 1, 2]  # (B,fH,fW)
    hit = (column >= 0) & (column <= grid[1]) & (row >= 0) & (row <= grid[0])  # (B,fH,fW)
    return F.avg_pool2d(hit.float().unsqueeze(1), _FINE).squeeze(1).double()  # (B,H,W): sixteenths, exact


def touched(boxes: Tensor, size: Size) -> Tensor:
    """(…,H,W) bool: the pixels of a picture of ``size`` that each of ``boxes`` (…,4) xyxy touches; none for NaN."""
    x = torch.arange(size[1], device=boxes.device)  # (W,) left edges
    y = torch.arange(size[0], device=boxes.device)[:, None]  # (H,1) upper edges
    x0, y0, x1, y1 = boxes[..., None, None].unbind(-3)  # (…,1,1) each; comparisons with NaN are false
    return (x + 1 > x0) & (x < x1) & (y + 1 > y0) & (y < y1)  # (…,H,W)


def box_shares(boxes: Tensor, grid: Size) -> Tensor:
    """(…,h,w): the share of each cell of ``grid`` inside each of ``boxes`` (…,4), xyxy in cells; none for NaN."""
    x0, y0, x1, y1 = boxes.nan_to_num(0.0).unbind(-1)  # (…,) each; NaN becomes an empty box
    cols, rows = interval_share(x0, x1, grid[1]), interval_share(y0, y1, grid[0])  # (…,w), (…,h)
    return rows.unsqueeze(-1) * cols.unsqueeze(-2)  # (…,h,w)


def cells_in_boxes(boxes: Tensor, frame: Tensor, grid: Size) -> Tensor:
    """(B,M,h,w) bool: the cells of ``grid`` whose centre lies inside each of ``boxes`` (B,M,4) xyxy; none for NaN.

    ``frame`` (2,3) or (B,2,3) leads from cells to the pixels of the boxes.
    """
    rows, cols = (torch.arange(length, dtype=frame.dtype, device=boxes.device) + 0.5 for length in grid)
    cells = torch.stack(torch.meshgrid(cols, rows, indexing="xy"), dim=-1)  # (h,w,2) as (x, y)
    centres = apply(frame[..., None, None, :, :], cells)  # ([B,]h,w,2)
    x, y = centres.reshape(-1, 1, *grid, 2).unbind(-1)  # (B|1,1,h,w)
    left, top, right, bottom = boxes.to(cells)[..., None, None].unbind(2)  # (B,M,1,1)
    return (x >= left) & (x < right) & (y >= top) & (y < bottom)  # (B,M,h,w); NaN compares false


def interval_share(start: Tensor, stop: Tensor, pixels: int) -> Tensor:
    """(B,P): the share of each unit interval [k, k+1] that lies inside [start, stop] (either order)."""
    low, high = torch.minimum(start, stop).unsqueeze(-1), torch.maximum(start, stop).unsqueeze(-1)
    left = torch.arange(pixels, dtype=start.dtype, device=start.device)
    return (torch.minimum(left + 1, high) - torch.maximum(left, low)).clamp(0, 1)


def peak(attention: Tensor) -> tuple[int, int]:
    """(x, y) of the largest value of a map (H,W); of equal ones, the nearest to the middle."""
    values = attention.numpy()
    places = np.argwhere(values == values.max())  # (N,2) as (y, x); torch takes ten times as long
    middle = (np.array(values.shape) - 1) / 2
    y, x = places[np.square(places - middle).sum(-1).argmin()].tolist()
    return x, y
