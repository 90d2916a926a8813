"""Draws how an answer was made as one picture: the question, every look in order, the total last.

Each column has the overlay above, below it the attended image (for a crop: what was cut out), and under both the name
of the act with the raw peak weight. Strips longer than a row wrap, and so does what stands under a narrow panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from PIL import Image

from saccade import geometry
from saccade.errors import DataError, nearest
from saccade.show import acts as drawing
from saccade.show.acts import Act
from saccade.show.colours import (
    FAINT_INK,
    INK,
    PAPER,
    SPAN,
    Scaled,
    Values,
    by_own_ends,
    by_own_peak,
    by_shared_peak,
    legend_bar,
)
from saccade.show.overlay import (
    OPACITY,
    Mark,
    PictureLike,
    as_marks,
    as_picture,
    draw_marks,
    fit_panel,
    let_through,
    paint,
)
from saccade.show.sheet import (
    AFTER_BAR,
    Line,
    font,
    height_of,
    line_height,
    paste_framed,
    wrap,
    write,
    write_legend,
)
from saccade.trace import AttentionTrace

Captions = Mapping[str, str | Sequence[str]]

MARGIN, GUTTER, SEAM = 28, 18, 6
_TITLE, _SMALL = 16, 14


@dataclass(frozen=True)
class _Column:
    title: str
    note: str
    upper: Image.Image
    lower: Image.Image | None


def filmstrip(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    question: str = "",
    answer: str = "",
    whole: str = "picture",
    captions: Captions | None = None,
    outline: Mark | Sequence[Mark] = (),
    scale: drawing.Scale = "own",
    cells: bool = False,
    opacity: float = OPACITY,
    columns: int = 6,
    panel: int = 300,
) -> Image.Image:
    """The looks of one example, side by side.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``); its looks on slots are drawn by :func:`slot_table` instead.
        question: what was asked; shown with the answer under the picture.
        answer: in words, with its confidence if there is one.
        whole: title of the first panel, the whole picture; nested crops are framed in it.
        captions: titles by look name, one text or one per step (the words of a caption).
        outline: evidence, drawn on the picture itself and on every overlay, in pixels of ``picture``.
        scale: each map by its "own" peak, or all by a "shared" one.
        cells: paint the cells flat instead of smooth.
        opacity: how much of the picture the peak hides.
        columns: panels in a row.
        panel: longest side of a panel in pixels.
    """
    original = as_picture(picture)
    shown = fit_panel(original, panel)
    size = (shown.height, shown.width)
    trace = drawing.one_example(trace, (original.height, original.width))
    acts = drawing.acts_of(trace)
    if not acts:
        raise DataError("this trace has no look on a picture; a memory's looks are drawn by slot_table")
    evidence = as_marks(outline)

    maps = [drawing.act_map(trace, act, size, cells=cells) for act in acts]
    totals = [drawing.total_map(trace, size)] if _total_says_more(trace, acts) else []
    if drawing.is_shared(scale):
        scaled = by_shared_peak([*maps, *totals])
    else:
        scaled = [by_own_ends(m, base=a.look.base) if a.look.base else by_own_peak(m) for m, a in zip(maps, acts)]
        adds = all(look.base for look in trace.looks_of_total)  # masks that only add
        scaled += [by_own_ends(total) if adds else by_own_peak(total) for total in totals]

    titles = _titles(acts, captions or {})
    first = draw_marks(shown, evidence, original.size)
    if trace.is_nested:  # the whole picture has a frame round each crop
        frames = [mark for act in acts for mark in drawing.act_marks(trace, act, size)]
        first = draw_marks(first, frames, shown.size)
    strip = [_Column(whole, f"{original.width} × {original.height} px", first, None)]
    for act, title, each, own in zip(acts, titles, scaled, maps):
        column = _act_column(trace, act, title, each.values, shown, evidence, original, opacity)
        strip.append(replace(column, note=f"least {float(own.min()):.3f} · {column.note}") if each.least else column)
    for each in scaled[len(acts) :]:
        upper = draw_marks(paint(shown, each.values, opacity), evidence, original.size)
        strip.append(_Column("total", _total_in_words(trace), upper, let_through(shown, each.values)))
    return _Sheet(strip, shown.size, columns, question, answer, _legend(acts, scaled, scale)).draw()


def _total_in_words(trace: AttentionTrace) -> str:
    """How the looks were combined: ``product of all looks``, of masks that only add ``product of 1 + mask``."""
    parts = trace.looks_of_total
    base = {look.base for look in parts}
    if base != {0.0} and len(base) == 1:
        return f"{trace.total} of {next(iter(base)):g} + mask"
    has_derived = len(parts) < len(trace.looks) and any(look.role == "derived" for look in trace.looks)
    return f"{trace.total} of the other looks" if has_derived else f"{trace.total} of all looks"


def _total_says_more(trace: AttentionTrace, acts: Sequence[Act]) -> bool:
    """Whether the total is a picture that has not been shown yet."""
    parts = {look.name for look in trace.looks_of_total}
    return trace.total != "last" and len([act for act in acts if act.look.name in parts]) > 1


def _act_column(
    trace: AttentionTrace,
    act: Act,
    title: str,
    values: Values,
    shown: Image.Image,
    evidence: Sequence[Mark],
    original: Image.Image,
    opacity: float,
) -> _Column:
    size = (shown.height, shown.width)
    marks = drawing.act_marks(trace, act, size)
    if act.look.kind == "crop":  # its map is its box: dim what lies outside rather than tint what lies inside
        upper, lower = let_through(shown, 0.35 + 0.65 * values), _cut_out(trace, act, original, size)
        note = f"crop, {values.mean():.0%} of the picture"
    else:
        upper, lower = paint(shown, values, opacity), let_through(shown, values)
        note = act.note
    return _Column(title, note, draw_marks(draw_marks(upper, evidence, original.size), marks, shown.size), lower)


def _cut_out(trace: AttentionTrace, act: Act, original: Image.Image, size: geometry.Size) -> Image.Image:
    """What a crop let the network see, in the shape of its grid, centred on a panel of ``size``."""
    height, width = act.look.grid or size
    ratio = min(size[0] / height, size[1] / width)
    inner = (max(1, round(height * ratio)), max(1, round(width * ratio)))
    pixels = torch.from_numpy(np.array(original)).permute(2, 0, 1).float() / 255  # (3,H,W)
    cut = as_picture(drawing.crop_content(trace, act, pixels, inner))
    panel = Image.new("RGB", (size[1], size[0]), PAPER)
    panel.paste(cut, ((size[1] - inner[1]) // 2, (size[0] - inner[0]) // 2))
    return panel


def _titles(acts: Sequence[Act], captions: Captions) -> list[str]:
    names = {act.look.name for act in acts}
    for name in captions:
        if name not in names:
            raise DataError(f"captions: no look '{name}' on the picture: {nearest(name, names)}")
    titles = []
    for act in acts:
        given = captions.get(act.look.name)
        if given is None:
            titles.append(act.title)
        elif isinstance(given, str):
            titles.append(given if act.step is None else f"{given} {act.step + 1}")
        else:
            titles.append(given[act.step or 0])
    return titles


def _legend(acts: Sequence[Act], scaled: Sequence[Scaled], scale: drawing.Scale) -> str:
    if all(act.look.kind == "crop" for act in acts):
        return ""  # nothing is painted
    if scale == "shared":
        return scaled[0].legend
    rule = "each panel's least … its own peak" if any(each.least for each in scaled) else "0 … each panel's own peak"
    if any(each.is_fixed for each in scaled):
        rule = f"masks are nearly even: all colours together are {SPAN:.0%} of what they multiply by"
    return f"{rule}; weights below 0 shown as 0" if any("below 0" in each.rule for each in scaled) else rule


def _caption(entry: _Column, width: int) -> list[Line]:
    """Name and note of a column, wrapped: under a narrow picture they need more than a line each."""
    title, small = font(_TITLE, bold=True), font(_SMALL)
    noted = [(line.removesuffix(" ·"), small, FAINT_INK) for line in wrap(entry.note, small, width, 3)]
    return [*((line, title, INK) for line in wrap(entry.title, title, width, 3)), *noted]


@dataclass(frozen=True)
class _Sheet:
    """Columns set out in rows, with the question card and the legend."""

    strip: Sequence[_Column]
    panel: tuple[int, int]  # (width, height)
    columns: int
    question: str
    answer: str
    legend: str

    def draw(self) -> Image.Image:
        per_row = min(self.columns, len(self.strip))
        rows = -(-len(self.strip) // per_row)
        width, height = self.panel
        column = max(width, 120)  # captions need room under a narrow picture
        captions = [_caption(entry, column) for entry in self.strip]
        card = self._card(column)
        card_height = sum(14 + height_of(lines) for lines in card)
        below = max(height + max(map(height_of, captions)), height_of(captions[0]) + max(1, card_height))
        row_height = height + SEAM + 8 + below
        sheet_width = max(2 * MARGIN + per_row * column + (per_row - 1) * GUTTER, 320)
        small, bar = font(_SMALL), legend_bar(120, 10)
        room = sheet_width - 2 * MARGIN - bar.width - AFTER_BAR
        meaning = wrap(f"weight: {self.legend}", small, room, 3) if self.legend else []
        foot = (1 + len(meaning)) * line_height(small) if meaning else 0
        sheet_height = 2 * MARGIN + rows * row_height + (rows - 1) * 2 * GUTTER + foot
        sheet = Image.new("RGB", (sheet_width, sheet_height), PAPER)
        for number, (entry, caption) in enumerate(zip(self.strip, captions)):
            x = MARGIN + number % per_row * (column + GUTTER)
            y = MARGIN + number // per_row * (row_height + 2 * GUTTER)
            paste_framed(sheet, entry.upper, x, y)
            if entry.lower is not None:
                y += height + SEAM
                paste_framed(sheet, entry.lower, x, y)
            y = write(sheet, x, y + height + 8, caption) + SEAM
            for lines in card if number == 0 else ():
                y = write(sheet, x, y + 14, lines)
        if meaning:
            middle = sheet_height - MARGIN - foot + line_height(small) + line_height(small) // 2
            write_legend(sheet, bar, meaning, small, MARGIN, middle)
        return sheet

    def _card(self, width: int) -> list[list[Line]]:
        """Question and answer, each under its label, as tall as they need."""
        label, text = font(_SMALL), font(_TITLE, bold=True)
        return [
            [(name, label, FAINT_INK), *((line, text, INK) for line in wrap(said, text, width, 4))]
            for name, said in (("asked", self.question), ("answered", self.answer))
            if said.strip()
        ]
