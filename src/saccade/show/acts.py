"""The acts of one example in the order they happened, each with what a drawing needs: map, outline, words.

Each step of a look that repeats (words, glimpses) is one act; steps that were padding are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from saccade import geometry
from saccade.errors import DataError
from saccade.show.colours import INK, PAPER, Values, as_map
from saccade.show.overlay import (
    Mark,
    PictureLike,
    Points,
    Polygon,
    as_marks,
    as_picture,
    draw_marks,
    enlarge,
    let_through,
    paint,
)
from saccade.show.sheet import font, line_height
from saccade.trace import AttentionTrace, Look


@dataclass(frozen=True)
class DrawnAct:
    """One act: a look of one example without a step axis."""

    look: Look
    step: int | None  # Number of the step from 0, for a look that repeats.

    @property
    def title(self) -> str:
        """``stage2``, or ``word 3`` for the third step."""
        return self.look.name if self.step is None else f"{self.look.name} {self.step + 1}"

    @property
    def note(self) -> str:
        """The raw peak as the model computed it, never the rescaled one; what is derived says so. Empty for a crop."""
        look = self.look
        if look.weights is None:
            return ""
        numbers = {"peak": look.weights.detach().float().max()}
        if look.kind == "gate":
            numbers["mean"] = look.weights.detach().float().mean()
        if look.gain is not None:
            numbers["gain"] = look.gain.float().mean()
        parts = [
            f"{name} {float(value):.3f}" if float(value) == 0 or abs(float(value)) >= 0.001 else f"{name} {value:.1e}"
            for name, value in numbers.items()
        ]
        return " · ".join([*parts, "derived"] if look.role == "derived" else parts)


class Drawing:
    """One example on its picture as it is shown: maps, outlines and paintings of that size.

    ``fit`` enlarges or reduces the picture; ``outline`` is evidence, in pixels of ``picture``.
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
        self.trace = _of_picture(trace, self.original.height, self.original.width)
        self.acts = [act for look in self.trace.looks if look.is_spatial for act in acts_of(look)]
        self._outline = as_marks(outline)

    def map(self, act: DrawnAct, *, cells: bool = False) -> Values:
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

    def frame(self, act: DrawnAct) -> Tensor:
        """(2,3): cells of the act's grid → pixels of the shown picture."""
        return self.trace.frame_on(act.look, self.size).reshape(2, 3)

    def marks(self, act: DrawnAct) -> list[Mark]:
        """What is outlined on the shown picture: the box of a crop, the cell that was chosen."""
        look = act.look
        if look.kind == "crop" and look.grid is not None:
            height, width = look.grid
            corners = torch.tensor([[0, 0], [width, 0], [width, height], [0, height]], dtype=torch.float64)
            return [Polygon([(x, y) for x, y in geometry.apply(self.frame(act), corners).tolist()])]
        if look.choice is not None and look.weights is not None:
            return [Points([(x, y) for x, y in self.trace.chosen_on(look, self.size)[0, :1].tolist()])]
        return []

    def paint(self, values: Values) -> Image.Image:
        """The picture under a map (H,W) of 0 … 1, with the evidence."""
        return self.outlined(paint(self.shown, values))

    def outlined(self, image: Image.Image) -> Image.Image:
        """``image`` with the evidence on it."""
        return draw_marks(image, self._outline, self.original.size)

    def crop(self, act: DrawnAct) -> Image.Image:
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


def acts_of(look: Look) -> list[DrawnAct]:
    """The steps of a look that are no padding; a look without steps is one act."""
    if not look.has_steps:
        return [DrawnAct(look, None)] if look.active is None or bool(look.active.all()) else []
    active = [True] * look.steps if look.active is None else look.active.reshape(-1).bool().tolist()
    return [DrawnAct(look.step(step), step) for step in range(look.steps) if active[step]]


def _of_picture(trace: AttentionTrace, height: int, width: int) -> AttentionTrace:
    """``trace``, checked to hold one example of a picture of this shape; the picture may be a smaller copy."""
    if len(trace) != 1:
        raise DataError(f"a drawing shows one example, and this trace holds {len(trace)}: pass trace[i]")
    trace = trace.detach().cpu()
    if trace.image_size is None:
        return dataclasses.replace(trace, image_size=torch.tensor([(height, width)]))
    size = trace.image_size[0].tolist()
    expected = width * size[0] / size[1]
    if abs(height - expected) > 1.5 + 0.02 * expected:
        what = f"the picture is {width}×{height} px and the trace is of one with {size[1]}×{size[0]} px"
        raise DataError(f"{what}: pass the picture that the model saw")
    return trace


def nested_crops(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    captions: Mapping[str, str] | None = None,
    opacity: float = 0.55,
    outline: Mark | Sequence[Mark] = (),
) -> Image.Image:
    """``picture``, upright, with a frame round each crop of ``trace``; what lies in fewer crops is darker.

    ``captions`` stand at the frames, by the name of the look; ``opacity`` is how much is hidden of what no crop shows.
    """
    drawing = Drawing(picture, trace, enlarge, outline)
    inside = np.stack([drawing.map(act) for act in drawing.acts]).mean(0).astype(np.float32)  # (H,W)
    frames = [mark for act in drawing.acts for mark in drawing.marks(act) if isinstance(mark, Polygon)]
    image = drawing.outlined(let_through(drawing.shown, 1 - opacity * (1 - inside)))
    image = draw_marks(image, frames, image.size)
    pen, face = ImageDraw.Draw(image), font(max(11, round(0.032 * max(image.size))))
    plates: list[tuple[float, float, float, float]] = []
    for act, frame in zip(drawing.acts, frames):
        text = " ".join(filter(None, (act.title, (captions or {}).get(act.look.name))))
        width, height = face.getlength(text) + 6, line_height(face) + 3
        (x, y), bottom = (min(axis) for axis in zip(*frame.points)), max(point[1] for point in frame.points)
        left = min(max(0.0, x), image.width - width)
        for top in (y - height, bottom, y):  # above the frame, else below it, else inside it
            right, low = left + width, top + height
            fits = left >= 0 and 0 <= top <= image.height - height
            if fits and all(x1 <= left or right <= x0 or y1 <= top or low <= y0 for x0, y0, x1, y1 in plates):
                pen.rectangle((left, top, right, low), fill=PAPER)
                pen.text((left + 3, top + 1), text, INK, font=face)
                plates.append((left, top, right, low))
                break
    return image
