"""Attention over slots: a row for each slot in words, a column for each step of each look, the weight in each cell.

Pictures, pages and the terminal draw the same table from one grid of numbers. Weight that lies on slots without a text
(a memory network without mask gives its empty slots some) is one row more, with the sum over these slots.

As HTML (``templates/blocks.html``), the sentences stay text that can be selected. A page of a report allows no style
but its own, so cells there have one of a few classes (:func:`heat_rules`). A notebook has no style sheet, so cells
there carry their colours themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from PIL import Image, ImageDraw

from saccade.errors import DataError, ShapeError
from saccade.show.colours import (
    FAINT_INK,
    INK,
    PAPER,
    RULE,
    Rgb,
    Scaled,
    Values,
    as_map,
    by_own_peak,
    heat,
    ink_on,
    legend_bar,
)
from saccade.show.sheet import elide, font, line_height, wrap
from saccade.trace import AttentionTrace, Look

NEEDED = "the answer needs it"
NO_LOOKS = "this model has no attention to show"
LEVELS = 50
"""Colours of cells on a page, beside that of 0."""


@dataclass(frozen=True, eq=False)
class SlotGrid:
    """Rows of slots under columns of looks."""

    headings: tuple[str, ...]
    """One for each column; none for a model without looks."""
    texts: tuple[str, ...]
    """One for each row."""
    weights: Values
    """(R,T) as the model used them."""
    supporting: frozenset[int] = frozenset()
    """Rows that the answer needs."""
    ended: tuple[str, ...] = ()
    """Looks and steps that are not shown: they came after the end."""

    @cached_property
    def scaled(self) -> Scaled | None:
        """The weights as they are painted; None where there is no column."""
        return by_own_peak(self.weights) if self.headings else None

    @cached_property
    def _colours(self) -> list[list[list[int]]]:
        return [] if self.scaled is None else heat(self.scaled.values).round().astype(int).tolist()  # (R,T,3)

    def fill(self, row: int, column: int) -> Rgb:
        """The colour of a cell."""
        red, green, blue = self._colours[row][column]
        return red, green, blue

    def ink(self, row: int, column: int) -> Rgb:
        """The colour of the number in it."""
        return ink_on(self.fill(row, column))

    def level(self, row: int, column: int) -> int:
        """The number of the cell's colour among those of a page."""
        return 0 if self.scaled is None else round(LEVELS * float(self.scaled.values[row, column]))

    def style(self, row: int, column: int) -> str:
        """The style of a cell that carries its colours itself."""
        return _paint(self.fill(row, column))

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
    colours = heat(np.linspace(0, 1, LEVELS + 1, dtype=np.float32)).round().astype(int).tolist()
    rules = (f".heat-{level}{{{_paint((red, green, blue))}}}" for level, (red, green, blue) in enumerate(colours))
    return "\n".join(rules)


def _paint(fill: Rgb) -> str:
    """Background and ink of a cell as CSS."""
    background, ink = ("#" + bytes(colour).hex() for colour in (fill, ink_on(fill)))
    return f"background:{background};color:{ink}"


def slot_grid(
    looks: AttentionTrace | Look | Sequence[Look], sentences: Sequence[str], supporting: Collection[int] = ()
) -> SlotGrid:
    """The table of looks over slots, of one example.

    Args:
        looks: over slots, (1,S) or (1,T,S) each; of a trace those that lie on slots.
        sentences: texts of the slots, from the first on; the slots after them are empty.
        supporting: numbers of the slots that the answer needs.
    """
    if isinstance(looks, AttentionTrace):
        looks = [look for look in looks.looks if not look.is_spatial]
    chosen = [looks] if isinstance(looks, Look) else list(looks)
    headings: list[str] = []
    ended: list[str] = []
    columns: list[torch.Tensor] = []
    for look in chosen:
        weights = _weights(look, len(sentences))  # (T,S)
        active = [True] * look.steps if look.active is None else look.active.reshape(-1).bool().tolist()
        for step in range(look.steps):
            heading = f"{look.name} {step + 1}" if look.has_steps else look.name
            (headings if active[step] else ended).append(heading)
            if active[step]:
                columns.append(weights[step].detach().cpu().float())
    if chosen and not columns:
        raise DataError(f"look '{chosen[-1].name}' has no active step: there is nothing to draw")
    many = len(sentences)
    texts, rest = list(sentences), [column[many:].sum() for column in columns]
    kept = [column[:many] for column in columns]
    if any(float(each) != 0 for each in rest):
        empty = max(len(column) for column in columns) - many
        texts.append(f"({empty} empty slots, together)" if empty > 1 else "(1 empty slot)")
        kept = [torch.cat([column, each.reshape(1)]) for column, each in zip(kept, rest)]
    values = as_map(torch.stack(kept, 1)) if kept else np.zeros((many, 0), np.float32)  # (R,T)
    return SlotGrid(tuple(headings), tuple(texts), values, frozenset(supporting), tuple(ended))


