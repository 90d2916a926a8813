"""Several pictures side by side with captions: a contact sheet and a grid to compare.

Many pictures at a glance: a grid of thumbnails with captions.

Several models on the same pictures, look by look: attended images above, maps below, as a paper prints them.

A column is one look of one model; a block of two rows is one picture. The upper row shows the picture times the product
of the model's maps up to this one; the lower row shows this look's own weights, in grey, white at its own peak. For a
crop both rows show its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from PIL import Image, ImageDraw

from saccade.errors import DataError, ShapeError
from saccade.show import acts as drawing
from saccade.show.colours import FAINT_INK, INK, PAPER, RULE, Values, by_own_peak
from saccade.show.overlay import (
    Mark,
    PictureLike,
    as_marks,
    as_picture,
    draw_marks,
    fit_panel,
    let_through,
)
from saccade.show.sheet import elide, font, line_height, paste_framed, wrap, write
from saccade.trace import AttentionTrace

_SHEET_MARGIN, _SHEET_GUTTER, _LINES = 28, 18, 2


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
    face = font(14)
    wrapped = [wrap(caption, face, panel, _LINES) for caption in captions]
    caption_height = 6 + max(len(lines) for lines in wrapped) * line_height(face) if captions else 0
    per_row = min(columns, len(pictures))
    rows = -(-len(pictures) // per_row)
    width = 2 * _SHEET_MARGIN + per_row * panel + (per_row - 1) * _SHEET_GUTTER
    height = 2 * _SHEET_MARGIN + rows * (panel + caption_height) + (rows - 1) * _SHEET_GUTTER
    sheet = Image.new("RGB", (width, height), PAPER)
    for number, picture in enumerate(pictures):
        x = _SHEET_MARGIN + number % per_row * (panel + _SHEET_GUTTER)
        y = _SHEET_MARGIN + number // per_row * (panel + caption_height + _SHEET_GUTTER)
        original = as_picture(picture)
        thumb = draw_marks(fit_panel(original, panel), marks[number] if marks else (), original.size)
        paste_framed(sheet, thumb, x + (panel - thumb.width) // 2, y + (panel - thumb.height) // 2)
        write(sheet, x, y + panel + 6, [(line, face, INK) for line in wrapped[number]] if captions else [])
    return sheet


_MARGIN, _GUTTER, _SEAM, _SPACE = 28, 8, 4, 22
_HEAD, _SMALL = font(16, bold=True), font(14)


@dataclass(frozen=True)
class Shown:
    """One model's looks on one picture."""

    model: str
    trace: AttentionTrace
    """The trace of one example."""
    last: int | None = None
    """Only this many of its last looks; None: all."""


@dataclass(frozen=True)
class Example:
    """One picture and what every model made of it; the models are the same, in the same order, in each example."""

    picture: PictureLike
    notes: Sequence[str]
    """Lines beside the picture: the question, the truth, each model's answer."""
    shown: Sequence[Shown]
    outline: Mark | Sequence[Mark] = ()
    """Evidence, drawn on the picture alone."""


@dataclass(frozen=True)
class _Panel:
    model: str
    title: str
    attended: Image.Image
    weights: Image.Image


def comparison_grid(examples: Sequence[Example], *, panel: int = 200) -> Image.Image:
    """The whole figure on white.

    Args:
        examples: at least one.
        panel: longest side of a picture in pixels.
    """
    rows = [[each for shown in example.shown for each in _panels(example, shown, panel)] for example in examples]
    titles = [[(each.model, each.title) for each in row] for row in rows]
    if any(row != titles[0] for row in titles):
        raise DataError("comparison grid: the examples do not show the same looks of the same models")
    head = 2 * line_height(_HEAD)
    block = 2 * panel + _SEAM
    left = _MARGIN + panel + 2 * _GUTTER
    gaps = [
        _SPACE if number and row[0] != titles[0][number - 1][0] else _GUTTER for number, row in enumerate(titles[0])
    ]
    starts = [left + sum(gaps[1 : number + 1]) + number * panel for number in range(len(titles[0]))]
    width = (starts[-1] if starts else left) + panel + _MARGIN
    sheet = Image.new("RGB", (width, 2 * _MARGIN + head + len(rows) * (block + _SPACE) - _SPACE), PAPER)
    _write_heads(sheet, titles[0], starts, panel)
    for number, (example, row) in enumerate(zip(examples, rows)):
        top = _MARGIN + head + number * (block + _SPACE)
        _write_example(sheet, example, top, panel)
        for x, each in zip(starts, row):
            for y, image in ((top, each.attended), (top + panel + _SEAM, each.weights)):
                paste_framed(sheet, image, x, y)
    return sheet


def _panels(example: Example, shown: Shown, panel: int) -> list[_Panel]:
    """Every look, or the last few: what passed so far, and the look's own map."""
    original = as_picture(example.picture)
    small = fit_panel(original, panel)
    size = (small.height, small.width)
    trace = drawing.one_example(shown.trace, (original.height, original.width))
    passed: Values | None = None
    found = []
    for number, act in enumerate(drawing.acts_of(trace), 1):
        own = drawing.act_map(trace, act, size)
        passed = own if passed is None or trace.total == "last" else passed * own
        title = f"attention {number}" if shown.last != 1 else ""
        found.append(_Panel(shown.model, title, let_through(small, by_own_peak(passed).values), _grey(own)))
    if not found:
        raise DataError(f"'{shown.model}' has no look on the picture: there is nothing to compare")
    return found if shown.last is None else found[-shown.last :]


def _grey(values: Values) -> Image.Image:
    shades = (255 * by_own_peak(values).values).round().astype(np.uint8)  # (H,W)
    return Image.fromarray(shades).convert("RGB")


def _write_heads(sheet: Image.Image, titles: Sequence[tuple[str, str]], starts: Sequence[int], panel: int) -> None:
    """Model names over their columns, the number of each look below, and a rule over each model's columns."""
    pen = ImageDraw.Draw(sheet)
    pen.text((_MARGIN, _MARGIN), "input", INK, font=_HEAD)
    for model, group in groupby(zip(titles, starts), key=lambda entry: entry[0][0]):
        columns = list(group)
        first, end = columns[0][1], columns[-1][1] + panel
        pen.text((first, _MARGIN), elide(model, _HEAD, end - first), INK, font=_HEAD)
        for (_, title), x in columns:
            pen.text((x, _MARGIN + line_height(_HEAD) - 2), title, FAINT_INK, font=_SMALL)
        base = _MARGIN + 2 * line_height(_HEAD) - 7
        pen.line([first, base, end, base], fill=RULE)


def _write_example(sheet: Image.Image, example: Example, top: int, panel: int) -> None:
    original = as_picture(example.picture)
    paste_framed(sheet, draw_marks(fit_panel(original, panel), as_marks(example.outline), original.size), _MARGIN, top)
    lines = [
        (elide(text, _SMALL, panel), _SMALL, FAINT_INK if number else INK) for number, text in enumerate(example.notes)
    ]
    write(sheet, _MARGIN, top + panel + _SEAM + 2, lines)
