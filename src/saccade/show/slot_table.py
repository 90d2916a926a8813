"""Attention over slots: a row for each slot in words, a column for each step of each look, the weight in each cell.

Weight on slots without a text is one row more. As HTML, cells of a page have classes (:func:`heat_rules`); those of a
notebook, which has no style sheet, carry their colours themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from saccade.errors import ShapeError
from saccade.show.colours import (
    FAINT_INK,
    INK,
    PAPER,
    RULE,
    Rgb,
    Scaled,
    Values,
    by_own_peak,
    heat,
    ink_on,
    legend_bar,
)
from saccade.show.sheet import MARGIN, elide, font, line_height, wrap, write
from saccade.trace import AttentionTrace, Look

NEEDED = "the answer needs it"
NO_LOOKS = "this model has no attention to show"
LEVELS = 50  # Colours of cells on a page, beside that of 0.


@dataclass(frozen=True, eq=False)
class SlotGrid:
    """Rows of slots under columns of looks."""

    headings: tuple[str, ...]  # One for each column; none for a model without looks.
    texts: tuple[str, ...]  # One for each row.
    weights: Values  # (R,T) as the model used them.
    supporting: frozenset[int] = frozenset()  # Rows that the answer needs.
    ended: tuple[str, ...] = ()  # Looks and steps that are not shown: they came after the end.

    @cached_property
    def scaled(self) -> Scaled | None:
        """The weights as they are painted; None where there is no column."""
        return by_own_peak(self.weights) if self.headings else None

    @cached_property
    def fills(self) -> list[list[Rgb]]:
        """The colour of every cell."""
        return [] if self.scaled is None else [_rgb(row) for row in self.scaled.values]

    @cached_property
    def levels(self) -> list[list[int]]:
        """The number of every cell's colour among those of a page."""
        return [] if self.scaled is None else np.rint(LEVELS * self.scaled.values).astype(int).tolist()

    @property
    def legend(self) -> str:
        """What colours mean, and what is not shown."""
        if self.scaled is None:
            return NO_LOOKS
        after = f"; after the end, not shown: {', '.join(self.ended)}" if self.ended else ""
        return f"weight: {self.scaled.legend}{after}"

    @property
    def bar(self) -> str:
        """What goes on after the legend where rows are marked with a bar."""
        return f"; bar at the left: {NEEDED}" if self.supporting else ""


@dataclass(frozen=True)
class SlotHeat:
    """A block of a report: sentences × hops."""

    grid: SlotGrid
    caption: str = ""


def heat_rules() -> str:
    """The style of coloured cells on a page."""
    colours = _rgb(np.linspace(0, 1, LEVELS + 1, dtype=np.float32))
    return "\n".join(f".heat-{level}{{{style_of(colour)}}}" for level, colour in enumerate(colours))


def _rgb(values: Values) -> list[Rgb]:
    return [(red, green, blue) for red, green, blue in heat(values).round().astype(int).tolist()]


def style_of(fill: Rgb) -> str:
    """Background and ink of a cell as CSS."""
    background, ink = ("#" + bytes(colour).hex() for colour in (fill, ink_on(fill)))
    return f"background:{background};color:{ink}"


