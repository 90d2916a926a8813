"""Draws how a multiset was read as one picture: a row for each label, from the saliency before to the saliency after.

A row has the saliency before, the covert mask, the priority map, the glimpses in order on the picture with the label
that was said, and the saliency after, darkened where attention has been (inhibition of return). The row in which the
model said that nothing more is there comes last. Maps of one kind share one scale, so that rows can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from saccade import geometry
from saccade.show import acts as drawing
from saccade.show.colours import (
    FAINT_INK,
    INK,
    PAPER,
    Values,
    by_shared_peak,
    legend_bar,
)
from saccade.show.overlay import (
    OPACITY,
    Mark,
    PictureLike,
    Scanpath,
    as_marks,
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
from saccade.trace import AttentionTrace, Look

MARGIN, GUTTER = 28, 14
NOTHING_MORE = "nothing more"
COLUMNS = ("saliency before", "covert attention", "priority", "glimpses", "saliency after")
_NAMES = ("saliency", "covert", "priority", "glimpse", "inhibited")
_TITLE, _SMALL, _SAID = 15, 13, 34


@dataclass(frozen=True)
class _Row:
    """One label: its panels from left to right, and what was said."""

    panels: Sequence[Image.Image]
    word: str
    note: str


def has_glimpses(trace: AttentionTrace) -> bool:
    """Whether the trace is one of a model that reads a picture label by label, as :func:`glimpse_strip` draws it."""
    return set(_NAMES) <= {look.name for look in trace.looks}


def glimpse_strip(
    picture: PictureLike,
    trace: AttentionTrace,
    *,
    labels: Sequence[tuple[str, float]] = (),
    answer: str = "",
    outline: Mark | Sequence[Mark] = (),
    cells: bool = False,
    opacity: float = OPACITY,
    panel: int = 200,
) -> Image.Image:
    """The steps of one example, one below the other.

    Args:
        picture: the original picture, upright.
        trace: of one example (``trace[i]``), with the looks that :func:`has_glimpses` looks for.
        labels: what was said at each step and how sure that was; a step beyond them said that nothing more is there.
        answer: all of it in words.
        outline: evidence, drawn on the picture with the glimpses, in pixels of ``picture``.
        cells: paint the cells flat instead of smooth.
        opacity: how much of the picture the peak of a map hides.
        panel: longest side of a panel in pixels.
    """
    original = as_picture(picture)
    shown = fit_panel(original, panel)
    trace = drawing.one_example(trace, (original.height, original.width))
    looks = {name: trace.look(name) for name in _NAMES}
    steps = _shown_steps(looks["covert"])
    saliency = _maps(trace, [looks["saliency"], looks["inhibited"]], steps, shown, cells=cells)
    befores, afters = saliency[: len(steps)], saliency[len(steps) :]
    coverts, priorities = (_maps(trace, [looks[name]], steps, shown, cells=cells) for name in ("covert", "priority"))
    evidence = draw_marks(shown, as_marks(outline), original.size)
    rows = []
    for place, step in enumerate(steps):
        maps = (befores[place], coverts[place], priorities[place], afters[place])
        before, covert, priority, after = (paint(shown, each, opacity) for each in maps)
        path = _scanpath(trace, looks["glimpse"], step, looks["covert"].steps, (shown.height, shown.width))
        glimpsed = draw_marks(evidence, [path], shown.size)
        word, note = (labels[place][0], f"{labels[place][1]:.0%} sure") if place < len(labels) else (NOTHING_MORE, "")
        rows.append(_Row([before, covert, priority, glimpsed, after], word, note))
    return _Sheet(rows, shown.size, answer).draw()


def _shown_steps(look: Look) -> list[int]:
    """The steps in which a label was said, and the one after them, in which nothing more was found."""
    if look.active is None:
        return list(range(look.steps))
    active = look.active.reshape(-1).bool().tolist()
    labelled = [step for step in range(look.steps) if active[step]]
    return labelled if all(active) else [*labelled, active.index(False)]


def _maps(
    trace: AttentionTrace, looks: Sequence[Look], steps: Sequence[int], shown: Image.Image, *, cells: bool
) -> list[Values]:
    """The maps of all looks and steps over the picture, look by look, by the peak that they have in common."""
    size = (shown.height, shown.width)
    acts = [drawing.Act(look.step(step), step) for look in looks for step in steps]
    return [each.values for each in by_shared_peak([drawing.act_map(trace, act, size, cells=cells) for act in acts])]


def _scanpath(trace: AttentionTrace, look: Look, step: int, steps: int, size: geometry.Size) -> Scanpath:
    """Where the glimpses of one step fell on the picture shown at ``size``; they follow each other step by step."""
    points = trace.chosen_on(look, size).reshape(steps, -1, 2)[step]  # (k,2)
    return Scanpath([(float(x), float(y)) for x, y in points])


@dataclass(frozen=True)
class _Sheet:
    """Rows under their headings, the label at the right end, the whole answer above, the legend below."""

    rows: Sequence[_Row]
    panel: tuple[int, int]  # (width, height)
    answer: str

    def draw(self) -> Image.Image:
        width, height = self.panel
        title, small, said = font(_TITLE, bold=True), font(_SMALL), font(_SAID, bold=True)
        column = max(width, 132)  # headings need room above a narrow picture
        spoken = [said.getlength(row.word[:12]) for row in self.rows if row.note]
        words = round(max([font(_TITLE).getlength(NOTHING_MORE), *spoken]))
        sheet_width = 2 * MARGIN + len(COLUMNS) * (column + GUTTER) + words
        head = line_height(title) + line_height(said) + GUTTER if self.answer.strip() else 0
        top = MARGIN + head + line_height(title) + 6
        foot = GUTTER + line_height(small)
        sheet = Image.new("RGB", (sheet_width, top + len(self.rows) * (height + GUTTER) + foot + MARGIN), PAPER)
        pen = ImageDraw.Draw(sheet)
        if head:
            text = elide(self.answer, said, sheet_width - 2 * MARGIN)
            write(sheet, MARGIN, MARGIN, [("read as", title, FAINT_INK), (text, said, INK)])
        for number, heading in enumerate((*COLUMNS, "said")):
            pen.text((MARGIN + number * (column + GUTTER), MARGIN + head), heading, FAINT_INK, font=title)
        for number, row in enumerate(self.rows):
            self._row(sheet, row, top + number * (height + GUTTER), column, words)
        self._footer(sheet)
        return sheet

    def _row(self, sheet: Image.Image, row: _Row, y: int, column: int, words: int) -> None:
        for place, image in enumerate(row.panels):
            paste_framed(sheet, image, MARGIN + place * (column + GUTTER), y)
        x, middle = MARGIN + len(row.panels) * (column + GUTTER), y + self.panel[1] // 2
        is_label = bool(row.note)
        face, ink = (font(_SAID, bold=True), INK) if is_label else (font(_TITLE), FAINT_INK)
        lines = wrap(row.word, face, words, 2)
        end = write(sheet, x, middle - len(lines) * line_height(face) // 2, [(line, face, ink) for line in lines])
        if is_label:
            write(sheet, x, end + 4, [(row.note, font(_SMALL), FAINT_INK)])

    def _footer(self, sheet: Image.Image) -> None:
        face, bar = font(_SMALL), legend_bar(120, 10)
        room = sheet.width - 2 * MARGIN - bar.width - AFTER_BAR
        text = elide("weight: 0 … the peak of all maps of the same kind", face, room)
        write_legend(sheet, bar, [text], face, MARGIN, sheet.height - MARGIN - line_height(face) // 2)
