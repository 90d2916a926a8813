"""A backbone is a sequence of named stages, each with the frame that says where its cells lie in the picture.

The small stack of the attribute experiments is here too, four times {3×3 convolution, ReLU, 2×2 max pooling}: Seo et
al., 2016 (arXiv:1606.02393), Section 5.1; sizes from its authors' released code: **valid** convolutions, and a pooling
that drops the odd border, so a 100×100 picture becomes 49², 23², 10² and 4² cells. So the 4×4 map does not tile the
picture: its cell centres lie at 23, 39, 55 and 71 pixels. Deviations: Glorot-uniform initial weights, from the released
code.

**Several stages as one map.** A finer map is folded onto the cells of the last stage: (B,C,f·h,f·w) becomes
(B,C·f²,h,w), and back without loss. So the features of several stages are one tensor, to cache, batch and standardise.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from saccade import geometry
from saccade.errors import ConfigError, DataError, nearest
from saccade.geometry import Size

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


class Stages(nn.Module):
    """A chain of named stages; ``frames[name]`` maps the cells of a stage to pixels of the input.

    Args:
        stages: name → module, in order. Frames are computed from the layers (:func:`geometry.frame_through`).
        channels: name → channels of the stage's output.
    """

    def __init__(self, stages: OrderedDict[str, nn.Module], channels: dict[str, int]) -> None:
        super().__init__()
        self.stages = nn.ModuleDict(stages)
        self.channels = dict(channels)
        self.frames: dict[str, Tensor] = {}
        frame = geometry.identity()
        for name, stage in stages.items():
            frame = geometry.frame_through(stage, frame)
            self.frames[name] = frame

    @property
    def names(self) -> tuple[str, ...]:
        """The stages in order."""
        return tuple(self.stages)

    def check_stage(self, name: str) -> str:
        """``name`` if there is such a stage, else a ConfigError that names the nearest."""
        if name not in self.stages:
            raise ConfigError(f"no stage '{name}' in this backbone: {nearest(name, self.names)}")
        return name

    def through(self, name: str) -> Stages:
        """The stages up to and including ``name`` as a backbone of its own; the layers are shared, not copied."""
        last = self.names.index(self.check_stage(name)) + 1
        stages = OrderedDict(list(self.stages.items())[:last])
        return Stages(stages, {stage: self.channels[stage] for stage in stages})

    def between(self, features: Tensor, *, after: str | None = None, to: str | None = None) -> Tensor:
        """Run the stages behind ``after`` (None: from the picture on) up to and including ``to`` (None: the last)."""
        first = 0 if after is None else self.names.index(after) + 1
        last = len(self.names) if to is None else self.names.index(to) + 1
        for name in self.names[first:last]:
            features = self.stages[name](features)
        return features

    def forward(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → the last stage's features (B,C,h,w)."""
        return self.between(images)

    def _layers(self) -> list[nn.Module]:
        """All stages, layer by layer where they are chains."""
        stages = self.stages.values()
        return [layer for stage in stages for layer in (stage if isinstance(stage, nn.Sequential) else (stage,))]

    @property
    def has_class_token(self) -> bool:
        """Whether the last layer has a vector of the whole picture beside its map, as many transformers do."""
        return bool(getattr(self._layers()[-1], "has_class_token", False))

    def with_class_token(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → (B,C,h+1,w): the last map, and below it a row whose first cell is the class token, then zeros."""
        *before, last = self._layers()
        features = images
        for layer in before:
            features = layer(features)
        cells, token = last.with_class_token(features)  # type: ignore[operator]  # has_class_token says that it has it
        return torch.cat([cells, token_row(cells, token)], 2)

    def grid(self, size: geometry.Size) -> dict[str, geometry.Size]:
        """(h, w) of every stage's output for a picture of ``size``; a DataError when the picture is too small."""
        sizes, cells, channels = {}, size, 3
        for name, stage in self.stages.items():
            cells = geometry.grid_through(stage, cells) or _by_running(stage, channels, cells)
            if min(cells) < 1:
                raise DataError(
                    f"a picture of {size[0]}×{size[1]} pixels is too small for stage '{name}' of this backbone; use a "
                    "larger picture or fewer stages"
                )
            sizes[name] = cells
            channels = self.channels[name]
        return sizes


def token_row(features: Tensor, token: Tensor) -> Tensor:
    """A row (…,C,1,w) to go below features (…,C,h,w): the class token (…,C) in its first cell, then zeros."""
    row = torch.zeros_like(features[..., :1, :])
    row[..., 0, 0] = token
    return row


def add_in_place(branch: Tensor, features: Tensor) -> Tensor:
    """``branch`` + ``features``, in the memory of ``branch``: on a CPU a new map costs more than the sum.

    A branch ends in a convolution or a norm, whose gradients do not need its output.
    """
    return branch.add_(features) if branch.dtype == features.dtype else branch + features


def fuse_norms(network: nn.Module) -> None:
    """Put each norm that follows a convolution into that convolution, for inference alone.

    Fused are neighbours in a ``Sequential``, and the pairs in a block's ``norm_of``. Answers differ in their last bits.
    A norm of another library may do more, such as rectify, and stays.
    """
    for module in network.modules():
        neighbours = pairwise(module._modules) if isinstance(module, nn.Sequential) else ()
        for first, second in (*neighbours, *getattr(module, "norm_of", {}).items()):
            convolution, norm = getattr(module, first), getattr(module, second)
            if isinstance(convolution, nn.Conv2d) and type(norm) is nn.BatchNorm2d:
                setattr(module, first, fuse_conv_bn_eval(convolution, norm))
                setattr(module, second, nn.Identity())


def _by_running(stage: nn.Module, channels: int, size: geometry.Size) -> geometry.Size:
    """The grid that comes out of ``stage``, by running it on shapes alone; (0, 0) where it refuses.

    For layers that :func:`geometry.grid_through` does not know: torch takes seconds to get ready for it.
    """
    weight = next(stage.parameters(), torch.empty(0))
    features = torch.empty(1, channels, *size, dtype=weight.dtype, device="meta")
    tensors = (*stage.parameters(), *stage.buffers())
    shapes = {id(tensor): tensor.detach().to("meta") for tensor in tensors}  # in place of which nothing is copied
    try:
        shape = copy.deepcopy(stage, shapes).eval()(features).shape
    except RuntimeError:
        return 0, 0
    return shape[-2], shape[-1]


class Normalise(nn.Module):
    """RGB pictures 0..1 → (x − mean) / std of each channel; constants of the network, neither trained nor saved."""

    grid_path: tuple[nn.Module, ...] = ()  # nothing moves the grid
    mean: Tensor
    std: Tensor

    def __init__(self, mean: tuple[float, ...] = IMAGENET_MEAN, std: tuple[float, ...] = IMAGENET_STD) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(-1, 1, 1), persistent=False)  # (C,1,1)
        self.register_buffer("std", torch.tensor(std).view(-1, 1, 1), persistent=False)  # (C,1,1)

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


