"""Blocks of a report that hold pictures, all of them inside the file as data: addresses.

A page of many pictures would be large: those of many colours, such as photographs under maps, are stored as WebP, a
quarter of a PNG and no different to the eye; drawings of few colours stay exact.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, features

from saccade.errors import DataError
from saccade.show.markup import Notes, escaped, inline
from saccade.show.png import data_url, png_bytes
from saccade.show.report_tables import source_line

Source = Image.Image | bytes | str

_FEW_COLOURS = 256
_QUALITY = 90  # of WebP: 40 dB and more on filmstrips
_WEBP_SIDE = 16_383  # its pixels at most, each way


@dataclass(frozen=True)
class Picture:
    """A picture with a caption and, for those who cannot see it, a description."""

    image: Source
    """A PIL image, the bytes of a PNG or JPEG file, or the text of an SVG."""
    caption: str = ""
    alt: str = ""
    source: str = ""
    dark: Source | None = None
    """The same picture for a dark page; curves come in both."""

    def html(self, notes: Notes) -> str:
        """A figure."""
        caption = f"<figcaption>{inline(self.caption)}</figcaption>" if self.caption else ""
        inside = f'<div class="strip" tabindex="0">{self.tag()}</div>' if _is_strip(self.image) else self.tag()
        return f'<figure class="picture">{inside}{caption}{source_line(self.source)}</figure>'

    def tag(self) -> str:
        """The picture alone."""
        described = escaped(self.alt or self.caption)
        plate = "" if self.dark is not None else ' class="plate"'
        image = f'<img{plate} src="{data_uri(self.image)}" alt="{described}"{_size(self.image)}>'
        if self.dark is None:
            return image
        dark = f'<source media="(prefers-color-scheme: dark)" srcset="{data_uri(self.dark)}">'
        return f"<picture>{dark}{image}</picture>"


@dataclass(frozen=True)
class Gallery:
    """Pictures side by side, as many in a row as fit."""

    pictures: Sequence[Picture]
    caption: str = ""
    source: str = ""
    wide: bool = False
    """Two to a row instead of four: for pictures with small print, such as filmstrips."""

    def html(self, notes: Notes) -> str:
        """A list of figures under one caption."""
        items = "".join(
            f"<li>{picture.tag()}<p>{inline(picture.caption)}</p>{source_line(picture.source)}</li>"
            for picture in self.pictures
        )
        caption = f"<figcaption>{inline(self.caption)}</figcaption>" if self.caption else ""
        kind = "gallery wide" if self.wide else "gallery"
        return f'<figure class="{kind}">{caption}<ul>{items}</ul>{source_line(self.source)}</figure>'


def data_uri(image: Source) -> str:
    """``image`` as a data: address; nothing is fetched when the page is opened."""
    if isinstance(image, Image.Image):
        kind, data = ("webp", _webp_bytes(image)) if _has_many_colours(image) else ("png", png_bytes(image, "small"))
    elif isinstance(image, str):
        if "<svg" not in image[:2000]:
            raise DataError("picture: text must be an SVG document; pass a file's bytes or a PIL image otherwise")
        kind, data = "svg+xml", image.encode("utf-8", "replace")
    elif image.startswith(b"\x89PNG\r\n\x1a\n"):
        kind, data = "png", image
    elif image.startswith(b"\xff\xd8\xff"):
        kind, data = "jpeg", image
    else:
        raise DataError("picture: the bytes are neither a PNG nor a JPEG file")
    return data_url(data, kind)


def _has_many_colours(image: Image.Image) -> bool:
    """Whether a PNG would be large for what can be seen of it, and a WebP can be had instead."""
    return max(image.size) <= _WEBP_SIDE and image.getcolors(_FEW_COLOURS) is None and bool(features.check("webp"))


def _webp_bytes(image: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=_QUALITY)
    return buffer.getvalue()


def _is_strip(image: Source) -> bool:
    """Whether the picture is so wide that a narrow screen should scroll it instead of shrinking it."""
    return isinstance(image, Image.Image) and image.width > max(860, 2 * image.height)


def _size(image: Source) -> str:
    """Width and height, so that the page does not jump while it loads."""
    return f' width="{image.width}" height="{image.height}"' if isinstance(image, Image.Image) else ""
