"""What drawn sheets share: text, framed panels, and the legend of the colours.

Text on pictures has a font that covers Latin, Greek and Cyrillic, lines that wrap, and lines that end in an ellipsis.

The fonts are the DejaVu files that come with matplotlib, found without importing it; where they are missing, Pillow's
own (basic Latin) takes their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from saccade.show.colours import FAINT_INK, RULE, Rgb

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont
Line = tuple[str, Font, Rgb]
"""A line of text with its font and ink."""
AFTER_BAR = 10


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
    low, high = 0, len(text)  # the longest beginning that fits, by halving
    while low < high:
        middle = (low + high + 1) // 2
        if face.getlength(text[:middle].rstrip() + "…") <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…"


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


def paste_framed(sheet: Image.Image, image: Image.Image, x: int, y: int) -> None:
    """Paste with a hairline around, so that a white picture does not melt into the paper."""
    sheet.paste(image, (x, y))
    ImageDraw.Draw(sheet).rectangle([x - 1, y - 1, x + image.width, y + image.height], outline=RULE)


def write_legend(sheet: Image.Image, bar: Image.Image, lines: Sequence[str], face: Font, x: int, middle: int) -> None:
    """A bar at ``x`` and beside it what it means; ``middle`` is the height of the first line's middle."""
    sheet.paste(bar, (x, middle - bar.height // 2))
    x += bar.width + AFTER_BAR
    for number, line in enumerate(lines):
        at = (x, middle + number * line_height(face))
        ImageDraw.Draw(sheet).text(at, line, FAINT_INK, font=face, anchor="lm")
