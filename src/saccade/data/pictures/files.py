"""Picture files: those that paths mean, decoded by Pillow in a bounded amount of memory, and compared by their bytes.

This module imports no torch (numpy only for 16-bit and float grey), so that the server's decoding process starts in a
tenth of a second (:mod:`saccade.web.decode`).

Files are untrusted. Formats are a fixed list. The size in the header is checked before a pixel is decoded. Only the
first frame is touched. Colours are converted a few rows at a time, to save memory. Caches and runs tell data sets apart
by the content of pictures, not by names, sizes and times.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
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
from saccade.files import open_regular, write_bytes
from saccade.progress import OnProgress, no_progress


def find_files(paths: Iterable[str | os.PathLike[str]], suffixes: Collection[str], thing: str) -> list[Path]:
    """The files meant by ``paths``: files as they are, folders through and through, globs spelt out.

    In folders, files with one of the ``suffixes`` count and hidden ones do not. ``thing`` is what messages call one.
    """
    files: dict[Path, None] = {}
    texts = [os.fspath(path) for path in paths]
    for text in texts:
        path = local_path(text, thing)
        if path.is_dir():
            members = sorted(file for file in _shown_files(path) if file.suffix.lower() in suffixes)
        elif path.exists():
            members = [path]
        elif glob.has_magic(text):
            matches = (Path(match) for match in sorted(glob.glob(text, recursive=True)))
            members = [file for file in matches if file.is_file()]
        else:
            raise DataError(f"{path}: no such file or folder; check the path")
        files.update(dict.fromkeys(members))
    if not files:
        where = ", ".join(texts) or "an empty list of paths"
        raise DataError(f"no {plural(thing)} in {where}; looked for {' '.join(sorted(suffixes))}")
    return list(files)


def skipped_files(paths: Iterable[str | os.PathLike[str]], suffixes: Collection[str]) -> Counter[str]:
    """How many files in the folders of ``paths`` :func:`find_files` passes over, by kind; hidden ones do not count.

    A kind is the ending of the names in capitals, such as HEIC, or "no ending".
    """
    kinds: Counter[str] = Counter()
    for folder in (Path(path) for path in paths if str(path) and Path(path).is_dir()):
        others = (file for file in _shown_files(folder) if file.suffix.lower() not in suffixes)
        kinds.update(file.suffix.lstrip(".").upper() or "no ending" for file in others)
    return kinds


def local_path(text: str, thing: str) -> Path:
    """``text`` as a path on this machine; an empty one is an error."""
    if not text:
        raise DataError(f"an empty path came where a {thing} was expected; name a file, a folder or a glob")
    if text.startswith(("http://", "https://")):
        raise DataError(f"{text}: an address, not a file; saccade does not download {plural(thing)}; download it first")
    return Path(text)


def plural(thing: str) -> str:
    """The plural of what one item is called.

    >>> plural("picture"), plural("story")
    ('pictures', 'stories')
    """
    return f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"


def _shown_files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        if not any(part.startswith(".") for part in file.relative_to(folder).parts) and file.is_file():
            yield file


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
    """The picture in the seekable ``file``, upright and RGB, and notes of what was done to it.

    Anything that Pillow raises is a DataError, and so are more than ``pixels``.
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
        image.load()
        try:
            orientation = image.getexif().get(0x0112, 1)
            if orientation in range(2, 9):
                image = ImageOps.exif_transpose(image)
                notes += (f"turned upright (EXIF orientation {orientation})",)
        except MemoryError:
            raise
        except Exception:  # a damaged tag is ignored, as viewers do; Pillow's own code reads it and may raise anything
            notes += ("its EXIF data is damaged; shown as stored",)
        image, converted = _as_rgb(image, name)
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise damaged(name, error) from error
    return image, notes + converted


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
    """The message about a file that a decoder gave up on."""
    why = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"{name}: damaged or cut short ({why}); fetch or export it again")


def _as_rgb(image: Image.Image, name: str) -> tuple[Image.Image, tuple[str, ...]]:
    if image.mode == "RGB" and not image.has_transparency_data:
        return image, ()
    if image.mode.startswith("I") or image.mode == "F":
        return deep_grey(image, name)
    if image.has_transparency_data:
        is_opaque = image.mode in ("RGBA", "LA") and image.getextrema()[-1] == (255, 255)

        def over_white(strip: Image.Image) -> Image.Image:
            backing = Image.new("RGBA", strip.size, "white")
            return Image.alpha_composite(backing, strip.convert("RGBA")).convert("RGB")

        return by_strips(image, over_white), () if is_opaque else ("transparency laid over white",)
    note = () if image.mode in ("L", "1", "P") else (f"converted from {image.mode}",)
    return by_strips(image, lambda strip: strip.convert("RGB")), note


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


def content_digests(
    paths: Sequence[Path],
    *,
    unreadable: str | None = None,
    on_progress: OnProgress = no_progress,
) -> list[str]:
    """A digest of the bytes of each file, 32 hexadecimal digits, in the order of ``paths``.

    ``unreadable`` stands in for a file that cannot be read; None: that is an error.
    """
    digests: list[str] = []

    def digest(path: Path) -> str:
        try:
            with open_regular(path) as file:
                return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        except OSError:
            if unreadable is None:
                raise
            return unreadable

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for text in pool.map(digest, paths):
            digests.append(text)
            on_progress("contents", len(digests), len(paths))
    return digests


def files_digest(paths: Iterable[Path], crops: Sequence[Sequence[float] | None] = ()) -> str:
    """One digest of the contents of files and the parts cut out, in their order, whatever the files are called."""
    seen: list[object] = [*content_digests(list(paths))]
    seen += crops if any(crops) else ()  # so that whole pictures have the digest of their files
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()[:32]


def copy_groups(paths: Sequence[Path]) -> list[int]:
    """For each picture, the number of the first one with the same bytes, or its own."""
    first: dict[str, int] = {}
    return [first.setdefault(digest, number) for number, digest in enumerate(content_digests(paths))]


def torn_copies(kind_of: Mapping[Path, str]) -> list[list[Path]]:
    """Groups of files with the same bytes that are not of one kind, such as one split or class.

    Only files of equal length are read. Files that cannot be read are in no group.
    """
    by_length: dict[int, list[Path]] = {}
    for path in kind_of:
        with suppress(OSError):
            by_length.setdefault(path.stat().st_size, []).append(path)
    suspects = [path for paths in by_length.values() if len({kind_of[path] for path in paths}) > 1 for path in paths]
    groups: dict[str, list[Path]] = {}
    for path, digest in zip(suspects, content_digests(suspects, unreadable="")):
        groups.setdefault(digest, []).append(path)
    groups.pop("", None)
    return [group for group in groups.values() if len({kind_of[path] for path in group}) > 1]


def write_if_changed(path: Path, content: bytes) -> Path:
    """A file of the cache with this content: written if it is not there, or was replaced by something else."""
    if not (path.is_file() and path.stat().st_size == len(content) and path.read_bytes() == content):
        write_bytes(path, content)
    return path
