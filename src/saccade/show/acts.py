"""The acts of one example, in the order they happened, each with what a drawing needs: map, outline, words.

A look that repeats (words, glimpses) counts as one act a step; steps that were padding are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.show.colours import PAPER, Values, as_map
from saccade.show.overlay import Mark, PictureLike, Points, Polygon, as_marks, as_picture, draw_marks, paint
from saccade.trace import AttentionTrace, Look

Scale = Literal["own", "shared"]
"""Each map by its own peak, or all by the one that they share."""


@dataclass(frozen=True)
class Act:
    """One act: a look of one example without a step axis."""

    look: Look
    step: int | None
    """Number of the step from 0, for a look that repeats."""

    @property
    def title(self) -> str:
        """``stage2``, or ``word 3`` for the third step."""
        return self.look.name if self.step is None else f"{self.look.name} {self.step + 1}"

    @property
    def note(self) -> str:
        """The raw peak as the model computed it, never the rescaled one; what is derived says so. Empty for a crop."""
        if self.look.weights is None:
            return ""
        weights = self.look.weights.detach().float()
        parts = [f"peak {_number(weights.max())}"]
        if self.look.kind == "gate":
            parts.append(f"mean {_number(weights.mean())}")
        if self.look.gain is not None:
            parts.append(f"gain {_number(self.look.gain.float().mean())}")
        if self.look.role == "derived":
            parts.append("derived")
        return " · ".join(parts)


class Drawing:
    """One example on its picture as it is shown: maps, outlines and paintings of that size.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``).
        fit: enlarges or reduces the picture to what is shown.
        outline: evidence, drawn on every painting, in pixels of ``picture``.
    """

    def __init__(
        self,
        picture: PictureLike,
        trace: AttentionTrace,
        fit: Callable[[Image.Image], Image.Image],
        outline: Mark | Sequence[Mark] = (),
    ) -> None:
        self.original = as_picture(picture)
        self.shown = fit(self.original)
        self.size = (self.shown.height, self.shown.width)
        self.trace = _of_picture(trace, (self.original.height, self.original.width))
        self.acts = [act for look in self.trace.looks if look.is_spatial for act in acts_of(look)]
        self._outline = as_marks(outline)

    def map(self, act: Act, *, cells: bool = False) -> Values:
        """The act's map (H,W) over the picture; with ``cells`` each pixel takes the nearest cell's weight."""
        if not cells or act.look.weights is None:
            return as_map(self.trace.image_map(act.look, self.size))
        ys = torch.arange(self.size[0], dtype=torch.float64) + 0.5
        xs = torch.arange(self.size[1], dtype=torch.float64) + 0.5
        centres = torch.stack(torch.meshgrid(xs, ys, indexing="xy"), dim=-1)  # (H,W,2) pixel centres
        in_cells = geometry.apply(geometry.invert(self.frame(act)), centres)  # (H,W,2)
        rows, cols = act.look.weights.shape[-2:]
        col = in_cells[..., 0].floor().clamp(0, cols - 1).long()  # (H,W)
        row = in_cells[..., 1].floor().clamp(0, rows - 1).long()
        return as_map(act.look.weights[0][row, col])

    def total(self) -> Values:
        """The trace's total (H,W) over the picture."""
        return as_map(self.trace.image_map("total", self.size))

    def frame(self, act: Act) -> Tensor:
        """(2,3): cells of the act's grid → pixels of the shown picture."""
        return self.trace.frame_on(act.look, self.size).reshape(2, 3)

    def marks(self, act: Act) -> list[Mark]:
        """What is outlined on the shown picture: the box of a crop, the cell that was chosen."""
        look = act.look
        if look.kind == "crop" and look.grid is not None:
            height, width = look.grid
            corners = torch.tensor([[0, 0], [width, 0], [width, height], [0, height]], dtype=torch.float64)
            return [Polygon(_pairs(geometry.apply(self.frame(act), corners)))]
        if look.choice is not None and look.weights is not None:
            return [Points(_pairs(self.trace.chosen_on(look, self.size)[0, :1]))]
        return []

    def paint(self, values: Values) -> Image.Image:
        """The picture under a map (H,W) of 0 … 1, with the evidence."""
        return self.outlined(paint(self.shown, values))

    def outlined(self, image: Image.Image) -> Image.Image:
        """``image`` with the evidence on it."""
        return draw_marks(image, self._outline, self.original.size)

    def crop(self, act: Act) -> Image.Image:
        """What a crop let the network see, in the shape of its grid, centred on a panel of the shown size."""
        height, width = act.look.grid or self.size
        ratio = min(self.size[0] / height, self.size[1] / width)
        inner = (max(1, round(height * ratio)), max(1, round(width * ratio)))
        pixels = torch.from_numpy(np.array(self.original)).permute(2, 0, 1).float() / 255  # (3,H,W)
        frame = self.trace.frame_on(act.look, (pixels.shape[-2], pixels.shape[-1])).reshape(2, 3)
        finer = geometry.scale_shift((width / inner[1], height / inner[0]), (0.0, 0.0))
        cut = as_picture(geometry.sample(pixels[None], geometry.compose(frame, finer), inner))
        panel = Image.new("RGB", self.shown.size, PAPER)
        panel.paste(cut, ((self.size[1] - inner[1]) // 2, (self.size[0] - inner[0]) // 2))
        return panel


def acts_of(look: Look) -> list[Act]:
    """The steps of a look that are no padding; a look without steps is one act."""
    if not look.has_steps:
        return [Act(look, None)] if look.active is None or bool(look.active.all()) else []
    active = [True] * look.steps if look.active is None else look.active.reshape(-1).bool().tolist()
    return [Act(look.step(step), step) for step in range(look.steps) if active[step]]


def _of_picture(trace: AttentionTrace, size: geometry.Size) -> AttentionTrace:
    """``trace``, checked to hold one example of a picture shaped as ``size`` (which may be that of a smaller copy)."""
    if len(trace) != 1:
        raise DataError(f"a drawing shows one example, and this trace holds {len(trace)}: pass trace[i]")
    trace = trace.detach().cpu()
    if trace.image_size is None:
        return dataclasses.replace(trace, image_size=torch.tensor([size]))
    height, width = (int(side) for side in trace.image_size[0])
    expected = size[1] * height / width
    if abs(size[0] - expected) > 1.5 + 0.02 * expected:
        raise DataError(
            f"the picture is {size[1]}×{size[0]} px and the trace is of one with {width}×{height} px: "
            "pass the picture that the model saw"
        )
    return trace


def _pairs(points: Tensor) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in points]


def _number(value: Tensor) -> str:
    return f"{float(value):.3f}" if abs(float(value)) >= 0.001 or float(value) == 0 else f"{float(value):.1e}"
