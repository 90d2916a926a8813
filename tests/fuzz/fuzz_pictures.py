"""Pictures of every format that is read, spoilt; and small files that ask for much time or memory."""

import io
import random
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fuzzing import Content, Odd, Target, spoilt_bytes
from PIL import Image

from hostile_pictures import gif_of_frames, jpeg_of_scans, ppm_of_comments, tiff_of_frames
from saccade.data.pictures.reading import prepare, read_picture

MODES = {"PNG": ("RGB", "RGBA", "L", "P", "1", "I;16", "LA"), "JPEG": ("RGB", "L", "CMYK"), "WEBP": ("RGB", "RGBA"),
         "BMP": ("RGB", "P", "1"),
         "GIF": ("P", "RGB"), "TIFF": ("RGB", "L", "F", "CMYK", "I;16"), "PPM": ("RGB", "L", "1")}  # fmt: skip


class Pictures(Target):
    """Files of pictures, read and laid into a network input."""

    name = "pictures"
    deadline = 20.0
    memory = 1500
    slow = frozenset({"JPEG of 400 scans", "TIFF of 64,000 directories", "PPM of comments", "PNG 1 × 64 million",
                      "GIF of 2,000 frames"})  # fmt: skip

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        rng = np.random.default_rng(0)
        noise = Image.fromarray(rng.integers(0, 255, (23, 31, 3), np.uint8))
        self.bases: list[bytes] = []
        for kind, modes in MODES.items():
            for mode in modes:
                picture = noise.convert("L").convert("I;16") if mode == "I;16" else noise.convert(mode)
                options = {"progressive": True} if kind == "JPEG" and mode == "L" else {}
                self.bases.append(_saved(picture, kind, **options))
        self.bases.append(_saved(noise, "GIF", save_all=True, append_images=[noise.rotate(90)] * 3))
        exif = Image.Exif()
        exif[0x0112] = 6
        self.bases.append(_saved(noise, "JPEG", exif=exif))
        self.bases.append(_saved(noise, "TIFF", compression="tiff_lzw"))

    def corpus(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {f"good {number}": data for number, data in enumerate(self.bases)}
        found |= {f"{kind}": Odd(kind) for kind in ("pipe", "zero", "folder")}
        found["sparse"] = Odd("sparse", 2**40, self.bases[0])
        for text in (b"", b"PyP\n1 1\n255\n", b"PyP", b"PyRGBA1 1 255\n", b"P0CMYK\n1 1\n255\n", b"Pf\n1 1\n-1.0\n",
                     b"P6 0 0 255\n", b"P6 99999999 99999999 255\n", b"P6 " + b"9" * 5000 + b" 1 255\n",
                     b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"):  # fmt: skip
            found[f"text {text[:30]!r}"] = text + bytes(4)
        bomb = b"a\0\0" + zlib.compress(bytes(50_000_000), 9)
        return found | {
            "PNG of a text bomb": _png(1, 1, bytes(5), [(b"zTXt", bomb)]),
            "PNG of an ICC bomb": _png(1, 1, bytes(5), [(b"iCCP", bomb)]),
            "PNG of many chunks": lambda: _png(1, 1, bytes(5), [(b"tEXt", b"a\0b")] * 50_000),
            "PNG 1 × 64 million": lambda: _png(1, 64_000_000, bytes(64_000_000 * 4)),
            "PNG too large": _png(20_000, 20_000, bytes(100)),
            "JPEG of 400 scans": lambda: jpeg_of_scans(5500, 400),
            "TIFF of 64,000 directories": lambda: tiff_of_frames(64_000),
            "TIFF in a circle": _circle,
            "PPM of comments": lambda: ppm_of_comments(1_600_000),
            "GIF of 2,000 frames": lambda: gif_of_frames(2000),
        }

    def drawn(self, rng: random.Random) -> Content:
        return spoilt_bytes(rng, rng.choice(self.bases), self.bases)

    def run(self, case: Content) -> None:
        place = self.lay({"picture.png": case})
        prepare(read_picture(place / "picture.png"), (32, 32))


def _saved(picture: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def _png(width: int, height: int, rows: bytes, more: list[tuple[bytes, bytes]] | None = None) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), *(more or ()), (b"IDAT", zlib.compress(rows, 1)), (b"IEND", b"")]
    packed = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def _circle() -> bytes:
    data = bytearray(tiff_of_frames(2))
    data[-4:] = struct.pack("<I", 8)
    return bytes(data)