def _weights(look: Look, sentences: int) -> torch.Tensor:
    """(T,S) of a look over slots of one example."""
    if look.is_spatial or look.weights is None:
        raise DataError(f"look '{look.name}' lies on a picture; a table is made of looks of kind 'slots'")
    if look.batch_size != 1:
        raise DataError(f"a drawing shows one example, and this look holds {look.batch_size}: pass look.example(i)")
    weights = look.weights[0] if look.has_steps else look.weights
    if not 0 < sentences <= weights.shape[-1]:
        raise ShapeError("sentences", f"between 1 and {weights.shape[-1]}, the number of slots", (sentences,))
    return weights


_MARGIN, _CELL_WIDTH, _TEXT = 28, 74, 15


def slot_table(
    looks: AttentionTrace | Look | Sequence[Look],
    sentences: Sequence[str],
    *,
    question: str = "",
    answer: str = "",
    supporting: Collection[int] = (),
    text_width: int = 420,
) -> Image.Image:
    """Sentences × hops, coloured by weight.

    Args:
        looks: over slots, of one example, as in :func:`saccade.show.slot_table.slot_grid`.
        sentences: the memory in words. Weight on the slots after the last sentence is a row of its own.
        question: shown above the table.
        answer: shown beside the question.
        supporting: numbers of the sentences that the answer needs; marked with a bar.
        text_width: room for the sentences in pixels.
    """
    return _draw(slot_grid(looks, sentences, supporting), question, answer, text_width)


def _draw(grid: SlotGrid, question: str, answer: str, text_width: int) -> Image.Image:
    face, bold, small = font(_TEXT), font(_TEXT, bold=True), font(13)
    row, left = round(line_height(face) * 1.5), _MARGIN + 14
    width = left + text_width + len(grid.headings) * (_CELL_WIDTH + 3) + _MARGIN
    title = "   →   ".join(part for part in (question.strip(), answer.strip()) if part)
    intro = wrap(title, bold, width - 2 * _MARGIN, 3)
    legend = wrap(grid.legend + grid.bar, small, width - 2 * _MARGIN - 100, 3)
    top = _MARGIN + len(intro) * line_height(bold) + (14 if intro else 0) + row
    foot = (1 + len(legend)) * line_height(small) + _MARGIN
    sheet = Image.new("RGB", (width, top + len(grid.texts) * row + foot), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, line in enumerate(intro):
        pen.text((_MARGIN, _MARGIN + number * line_height(bold)), line, INK, font=bold)
    for column, heading in enumerate(grid.headings):
        x = left + text_width + column * (_CELL_WIDTH + 3)
        text = elide(heading, small, _CELL_WIDTH)
        pen.text((x + _CELL_WIDTH / 2, top - row / 2), text, FAINT_INK, font=small, anchor="mm")
        for slot in range(len(grid.texts)):
            y = top + slot * row
            pen.rectangle([x, y, x + _CELL_WIDTH - 1, y + row - 3], fill=grid.fill(slot, column))
            number_text = f"{grid.weights[slot, column]:.2f}"
            ink = grid.ink(slot, column)
            pen.text((x + _CELL_WIDTH / 2, y + row / 2 - 1), number_text, ink, font=small, anchor="mm")
    for slot, sentence in enumerate(grid.texts):
        y = top + slot * row
        pen.line([left, y - 2, left + text_width - 12, y - 2], fill=RULE)
        if slot in grid.supporting:
            pen.rectangle([_MARGIN, y + 2, _MARGIN + 4, y + row - 5], fill=INK)
        pen.text((left, y + row / 2 - 1), elide(sentence, face, text_width - 20), INK, font=face, anchor="lm")
    y = top + len(grid.texts) * row + line_height(small)
    sheet.paste(legend_bar(90, 9), (_MARGIN, y + line_height(small) // 2 - 4))
    for number, line in enumerate(legend):
        pen.text((_MARGIN + 100, y + number * line_height(small)), line, FAINT_INK, font=small)
    return sheet
