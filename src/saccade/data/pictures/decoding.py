"""Decodes picture files with Pillow, in a bounded amount of memory.

This module imports neither torch nor numpy (numpy only for 16-bit and float grey), so that the server's process which
does nothing but decode starts in a tenth of a second; see :mod:`saccade.web.decode`.

Files are untrusted. Formats are a fixed list. The size in the header is checked before a pixel is decoded. Only the
first frame is touched. Colours are converted a few rows at a time: besides the decoded pixels there is never more than
one other copy of the picture in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import BinaryIO

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
    PpmImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from saccade.errors import DataError

_PLUGINS = {
    "PNG": PngImagePlugin, "JPEG": JpegImagePlugin, "WEBP": WebPImagePlugin, "BMP": BmpImagePlugin,
    "GIF": GifImagePlugin, "TIFF": TiffImagePlugin, "PPM": PpmImagePlugin, "AVIF": AvifImagePlugin,
}  # imported here, or Pillow would import all its plugins at the first file that is none of these  # fmt: skip
# What is read; AVIF and WebP where Pillow was built with them. JPEG includes MPO, a JPEG of two pictures.
FORMATS = tuple(name for name, plugin in _PLUGINS.items() if getattr(plugin, "SUPPORTED", True))
_SUFFIXES = {
    "PNG": (".png",), "JPEG": (".jpg", ".jpeg"), "WEBP": (".webp",), "BMP": (".bmp",), "GIF": (".gif",),
    "TIFF": (".tif", ".tiff"), "PPM": (".ppm", ".pgm", ".pbm"), "AVIF": (".avif",),
}  # fmt: skip
# Suffixes of the files that are searched in folders.
SUFFIXES = frozenset(suffix for name in FORMATS for suffix in _SUFFIXES[name])
# Pixels. Pillow keeps a pointer for each row, so a picture 1 pixel wide takes three times the memory of its pixels.
LONGEST_SIDE = 1_000_000
STRIP = 1 << 22  # Pixels that are converted at a time

_BRANDS = {b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIC", b"msf1": "HEIC", b"avif": "AVIF", b"avis": "AVIF"}


def decode(file: BinaryIO, name: str, pixels: int) -> tuple[Image.Image, tuple[str, ...]]:
    """The picture in ``file``, upright and RGB, and notes of what was done to it.

    Args:
        file: seekable; read from where it stands.
        name: what messages call it.
        pixels: the most that it may hold, by its header.

    Raises:
        DataError: anything else that Pillow raises is one too.
    """
    head = file.read(16)
    file.seek(-len(head), os.SEEK_CUR)
    if not head:
        raise DataError(f"{name}: the file is empty (0 bytes); fetch or export it again")
    try:
        if head.startswith((b"Py", b"P0")):  # Pillow reads them as PPM, but no other program writes them
            raise UnidentifiedImageError
        image: Image.Image = Image.open(file, formats=FORMATS)
        check_size(image.size, name, pixels)
        notes = ("the first of several frames",) if getattr(image, "is_animated", False) else ()
        image.load()
    except (DataError, MemoryError):
        raise
    except Image.DecompressionBombError as error:
        raise DataError(f"{name}: more pixels than the {pixels / 1e6:g} million allowed; make it smaller") from error
    except UnidentifiedImageError as error:
        brand = _BRANDS.get(head[8:12]) if head[4:8] == b"ftyp" else None
        kind = f"{brand} file, not a picture" if brand else "not a picture"
        raise DataError(f"{name}: {kind} in a format saccade reads ({', '.join(FORMATS)}); convert it") from error
    except Exception as error:  # a decoder may raise anything on damaged bytes
        raise damaged(name, error) from error
    return upright_rgb(image, name, notes)


def upright_rgb(image: Image.Image, name: str, notes: tuple[str, ...] = ()) -> tuple[Image.Image, tuple[str, ...]]:
    """``image`` turned as its EXIF data ask and converted to RGB, and ``notes`` with what was done."""
    try:
        image, turned = _upright(image)
        image, converted = _as_rgb(image, name)
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise damaged(name, error) from error
    return image, notes + turned + converted


def check_size(size: tuple[int, int], name: str, pixels: int) -> None:
    """Refuse a picture of ``size`` (width, height) with nothing in it or more than ``pixels``."""
    width, height = size
    if width < 1 or height < 1:
        raise DataError(f"{name}: a picture of {width}×{height} pixels has nothing to look at")
    if width * height > pixels or max(width, height) > LONGEST_SIDE:
        raise DataError(
            f"{name}: {width}×{height} pixels are more than the {pixels / 1e6:g} million allowed, or a side is longer "
            f"than {LONGEST_SIDE:,}; make it smaller"
        )


def damaged(name: str, error: BaseException) -> DataError:
    """What is said about a file that a decoder gave up on."""
    return DataError(f"{name}: damaged or cut short ({one_line(error)}); fetch or export it again")


def one_line(error: BaseException) -> str:
    """The message of ``error`` in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _upright(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    """``image`` turned as its EXIF tag asks; a damaged tag is ignored, as viewers do."""
    image.load()
    try:
        orientation = image.getexif().get(0x0112, 1)
        if orientation not in range(2, 9):
            return image, ()
        return ImageOps.exif_transpose(image), (f"turned upright (EXIF orientation {orientation})",)
    except MemoryError:
        raise
    except Exception:  # the tags are read by Pillow's own code, which may raise anything
        return image, ("its EXIF data is damaged; shown as stored",)


def _as_rgb(image: Image.Image, name: str) -> tuple[Image.Image, tuple[str, ...]]:
    if image.mode == "RGB" and not image.has_transparency_data:
        return image, ()
    if image.mode.startswith("I") or image.mode == "F":
        return deep_grey(image, name)
    if image.has_transparency_data:
        is_opaque = image.mode in ("RGBA", "LA") and image.getextrema()[-1] == (255, 255)
        return by_strips(image, _over_white), () if is_opaque else ("transparency laid over white",)
    note = () if image.mode in ("L", "1", "P") else (f"converted from {image.mode}",)
    return by_strips(image, lambda strip: strip.convert("RGB")), note


def _over_white(strip: Image.Image) -> Image.Image:
    backing = Image.new("RGBA", strip.size, "white")
    return Image.alpha_composite(backing, strip.convert("RGBA")).convert("RGB")


def deep_grey(image: Image.Image, name: str) -> tuple[Image.Image, tuple[str, ...]]:
    """16-bit integers (which Pillow also holds as 32-bit ones) and floats 0..1, scaled to 8 bits."""
    import numpy as np

    top = 1.0 if image.mode == "F" else 65535.0
    ranges = [(values.min(), values.max()) for values in (np.asarray(image.crop(box)) for box in strips(image.size))]
    low, high = float(np.min(ranges)), float(np.max(ranges))
    if not (low >= 0 and high <= top):  # NaN fails too
        raise DataError(f"{name}: grey values from {low:g} to {high:g}; expected 0 to {top:g}; rescale them first")

    def scaled(strip: Image.Image) -> Image.Image:
        grey = np.round(np.asarray(strip) * (255.0 / top)).astype(np.uint8)  # (h,W)
        return Image.fromarray(grey).convert("RGB")

    return by_strips(image, scaled), (f"{'float' if image.mode == 'F' else '16-bit'} grey scaled to 8 bits",)


def strips(size: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Boxes of whole rows that cover a picture of ``size`` (width, height), each of at most ``STRIP`` pixels."""
    width, height = size
    rows = max(1, STRIP // width)
    return [(0, top, width, min(top + rows, height)) for top in range(0, height, rows)]


def by_strips(image: Image.Image, change: Callable[[Image.Image], Image.Image]) -> Image.Image:
    """``change`` of ``image``, an RGB picture of the same size; ``change`` must treat each pixel by itself."""
    whole = Image.new("RGB", image.size)
    for box in strips(image.size):
        whole.paste(change(image.crop(box)), box[:2])
    return whole