def slot_grid(
    looks: AttentionTrace | Sequence[Look], sentences: Sequence[str], supporting: Collection[int] = ()
) -> SlotGrid:
    """The table of ``looks`` over slots, (1,S) or (1,T,S) each, of one example; of a trace those that lie on slots.

    ``sentences`` are the texts of the first slots, the others are empty; the answer needs those in ``supporting``.
    """
    if isinstance(looks, AttentionTrace):
        looks = [look for look in looks.looks if not look.is_spatial]
    count, columns = len(sentences), list[Tensor]()
    headings, ended = list[str](), list[str]()
    for look in looks:
        weights = torch.zeros(0) if look.weights is None else look.weights.detach().cpu().float()
        if not 0 < count <= weights.shape[-1]:
            raise ShapeError("sentences", f"between 1 and {weights.shape[-1]}, the number of slots", (count,))
        active = [True] * look.steps if look.active is None else look.active.reshape(-1).bool().tolist()
        for step, column in enumerate(weights.reshape(look.steps, -1)):  # (S,)
            heading = f"{look.name} {step + 1}" if look.has_steps else look.name
            (headings if active[step] else ended).append(heading)
            if active[step]:
                columns.append(column)
    texts, table = list(sentences), np.zeros((count + 1, len(columns)), np.float32)  # (R+1,T)
    for number, column in enumerate(columns):
        table[:-1, number], table[-1, number] = column[:count], column[count:].sum()
    if table[-1].any():
        empty = max(map(len, columns)) - count
        texts.append(f"({empty} empty slots, together)" if empty > 1 else "(1 empty slot)")
    return SlotGrid(tuple(headings), tuple(texts), table[: len(texts)], frozenset(supporting), tuple(ended))


_CELL_WIDTH, _TEXT, _SMALL = 74, 15, 13


def slot_table(
    looks: AttentionTrace | Sequence[Look],
    sentences: Sequence[str],
    *,
    question: str = "",
    answer: str = "",
    supporting: Collection[int] = (),
    text_width: int = 420,
) -> Image.Image:
    """Sentences × hops, coloured by weight, with the question and the answer above.

    ``supporting`` are numbers of the sentences that the answer needs; they are marked with a bar. ``text_width`` is the
    room for sentences in pixels. The other arguments are those of :func:`slot_grid`.
    """
    grid = slot_grid(looks, sentences, supporting)
    face, bold, small = font(_TEXT), font(_TEXT, bold=True), font(_SMALL)
    row, left, step = round(line_height(face) * 1.5), MARGIN + 14, _CELL_WIDTH + 3
    width = left + text_width + len(grid.headings) * step + MARGIN
    title = "   →   ".join(part for part in (question.strip(), answer.strip()) if part)
    intro = wrap(title, bold, width - 2 * MARGIN)
    legend = wrap(grid.legend + grid.bar, small, width - 2 * MARGIN - 100)
    top = MARGIN + len(intro) * line_height(bold) + (14 if intro else 0) + row
    bottom = top + len(grid.texts) * row + line_height(small)
    sheet = Image.new("RGB", (width, bottom + len(legend) * line_height(small) + MARGIN), PAPER)
    pen = ImageDraw.Draw(sheet)
    write(sheet, MARGIN, MARGIN, [(line, bold, INK) for line in intro])
    for column, heading in enumerate(grid.headings):
        x = left + text_width + column * step
        middle = x + _CELL_WIDTH / 2
        pen.text((middle, top - row / 2), elide(heading, small, _CELL_WIDTH), FAINT_INK, font=small, anchor="mm")
        for slot, weight in enumerate(grid.weights[:, column]):
            y = top + slot * row
            pen.rectangle([x, y, x + _CELL_WIDTH - 1, y + row - 3], fill=grid.fills[slot][column])
            pen.text(
                (middle, y + row / 2 - 1), f"{weight:.2f}", ink_on(grid.fills[slot][column]), font=small, anchor="mm"
            )
    for slot, sentence in enumerate(grid.texts):
        y = top + slot * row
        pen.line([left, y - 2, left + text_width - 12, y - 2], fill=RULE)
        if slot in grid.supporting:
            pen.rectangle([MARGIN, y + 2, MARGIN + 4, y + row - 5], fill=INK)
        pen.text((left, y + row / 2 - 1), elide(sentence, face, text_width - 20), INK, font=face, anchor="lm")
    sheet.paste(legend_bar(90, 9), (MARGIN, bottom + line_height(small) // 2 - 4))
    write(sheet, MARGIN + 100, bottom, [(line, small, FAINT_INK) for line in legend])
    return sheet
