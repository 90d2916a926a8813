"""Encodes small flat pictures as PNG in a third of the time of a general encoder: rows without a filter, zlib level 3.

Digits on black are long runs of equal bytes, which filters would break up. Every PNG reader reads the files.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from saccade.data.causal.truth import Pixels

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_GREY, _RGB = 0, 2
_LEVEL = 3


def png(pixels: Pixels) -> bytes:
    """(H,W) grey or (H,W,3) RGB, uint8."""
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + pixels[0].size), np.uint8)  # each row begins with its filter, 0: none
    rows[:, 1:] = pixels.reshape(height, -1)
    kind = _GREY if pixels.ndim == 2 else _RGB
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return (
        _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows.data, _LEVEL)) + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))
