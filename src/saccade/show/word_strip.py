"""Draws how a caption was made as one picture: the sentence, the picture, then a panel for every word.

A panel shows where the model looked when it said the word, smooth as in the paper (:mod:`saccade.show.colours`) or
cell by cell. Below it stand a bar for the gate β, the share of what was seen that went into the word, the word itself,
how sure the model was of it, and the peak weight as the model computed it, never the rescaled one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from saccade.show import acts as drawing
from saccade.show.colours import (
    FAINT_INK,
    INK,
    PAPER,
    RULE,
    SERIES,
    Values,
    by_own_peak,
    by_shared_peak,
    legend_bar,
    smooth,
)
from saccade.show.overlay import (
    OPACITY,
    Mark,
    PictureLike,
    as_picture,
    draw_marks,
    fit_panel,
    paint,
)
from saccade.show.sheet import (
    AFTER_BAR,
    elide,
    font,
    line_height,
    paste_framed,
    wrap,
    write,
    write_legend,
)
from saccade.trace import AttentionTrace

LOOK = "word"
"""What the look of a captioner is called."""
MARGIN, GUTTER, COLUMNS = 28, 14, 7
GATE = SERIES[1]
_GATE_HEIGHT = 5
_WORD, _SMALL, _SAID = 18, 13, 26


@dataclass(frozen=True)
class _Panel:
    """One word, or the picture itself."""

    image: Image.Image
    word: str
    notes: Sequence[str]
    """Lines of small print."""
    gate: float | None = None


def has_words(trace: AttentionTrace) -> bool:
    """Whether the trace is one of a model that says a sentence word by word, as :func:`word_strip` draws it."""
    return any(look.name == LOOK and look.has_steps and look.is_spatial for look in trace.looks)


def word_strip(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    words: Sequence[tuple[str, float]],
    answer: str = "",
    evidence: Sequence[Mark | None] = (),
    scale: drawing.Scale = "own",
    cells: bool = False,
    opacity: float = OPACITY,
    columns: int = COLUMNS,
    panel: int = 200,
) -> Image.Image:
    """The words of one caption, side by side.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``), with a look called "word" that has a step for every word.
        words: what was said and how sure that was, in order; steps beyond them, such as the end, are not drawn.
        answer: the whole sentence.
        evidence: for each word where it is to be seen, drawn on its panel in pixels of ``picture``; None for nowhere.
        scale: each map by its "own" peak, or all by a "shared" one.
        cells: paint the model's cells flat instead of smooth.
        opacity: how much of the picture the peak hides.
        columns: panels in a row at most; rows are made equally long.
        panel: longest side of a panel in pixels.
    """
    original = as_picture(picture)
    shown = fit_panel(original, panel)
    trace = drawing.one_example(trace, (original.height, original.width))
    look = trace.look(LOOK)
    acts = [drawing.Act(look.step(step), step) for step in range(len(words))]
    maps = [_map(trace, act, shown, cells=cells) for act in acts]
    scaled = by_shared_peak(maps) if drawing.is_shared(scale) else [by_own_peak(each) for each in maps]
    panels = [_Panel(shown, "", [f"{original.width} × {original.height} px"])]
    for number, (act, each, (word, share)) in enumerate(zip(acts, scaled, words)):
        image = paint(shown, each.values, opacity)
        mark = evidence[number] if number < len(evidence) else None
        image = draw_marks(image, [] if mark is None else [mark], original.size)
        image = draw_marks(image, drawing.act_marks(trace, act, (shown.height, shown.width)), shown.size)
        gate = None if act.look.gain is None else float(act.look.gain.float().mean())
        peak = float(act.look.weights.max()) if act.look.weights is not None else 0.0
        sure = f"p {share:.0%}" if gate is None else f"p {share:.0%} · β {gate:.2f}"
        panels.append(_Panel(image, word, [sure, f"peak {peak:.3f}"], gate))
    top = "the peak of all panels" if drawing.is_shared(scale) else "each panel's own peak"
    return _Sheet(panels, shown.size, columns, answer, top).draw()


def _map(trace: AttentionTrace, act: drawing.Act, shown: Image.Image, *, cells: bool) -> Values:
    size = (shown.height, shown.width)
    values = drawing.act_map(trace, act, size, cells=cells)  # (H,W)
    if cells:
        return values
    frame = trace.frame_on(act.look, size).reshape(2, 3)
    return smooth(values, (float(frame[0, 0]), float(frame[1, 1])))


@dataclass(frozen=True)
class _Sheet:
    """Panels in rows of equal length under the sentence, the legend below."""

    panels: Sequence[_Panel]
    panel: tuple[int, int]  # (width, height)
    columns: int
    answer: str
    top: str

    def draw(self) -> Image.Image:
        width, height = self.panel
        rows = -(-len(self.panels) // self.columns)
        per_row = -(-len(self.panels) // rows)
        widest = max(font(_WORD, bold=True).getlength(entry.word) for entry in self.panels)
        column = max(width, 110, min(round(widest + 0.5), 180))  # under a narrow picture words and notes need room
        row = height + _GATE_HEIGHT + 8 + line_height(font(_WORD, bold=True)) + 2 * line_height(font(_SMALL)) + GUTTER
        legend = max(bar.width + AFTER_BAR + font(_SMALL).getlength(text) for bar, text in self._legend())
        # A single word is narrower than its legend.
        across = max(per_row * column + (per_row - 1) * GUTTER, round(legend + 0.5))
        sheet_width = max(2 * MARGIN + across, 480)
        said = font(_SAID, bold=True)
        lines = wrap(self.answer, said, sheet_width - 2 * MARGIN, 3)
        head = len(lines) * line_height(said) + (GUTTER if lines else 0)
        foot = len(self._legend()) * line_height(font(_SMALL)) + GUTTER // 2
        sheet = Image.new("RGB", (sheet_width, 2 * MARGIN + head + rows * row + foot), PAPER)
        write(sheet, MARGIN, MARGIN, [(line, said, INK) for line in lines])
        for number, entry in enumerate(self.panels):
            x = MARGIN + number % per_row * (column + GUTTER)
            self._panel(sheet, entry, x, MARGIN + head + number // per_row * row, column)
        self._footer(sheet)
        return sheet

    def _panel(self, sheet: Image.Image, entry: _Panel, x: int, y: int, room: int) -> None:
        pen, word, small = ImageDraw.Draw(sheet), font(_WORD, bold=True), font(_SMALL)
        width, height = self.panel
        paste_framed(sheet, entry.image, x, y)
        y += height + 3
        if entry.gate is not None:
            pen.rectangle([x - 1, y, x + width, y + _GATE_HEIGHT - 1], fill=RULE)
            filled = round(min(max(entry.gate, 0.0), 1.0) * (width + 1))
            if filled:
                pen.rectangle([x - 1, y, x - 1 + filled, y + _GATE_HEIGHT - 1], fill=GATE)
        y += _GATE_HEIGHT + 4
        lines = [(elide(entry.word, word, room), word, INK)] if entry.word else []
        write(sheet, x, y, [*lines, *((elide(note, small, room), small, FAINT_INK) for note in entry.notes)])

    def _legend(self) -> list[tuple[Image.Image, str]]:
        """A bar and its meaning, for each line of the legend."""
        lines = [(legend_bar(120, 10), f"weight: 0 … {self.top}")]
        if any(entry.gate is not None for entry in self.panels):
            lines.append(
                (Image.new("RGB", (120, _GATE_HEIGHT), GATE), "gate β: how much of what is seen goes into the word")
            )
        return lines

    def _footer(self, sheet: Image.Image) -> None:
        small, lines = font(_SMALL), self._legend()
        y = sheet.height - MARGIN - len(lines) * line_height(small) + line_height(small) // 2
        for number, (bar, text) in enumerate(lines):
            told = elide(text, small, sheet.width - 2 * MARGIN - bar.width - AFTER_BAR)
            write_legend(sheet, bar, [told], small, MARGIN, y + number * line_height(small))
