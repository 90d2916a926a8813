"""A picture with the crops that a model cut out of it, one inside the other, each with what was said there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image, ImageDraw

from saccade.show import acts as drawing
from saccade.show.colours import INK, PAPER
from saccade.show.overlay import (
    MIN_SIDE,
    Mark,
    PictureLike,
    Polygon,
    as_marks,
    as_picture,
    draw_marks,
    enlarge,
    let_through,
)
from saccade.show.sheet import font, line_height
from saccade.trace import AttentionTrace

_PAD = 3
_Plate = tuple[float, float, float, float]


def nested_crops(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    said: Mapping[str, str] | None = None,
    opacity: float = 0.55,
    outline: Mark | Sequence[Mark] = (),
    least_side: int = MIN_SIDE,
) -> Image.Image:
    """``picture`` with a frame round each crop of ``trace``; what lies in fewer crops is darker.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``), see :attr:`saccade.trace.AttentionTrace.is_nested`.
        said: what stands at a frame, by the name of its look.
        opacity: how much is hidden of what no crop shows, 0 to 1.
        outline: evidence to draw on top, in pixels of ``picture``.
        least_side: small pictures are enlarged by a whole factor until their longer side has this many pixels.
    """
    original = as_picture(picture)
    shown = enlarge(original, least_side)
    size = (shown.height, shown.width)
    trace = drawing.one_example(trace, (original.height, original.width))
    acts = drawing.acts_of(trace)
    inside = np.stack([drawing.act_map(trace, act, size) for act in acts]).mean(0).astype(np.float32)  # (H,W)
    frames = [mark for act in acts for mark in drawing.act_marks(trace, act, size)]
    result = draw_marks(let_through(shown, 1 - opacity * (1 - inside)), as_marks(outline), original.size)
    result = draw_marks(result, frames, shown.size)
    plates: list[_Plate] = []
    for act, frame in zip(acts, frames):
        if isinstance(frame, Polygon):
            text = " ".join(filter(None, (act.title, (said or {}).get(act.look.name))))
            plates += _tag(result, frame, text, plates)
    return result


def _tag(image: Image.Image, frame: Polygon, text: str, taken: Sequence[_Plate]) -> list[_Plate]:
    """``text`` on a plate above the frame, else below it, else inside it; none where a picture has no room for it."""
    face = font(max(11, round(0.032 * max(image.size))))
    width, height = face.getlength(text) + 2 * _PAD, line_height(face) + _PAD
    (x, y), bottom = (min(axis) for axis in zip(*frame.points)), max(point[1] for point in frame.points)
    left = min(max(0.0, x), image.width - width)
    for top in (y - height, bottom, y):
        plate = (left, top, left + width, top + height)
        fits = left >= 0 and 0 <= top <= image.height - height
        if fits and not any(_overlap(plate, other) for other in taken):
            pen = ImageDraw.Draw(image)
            pen.rectangle(plate, fill=PAPER)
            pen.text((left + _PAD, top + 1), text, INK, font=face)
            return [plate]
    return []


def _overlap(first: _Plate, second: _Plate) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
