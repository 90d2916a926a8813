"""Sheets of pictures: panels in rows with text below them, and the legend of the colours.

Text wraps, and long lines end in an ellipsis. The fonts are the DejaVu files that come with matplotlib, found without
importing it; where they are missing, Pillow's own (basic Latin) takes their place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from saccade.show.colours import FAINT_INK, PAPER, RULE, SERIES, Rgb

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Line = tuple[str, Font, Rgb]  # A line of text with its font and ink.
AFTER_BAR = 10
MARGIN, SEAM = 28, 6  # Pixels around a sheet, and between two pictures of a panel.
SHARE = SERIES[1]  # Colour of a bar that shows a share.
BAR_HEIGHT = 5


@lru_cache(maxsize=16)
def font(size: int, *, bold: bool = False) -> Font:
    """The font at ``size`` pixels."""
    spec = find_spec("matplotlib")
    if spec is not None and spec.origin:
        name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
        file = Path(spec.origin).parent / "mpl-data" / "fonts" / "ttf" / name
        if file.is_file():
            return ImageFont.truetype(str(file), size)
    return ImageFont.load_default(size)


def line_height(face: Font) -> int:
    """Distance from one line to the next, the same for every text in a font."""
    top, bottom = face.getbbox("Áy|")[1], face.getbbox("Áy|")[3]
    return round((bottom - min(top, 0)) * 1.18)


def elide(text: str, face: Font, width: int) -> str:
    """``text`` on one line, cut with an ellipsis where it is wider than ``width`` pixels."""
    text = " ".join(text.split())
    if face.getlength(text) <= width:
        return text
    # the longest beginning that fits, by halving
    fitting = bisect_left(range(1, len(text) + 1), True, key=lambda n: face.getlength(text[:n].rstrip() + "…") > width)
    return text[:fitting].rstrip() + "…"


def wrap(text: str, face: Font, width: int, most_lines: int = 3) -> list[str]:
    """``text`` in at most ``most_lines`` lines of ``width`` pixels; what does not fit ends in an ellipsis."""
    lines: list[str] = []
    words = text.split()
    while words and len(lines) < most_lines:
        if len(lines) == most_lines - 1:
            lines.append(elide(" ".join(words), face, width))
            break
        line = words.pop(0)
        while words and face.getlength(f"{line} {words[0]}") <= width:
            line = f"{line} {words.pop(0)}"
        lines.append(elide(line, face, width))
    return lines


def height_of(lines: Sequence[Line]) -> int:
    """Pixels that ``lines`` take."""
    return sum(line_height(face) for _, face, _ in lines)


def write(sheet: Image.Image, x: int, y: int, lines: Sequence[Line]) -> int:
    """Write ``lines`` below each other from (x, y) on; returns where the next one would stand."""
    pen = ImageDraw.Draw(sheet)
    for text, face, ink in lines:
        pen.text((x, y), text, ink, font=face)
        y += line_height(face)
    return y


@dataclass(frozen=True)
class Layout:
    """Distances on a sheet in pixels."""

    gutter: int  # Between columns.
    between: int  # Between rows.
    below: int  # Between the last picture of a panel and its first line.
    above_legend: int
    small: int  # Size of small print.
    legend_lower: int = 0  # How far the legend is shifted down.


@dataclass(frozen=True)
class Panel:
    """Pictures, one below the other, each in the middle of its place, and what stands under them."""

    images: Sequence[Image.Image]
    """None for a panel of text, which stands at half the height of its neighbours' pictures."""
    lines: Sequence[Line] = ()
    cards: Sequence[Sequence[Line]] = ()  # Further lines, each group a little apart.
    share: float | None = None  # 0 to 1: the length of a bar under the pictures; None: no bar.

    def height(self, picture: int, layout: Layout) -> int:
        """Pixels that it takes where a picture takes ``picture``."""
        if not self.images:
            return 0
        pictures = len(self.images) * (picture + SEAM) - SEAM
        lines = layout.below + height_of(self.lines) if self.lines else 0
        return (
            pictures + lines + (SEAM if self.cards else 0) + sum(layout.small + height_of(card) for card in self.cards)
        )

    def draw(self, sheet: Image.Image, x: int, y: int, size: tuple[int, int], layout: Layout) -> None:
        """Draw it at (x, y), its pictures of ``size`` (width, height)."""
        width, height = size
        if not self.images:
            y += height // 2 - height_of(self.lines) // 2
            for lines in (self.lines, *self.cards):
                y = write(sheet, x, y, lines) + 4
            return
        pen = ImageDraw.Draw(sheet)
        for image in self.images:
            left, top = x + (width - image.width) // 2, y + (height - image.height) // 2
            sheet.paste(image, (left, top))
            # a hairline around, so that a white picture does not melt into the paper
            pen.rectangle([left - 1, top - 1, left + image.width, top + image.height], outline=RULE)
            y += height + SEAM
        y -= SEAM
        if self.share is not None:
            top = y + 3
            pen.rectangle([x - 1, top, x + width, top + BAR_HEIGHT - 1], fill=RULE)
            filled = round(min(max(self.share, 0.0), 1.0) * (width + 1))
            if filled:
                pen.rectangle([x - 1, top, x - 1 + filled, top + BAR_HEIGHT - 1], fill=SHARE)
        y = write(sheet, x, y + layout.below, self.lines) + SEAM
        for card in self.cards:
            y = write(sheet, x, y + layout.small, card)


def draw_sheet(
    panels: Sequence[Panel],
    size: tuple[int, int],
    columns: int,
    layout: Layout,
    *,
    room: int,
    last_room: int | None = None,
    head: Sequence[Line] = (),
    headings: Sequence[Line] = (),
    legend: Sequence[tuple[Image.Image, str]] = (),
    least_width: int = 320,
) -> Image.Image:
    """The panels in rows: pictures of ``size`` (width, height), columns as wide as ``room``, the last ``last_room``."""
    step = room + layout.gutter
    last = room if last_room is None else last_room
    sheet_width = max(2 * MARGIN + (columns - 1) * step + last, least_width)
    small, rows = font(layout.small), -(-len(panels) // columns)
    meanings = [(bar, wrap(text, small, sheet_width - 2 * MARGIN - bar.width - AFTER_BAR, 3)) for bar, text in legend]
    legend_height = sum(len(lines) for _, lines in meanings) * line_height(small)
    foot = layout.above_legend + legend_height if meanings else 0
    intro = [(line, face, ink) for text, face, ink in head for line in wrap(text, face, sheet_width - 2 * MARGIN)]
    top = MARGIN + (height_of(intro) + layout.gutter if intro else 0)
    first = top + (height_of(headings[:1]) + SEAM if headings else 0)
    row = max(panel.height(size[1], layout) for panel in panels)
    down = row + layout.between
    sheet = Image.new("RGB", (sheet_width, first + rows * down - layout.between + foot + MARGIN), PAPER)
    write(sheet, MARGIN, MARGIN, intro)
    for column, heading in enumerate(headings):
        write(sheet, MARGIN + column * step, top, [heading])
    for number, panel in enumerate(panels):
        panel.draw(sheet, MARGIN + number % columns * step, first + number // columns * down, size, layout)
    middle = sheet.height - MARGIN - legend_height + line_height(small) // 2 + layout.legend_lower
    pen = ImageDraw.Draw(sheet)
    for bar, lines in meanings:
        sheet.paste(bar, (MARGIN, middle - bar.height // 2))
        for line in lines:
            pen.text((MARGIN + bar.width + AFTER_BAR, middle), line, FAINT_INK, font=small, anchor="lm")
            middle += line_height(small)
    return sheet
