"""One figure of a reproduction: a PNG file in the folder, a block of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from saccade.atomic import write_bytes
from saccade.show.curves import Theme, figure_svg, write_figure
from saccade.show.png import png_bytes
from saccade.show.report import Picture


@dataclass(frozen=True)
class Drawing:
    """A figure with its caption and its source."""

    name: str
    caption: str
    source: str
    draw: Callable[[Theme], Figure] | Image.Image
    """A function that draws curves for a light or a dark page, or one picture for both."""

    def write(self, folder: Path) -> Path:
        """Writes ``folder/NAME.png``."""
        path = folder / f"{self.name}.png"
        if isinstance(self.draw, Image.Image):
            return write_bytes(path, png_bytes(self.draw, "small"))
        return write_figure(self.draw("light"), path)

    def block(self) -> Picture:
        """The figure as a block of a report."""
        if isinstance(self.draw, Image.Image):
            return Picture(self.draw, self.caption, alt=self.caption, source=self.source)
        light, dark = (figure_svg(self.draw(theme)) for theme in ("light", "dark"))
        return Picture(light, self.caption, alt=self.caption, source=self.source, dark=dark)
