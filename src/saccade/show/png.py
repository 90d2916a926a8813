"""A picture as the bytes of a PNG file, and such bytes as an address that holds them whole."""

from __future__ import annotations

import base64
import io
from typing import Any, Literal

from PIL import Image

Effort = Literal["fast", "plain", "small"]
"""What counts: the time it takes, neither, or the bytes it takes."""

_EFFORTS: dict[Effort, dict[str, Any]] = {"fast": {"compress_level": 1}, "plain": {}, "small": {"optimize": True}}
_MAX_PIXELS = 4_000_000  # that are worth the time which small takes


def png_bytes(image: Image.Image, effort: Effort = "plain") -> bytes:
    """``image`` as a PNG file; a very large one is plain where it should be small."""
    if effort == "small" and image.width * image.height > _MAX_PIXELS:
        effort = "plain"
    buffer = io.BytesIO()
    image.save(buffer, "PNG", **_EFFORTS[effort])
    return buffer.getvalue()


def data_url(picture: bytes, kind: str = "png") -> str:
    """The bytes of a picture file of that kind as an address.

    >>> data_url(b"abc")
    'data:image/png;base64,YWJj'
    """
    return f"data:image/{kind};base64,{base64.b64encode(picture).decode('ascii')}"
