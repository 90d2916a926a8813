"""The acts of one example, in the order they happened, each with what a drawing needs: map, outline, words.

A look that repeats (words, glimpses) counts as one act a step; steps that were padding are left out.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError, nearest
from saccade.show.colours import Values, as_map
from saccade.show.overlay import Mark, Points, Polygon
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
        """The weights in words: the raw peak as the model computed it, never the rescaled one. Empty for a crop.

        What is derived says so: no such weights are in the model.
        """
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


def is_shared(scale: Scale) -> bool:
    """Whether all maps have one scale; a word that names none is a DataError."""
    if scale not in ("own", "shared"):
        raise DataError(f"scale: found '{scale}'; {nearest(str(scale), ('own', 'shared'))}")
    return scale == "shared"


def one_example(trace: AttentionTrace, picture_size: geometry.Size) -> AttentionTrace:
    """``trace``, checked to hold one example of a picture shaped as the one given (which may be a smaller copy)."""
    if len(trace) != 1:
        raise DataError(f"a drawing shows one example, and this trace holds {len(trace)}: pass trace[i]")
    trace = trace.detach().cpu()
    if trace.image_size is None:
        return dataclasses.replace(trace, image_size=torch.tensor([picture_size]))
    height, width = (int(side) for side in trace.image_size[0])
    expected = picture_size[1] * height / width
    if abs(picture_size[0] - expected) > 1.5 + 0.02 * expected:
        raise DataError(
            f"the picture is {picture_size[1]}×{picture_size[0]} px and the trace is of one with {width}×{height} px: "
            "pass the picture that the model saw"
        )
    return trace


def acts_of(trace: AttentionTrace) -> list[Act]:
    """Every act of the (one) example that lies on the picture."""
    result = []
    for look in trace.looks:
        if not look.is_spatial:
            continue
        active = look.active.reshape(-1).bool().tolist() if look.active is not None else [True] * look.steps
        for step in range(look.steps):
            if active[step]:
                result.append(Act(look.step(step), step) if look.has_steps else Act(look, None))
    return result


def act_map(trace: AttentionTrace, act: Act, size: geometry.Size, *, cells: bool = False) -> Values:
    """The act's map over the picture at ``size`` (H,W); with ``cells`` each pixel takes the nearest cell's weight."""
    if not cells or act.look.weights is None:
        return as_map(trace.image_map(act.look, size))
    ys = torch.arange(size[0], dtype=torch.float64) + 0.5
    xs = torch.arange(size[1], dtype=torch.float64) + 0.5
    centres = torch.stack(torch.meshgrid(xs, ys, indexing="xy"), dim=-1)  # (H,W,2) pixel centres
    in_cells = geometry.apply(geometry.invert(_to_pixels(trace, act.look, size)), centres)  # (H,W,2)
    rows, cols = act.look.weights.shape[-2:]
    col = in_cells[..., 0].floor().clamp(0, cols - 1).long()  # (H,W)
    row = in_cells[..., 1].floor().clamp(0, rows - 1).long()
    return as_map(act.look.weights[0][row, col])


def total_map(trace: AttentionTrace, size: geometry.Size) -> Values:
    """The trace's total over the picture at ``size`` (H,W)."""
    return as_map(trace.image_map("total", size))


def act_marks(trace: AttentionTrace, act: Act, size: geometry.Size) -> list[Mark]:
    """What is outlined on the picture of ``size``: the box of a crop, the cell that was chosen."""
    look = act.look
    if look.kind == "crop" and look.grid is not None:
        height, width = look.grid
        corners = torch.tensor([[0, 0], [width, 0], [width, height], [0, height]], dtype=torch.float64)
        return [Polygon(_pairs(geometry.apply(_to_pixels(trace, look, size), corners)))]
    if look.choice is not None and look.weights is not None:
        return [Points(_pairs(trace.chosen_on(look, size)[0, :1]))]
    return []


def crop_content(trace: AttentionTrace, act: Act, picture: Tensor, size: geometry.Size) -> Tensor:
    """What a crop cut out of ``picture`` (3,H,W), read at ``size``: (3,h,w)."""
    height, width = act.look.grid or size
    frame = _to_pixels(trace, act.look, (picture.shape[-2], picture.shape[-1]))
    finer = geometry.scale_shift((width / size[1], height / size[0]), (0.0, 0.0))
    return geometry.sample(picture[None], geometry.compose(frame, finer), size)[0]


def _to_pixels(trace: AttentionTrace, look: Look, size: geometry.Size) -> Tensor:
    """(2,3): cells of ``look`` → pixels of the picture shown at ``size``, for a trace of one example."""
    return trace.frame_on(look, size).reshape(2, 3)


def _pairs(points: Tensor) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in points]


def _number(value: Tensor) -> str:
    return f"{float(value):.3f}" if abs(float(value)) >= 0.001 or float(value) == 0 else f"{float(value):.1e}"