def started(parts: Sequence[tuple[str, nn.Module, int]]) -> Stages:
    """Stages with names and channels, their weights as :func:`start_weights` draws them."""
    stages = Stages(OrderedDict((name, part) for name, part, _ in parts), {name: many for name, _, many in parts})
    start_weights(stages)
    return stages


class HalvingPool(nn.MaxPool2d):
    """2×2 max pooling. For inference on a CPU it is two maxima of neighbours, which take less than half the time.

    The values are the same to the last bit.
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


def small_stack(*, channels: int = 32, depth: int = 4) -> Stages:
    """``depth`` stages "stage1" … of {valid 3×3 convolution, ReLU, 2×2 max pooling}.

    >>> small_stack().grid((100, 100))
    {'stage1': (49, 49), 'stage2': (23, 23), 'stage3': (10, 10), 'stage4': (4, 4)}
    """
    stages: OrderedDict[str, nn.Module] = OrderedDict()
    for number in range(1, depth + 1):
        convolution = nn.Conv2d(3 if number == 1 else channels, channels, 3)
        nn.init.xavier_uniform_(convolution.weight)
        nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]  # it was made with a bias
        # Rectifying and taking the maximum commute; pooling first leaves a quarter of the cells to rectify.
        stages[f"stage{number}"] = nn.Sequential(convolution, HalvingPool(), nn.ReLU(inplace=True))
    return Stages(stages, dict.fromkeys(stages, channels))


FINEST = 32  # cells along a side of the finest map of a pyramid at most


class Level(NamedTuple):
    """One map of several."""

    name: str  # of its stage
    channels: int
    factor: int  # how many times as fine as the last map it is


def levels_of(stages: Stages, finer: Sequence[str]) -> tuple[Level, ...]:
    """The maps of the stages ``finer``, the finest first, and of the last stage."""
    last = stages.names[-1]
    levels = [Level(name, stages.channels[stages.check_stage(name)], _factor(stages, name)) for name in finer]
    factors = [level.factor for level in levels] + [1]
    if any(before <= after for before, after in pairwise(factors)):
        raise ConfigError(f"pyramid: {', '.join(finer)}: each stage must be coarser than the one before, '{last}' too")
    return (*levels, Level(last, stages.channels[last], 1))


def finer_stages(stages: Stages, size: Size, most: int = 2) -> tuple[str, ...]:
    """The stages of a pyramid for pictures of ``size``: the last one of each resolution, the finest first.

    At most ``most`` of them, none with more than :data:`FINEST` cells along a side, and only those whose grid is a
    whole multiple of the last one; () for a network with one map.
    """
    grids = stages.grid(size)
    last = grids[stages.names[-1]]
    by_factor = {}
    for name, (height, width) in grids.items():
        factor = height // last[0]
        if (height, width) == (factor * last[0], factor * last[1]) and max(height, width) <= FINEST:
            by_factor[factor] = name  # a later stage of the same resolution takes the place
    chosen = sorted(factor for factor in by_factor if factor > 1 and factor == _factor(stages, by_factor[factor]))
    return tuple(by_factor[factor] for factor in reversed(chosen[:most]))


def folded_channels(levels: Sequence[Level]) -> int:
    """Channels of the folded map."""
    return sum(level.channels * level.factor**2 for level in levels)


def folded(stages: Stages, images: Tensor, levels: Sequence[Level], *, finer_only: bool = False) -> Tensor:
    """Pictures (B,3,H,W) → the maps of all ``levels`` as one, (B,C,h,w); ``finer_only`` leaves out the last."""
    maps, features, before = [], images, None
    for level in levels:
        features = stages.between(features, after=before, to=level.name)
        maps.append(features)
        before = level.name
    grid = tuple(maps[-1].shape[-2:])
    parts = []
    for level, features in zip(levels, maps):
        if tuple(features.shape[-2:]) != (level.factor * grid[0], level.factor * grid[1]):
            raise DataError(
                f"pyramid: stage '{level.name}' has {features.shape[-2]}×{features.shape[-1]} cells, the last stage "
                f"{grid[0]}×{grid[1]}; they do not fit at this size of the picture; use 224×224"
            )
        parts.append(F.pixel_unshuffle(features, level.factor))
    return torch.cat(parts[:-1] if finer_only else parts, 1)


def unfolded(features: Tensor, levels: Sequence[Level]) -> list[Tensor]:
    """The maps (B,C,f·h,f·w) of the levels, from the folded one."""
    parts = torch.split(features, [level.channels * level.factor**2 for level in levels], 1)
    return [F.pixel_shuffle(part, level.factor) for part, level in zip(parts, levels)]


def _factor(stages: Stages, name: str) -> int:
    """How many times as fine as the last map that of a stage is."""
    return round(float(stages.frames[stages.names[-1]][0, 0] / stages.frames[name][0, 0]))


class Chain(nn.Sequential):
    """Layers of another library in a row, which make the grid coarser by ``reduction``."""

    def __init__(self, layers: Iterable[nn.Module], reduction: int) -> None:
        super().__init__(*layers)
        self.reduction = reduction

    @property
    def frame_step(self) -> Tensor:
        """Output cells → input cells."""
        shift = 0.0 if _cuts_patches(self) else (1 - self.reduction) / 2
        return geometry.scale_shift((self.reduction, self.reduction), (shift, shift))


def _cuts_patches(network: nn.Module) -> bool:
    """Whether every layer of ``network`` that makes the grid coarser cuts it into patches."""
    strided = [
        layer
        for layer in network.modules()
        if isinstance(layer, nn.Conv2d | nn.MaxPool2d | nn.AvgPool2d) and _as_pair(layer.stride) != (1, 1)
    ]
    return all(
        _as_pair(layer.kernel_size) == _as_pair(layer.stride)
        and _as_pair(layer.padding) in ((0, 0), ("valid", "valid"))
        for layer in strided
    )


def _as_pair(value: object) -> tuple[object, object]:
    return (value[0], value[1]) if isinstance(value, tuple) else (value, value)
