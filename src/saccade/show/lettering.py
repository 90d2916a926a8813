"""Text on pictures: a font that covers Latin, Greek and Cyrillic, lines that wrap, and lines that end in an ellipsis.

The fonts are the DejaVu files that come with matplotlib, found without importing it; where they are missing, Pillow's
own (basic Latin) takes their place.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from PIL import ImageFont

Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


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
