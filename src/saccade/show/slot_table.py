"""Attention over slots as a small heat table: one line a sentence, one column a step, the raw weight in each cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from PIL import Image, ImageDraw

from saccade.errors import DataError, ShapeError
from saccade.show.colours import FAINT_INK, INK, PAPER, RULE, Rgb, heat, ink_on, legend_bar
from saccade.show.lettering import elide, font, line_height, wrap
from saccade.show.scaling import as_map, by_own_peak
from saccade.trace import Look

_MARGIN, _CELL_WIDTH, _TEXT = 28, 74, 15


def slot_table(
    look: Look,
    sentences: Sequence[str],
    *,
    question: str = "",
    answer: str = "",
    supporting: Collection[int] = (),
    text_width: int = 420,
) -> Image.Image:
    """Sentences × hops, coloured by weight.

    Args:
        look: a slots look of one example, (1,S) or (1,T,S).
        sentences: the memory in words; slots past the last sentence are padding and left out.
        question: shown above the table.
        answer: shown beside the question.
        supporting: numbers of the sentences that the answer needs; marked with a bar.
        text_width: room for the sentences in pixels.
    """
    if look.is_spatial or look.weights is None:
        raise DataError(f"look '{look.name}' lies on a picture; slot_table draws looks of kind 'slots'")
    if look.batch_size != 1:
        raise DataError(f"a drawing shows one example, and this look holds {look.batch_size}: pass look.example(i)")
    weights = look.weights[0] if look.has_steps else look.weights  # (T,S)
    if not 0 < len(sentences) <= weights.shape[-1]:
        raise ShapeError("sentences", f"between 1 and {weights.shape[-1]}, the number of slots", (len(sentences),))
    kept = list(range(look.steps))
    if look.active is not None:
        active = look.active.reshape(-1).bool().tolist()
        kept = [step for step in kept if active[step]]
    if not kept:
        raise DataError(f"look '{look.name}' has no active step: there is nothing to draw")
    raw = as_map(weights[kept, : len(sentences)].transpose(0, 1))  # (S,T)
    headings = [f"{look.name} {step + 1}" if look.has_steps else look.name for step in kept]
    return _draw(raw, headings, sentences, question, answer, supporting, text_width)


def _draw(
    raw: np.ndarray,
    headings: Sequence[str],
    sentences: Sequence[str],
    question: str,
    answer: str,
    supporting: Collection[int],
    text_width: int,
) -> Image.Image:
    scaled = by_own_peak(raw)
    face, bold, small = font(_TEXT), font(_TEXT, bold=True), font(13)
    row, left = round(line_height(face) * 1.5), _MARGIN + 14
    width = left + text_width + len(headings) * (_CELL_WIDTH + 3) + _MARGIN
    title = "   →   ".join(part for part in (question.strip(), answer.strip()) if part)
    intro = wrap(title, bold, width - 2 * _MARGIN, 3)
    top = _MARGIN + len(intro) * line_height(bold) + (14 if intro else 0) + row
    sheet = Image.new("RGB", (width, top + len(sentences) * row + 2 * line_height(small) + _MARGIN), PAPER)
    pen = ImageDraw.Draw(sheet)
    for number, line in enumerate(intro):
        pen.text((_MARGIN, _MARGIN + number * line_height(bold)), line, INK, font=bold)
    colours = heat(scaled.values).round().astype(int)  # (S,T,3)
    for column, heading in enumerate(headings):
        x = left + text_width + column * (_CELL_WIDTH + 3)
        text = elide(heading, small, _CELL_WIDTH)
        pen.text((x + _CELL_WIDTH / 2, top - row / 2), text, FAINT_INK, font=small, anchor="mm")
        for slot in range(len(sentences)):
            fill: Rgb = (int(colours[slot, column, 0]), int(colours[slot, column, 1]), int(colours[slot, column, 2]))
            y = top + slot * row
            pen.rectangle([x, y, x + _CELL_WIDTH - 1, y + row - 3], fill=fill)
            number_text = f"{raw[slot, column]:.2f}"
            pen.text((x + _CELL_WIDTH / 2, y + row / 2 - 1), number_text, ink_on(fill), font=small, anchor="mm")
    for slot, sentence in enumerate(sentences):
        y = top + slot * row
        pen.line([left, y - 2, left + text_width - 12, y - 2], fill=RULE)
        if slot in supporting:
            pen.rectangle([_MARGIN, y + 2, _MARGIN + 4, y + row - 5], fill=INK)
        pen.text((left, y + row / 2 - 1), elide(sentence, face, text_width - 20), INK, font=face, anchor="lm")
    _footer(sheet, scaled.legend, bool(supporting))
    return sheet


def _footer(sheet: Image.Image, legend: str, has_support: bool) -> None:
    small = font(13)
    bar = legend_bar(90, 9)
    y = sheet.height - _MARGIN - line_height(small) // 2
    sheet.paste(bar, (_MARGIN, y - 4))
    text = f"weight: {legend}" + ("; bar at the left: supporting sentence" if has_support else "")
    room = sheet.width - 2 * _MARGIN - bar.width - 10
    ImageDraw.Draw(sheet).text((_MARGIN + 100, y), elide(text, small, room), FAINT_INK, font=small, anchor="lm")
