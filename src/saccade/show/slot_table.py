"""Attention over slots as a picture of a table: one line a sentence, one column a step, the weight in each cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from PIL import Image, ImageDraw

from saccade.show.colours import FAINT_INK, INK, PAPER, RULE, legend_bar
from saccade.show.lettering import elide, font, line_height, wrap
from saccade.show.slot_grid import SlotGrid, slot_grid
from saccade.trace import AttentionTrace, Look

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
        looks: over slots, of one example, as in :func:`saccade.show.slot_grid.slot_grid`.
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
