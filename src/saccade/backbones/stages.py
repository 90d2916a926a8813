"""A backbone is a sequence of named stages; each stage knows where its cells lie in the picture."""

from __future__ import annotations

import copy
from collections import OrderedDict

import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.errors import ConfigError, DataError, nearest


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
        kept = OrderedDict(list(self.stages.items())[:last])
        return Stages(kept, {stage: self.channels[stage] for stage in kept})

    def between(self, features: Tensor, *, after: str | None = None, to: str | None = None) -> Tensor:
        """Run the stages behind ``after`` (None: from the picture on) up to and including ``to`` (None: the last)."""
        first = 0 if after is None else self.names.index(self.check_stage(after)) + 1
        last = len(self.names) if to is None else self.names.index(self.check_stage(to)) + 1
        for name in self.names[first:last]:
            features = self.stages[name](features)
        return features

    def forward(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → the last stage's features (B,C,h,w)."""
        return self.between(images)

    @property
    def has_class_token(self) -> bool:
        """Whether the last stage has a vector of the whole picture beside its map, as many transformers do."""
        last = self.stages[self.names[-1]]
        return bool(getattr(last, "has_class_token", False))

    def with_class_token(self, images: Tensor) -> Tensor:
        """(B,3,H,W) → (B,C,h+1,w): the last map, and below it a row whose first cell is the class token, then zeros."""
        features = images
        for name in self.names[:-1]:
            features = self.stages[name](features)
        # has_class_token says that it has it
        found, token = self.stages[self.names[-1]].with_class_token(features)  # type: ignore[operator]
        row = torch.zeros_like(found[:, :, :1])  # (B,C,1,w)
        row[:, :, 0, 0] = token
        return torch.cat([found, row], 2)

    def grid(self, size: geometry.Size) -> dict[str, geometry.Size]:
        """(h, w) of every stage's output for a picture of ``size``; a DataError when the picture is too small."""
        sizes, cells, channels = {}, size, self.in_channels
        for name, stage in self.stages.items():
            found = geometry.grid_through(stage, cells) or _by_running(stage, channels, cells)
            if min(found) < 1:
                raise DataError(
                    f"a picture of {size[0]}×{size[1]} pixels is too small for stage '{name}' of this backbone; use a "
                    "larger picture or fewer stages"
                )
            sizes[name] = cells = found
            channels = self.channels[name]
        return sizes

    @property
    def in_channels(self) -> int:
        """Channels of the picture that the first convolution takes."""
        return next((module.in_channels for module in self.modules() if isinstance(module, nn.Conv2d)), 3)


def _by_running(stage: nn.Module, channels: int, size: geometry.Size) -> geometry.Size:
    """The cells that come out of ``stage``, found by running it on shapes alone; (0, 0) where it refuses.

    For layers that do not tell (:func:`geometry.grid_through`): torch takes a second or two to get ready for it.
    """
    weight = next(stage.parameters(), torch.empty(0))
    features = torch.empty(1, channels, *size, dtype=weight.dtype, device="meta")
    try:
        made: Tensor = copy.deepcopy(stage).to("meta").eval()(features)
    except RuntimeError:
        return 0, 0
    return made.shape[-2], made.shape[-1]
