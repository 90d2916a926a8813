"""Many pictures at a glance: a grid of thumbnails with captions."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image, ImageDraw

from saccade.errors import DataError, ShapeError
from saccade.show.colours import INK, PAPER, RULE
from saccade.show.lettering import font, line_height, wrap
from saccade.show.marks import Mark, draw_marks
from saccade.show.picture import PictureLike, as_picture, fit_panel

_MARGIN, _GUTTER, _LINES = 28, 18, 2


def contact_sheet(
    pictures: Sequence[PictureLike],
    captions: Sequence[str] = (),
    *,
    marks: Sequence[Sequence[Mark]] = (),
    columns: int = 6,
    panel: int = 200,
) -> Image.Image:
    """The ``pictures`` in rows, left to right.

    Args:
        pictures: at least one, of any sizes.
        captions: one per picture, or none at all; two lines each, then an ellipsis.
        marks: outlines per picture in its own pixels (evidence, boxes), or none at all.
        columns: pictures in a row.
        panel: longest side of a thumbnail in pixels; small pictures are enlarged by whole factors.
    """
    if not pictures:
        raise DataError("contact sheet: no pictures came; there is nothing to show")
    for name, given in (("captions", captions), ("marks", marks)):
        if given and len(given) != len(pictures):
            raise ShapeError(name, f"({len(pictures)},), one per picture", (len(given),))
    if columns < 1 or panel < 1:
        raise DataError(f"contact sheet: columns {columns} and panel {panel} must be at least 1")
    face = font(14)
    wrapped = [wrap(caption, face, panel, _LINES) for caption in captions]
    caption_height = 6 + max(len(lines) for lines in wrapped) * line_height(face) if captions else 0
    per_row = min(columns, len(pictures))
    rows = -(-len(pictures) // per_row)
    width = 2 * _MARGIN + per_row * panel + (per_row - 1) * _GUTTER
    height = 2 * _MARGIN + rows * (panel + caption_height) + (rows - 1) * _GUTTER
    sheet = Image.new("RGB", (width, height), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, picture in enumerate(pictures):
        x = _MARGIN + number % per_row * (panel + _GUTTER)
        y = _MARGIN + number // per_row * (panel + caption_height + _GUTTER)
        original = as_picture(picture)
        thumb = draw_marks(fit_panel(original, panel), marks[number] if marks else (), original.size)
        at = (x + (panel - thumb.width) // 2, y + (panel - thumb.height) // 2)
        sheet.paste(thumb, at)
        pen.rectangle([at[0] - 1, at[1] - 1, at[0] + thumb.width, at[1] + thumb.height], outline=RULE)
        for line, text in enumerate(wrapped[number] if captions else ()):
            pen.text((x, y + panel + 6 + line * line_height(face)), text, INK, font=face)
    return sheet
