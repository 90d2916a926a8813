"""Pictures in: the only place that opens image files.

Whatever comes in (a path, bytes, a PIL image, an array, a tensor) leaves as an upright 8-bit RGB :class:`Picture`, or
as a DataError that names the file, what is wrong with it and what to do. Files are untrusted: only plain raster
formats are tried, and the size in the header is checked before a single pixel is decoded.

Choices, said once: EXIF rotation is applied; transparency is laid over white, as viewers show it; 16-bit grey is scaled
to 8 bits, not clipped; of an animation the first frame is taken. ``Picture.notes`` says which of these happened.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageOps, UnidentifiedImageError
from torch import Tensor

from saccade.data.files import find_files, local_path
from saccade.errors import DataError, ShapeError
from saccade.geometry import MOST_PIXELS, Size, fit_inside

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"})
PIXEL_LIMIT = MOST_PIXELS
"""More pixels than this in one picture are refused, and a streamed batch ends early rather than hold more."""
SIDE_LIMIT = 4096
"""No network input is higher or wider: a slip in a size must not end in want of memory."""

_DECODER_ERRORS = (
    OSError, SyntaxError, ValueError, TypeError, LookupError, AttributeError, OverflowError, EOFError, MemoryError,
    struct.error, zlib.error,
)  # what Pillow's decoders raise on damaged bytes  # fmt: skip


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture as a viewer shows it."""

    image: Image.Image
    """Upright, RGB, 8 bits a channel."""
    name: str
    """Its path, or what kind of thing it was."""
    notes: tuple[str, ...] = ()
    """What was done to it on the way in."""

    @property
    def size(self) -> Size:
        """(height, width)."""
        return self.image.height, self.image.width

    @property
    def stem(self) -> str:
        """The name without folders and suffix: what files about this picture are called."""
        return Path(self.name).stem or "picture"


Source = str | os.PathLike[str] | bytes | BinaryIO | Image.Image | np.ndarray | Tensor | Picture


def read_picture(source: Source, *, name: str | None = None, pixels: int = PIXEL_LIMIT) -> Picture:
    """The picture in ``source``.

    Args:
        source: a path; the bytes or the open binary file of an image; a PIL image; an array (H,W), (H,W,3) or (H,W,4)
            of uint8, or of floats 0..1; a tensor (1,H,W) or (3,H,W) of floats 0..1.
        name: what to call it; by default its path.
        pixels: the most that a file may hold, by its header; no more than ``PIXEL_LIMIT``.
    """
    if isinstance(source, Picture):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _from_path(local_path(os.fspath(source), "picture"), name, pixels)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _decode(io.BytesIO(source), name or "picture", pixels)
    if isinstance(source, Image.Image):
        return _from_pil(source, name or str(getattr(source, "filename", "") or "picture"))
    if isinstance(source, Tensor):
        return _from_array(_channels_last(source), name or "tensor")
    if isinstance(source, np.ndarray):
        return _from_array(source, name or "array")
    if hasattr(source, "read"):
        return _decode(source, name or str(getattr(source, "name", "picture")), pixels)
    raise DataError(f"a picture is a path, bytes, a PIL image, an array or a tensor; found {type(source).__name__}")


def prepare(picture: Picture, size: Size, fill: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """Lay ``picture`` into a network input of ``size`` without distortion, the border filled with ``fill``.

    Returns:
        The input (3,h,w) in 0..1; the canvas (2,3), network input → picture; the picture's size (2,). A picture that
        already has the size passes exactly.
    """
    pixels = torch.from_numpy(np.array(picture.image)).permute(2, 0, 1).float() / 255  # (3,H,W)
    fit = fit_inside(picture.size, size)
    if (fit.height, fit.width) != picture.size:
        resized = F.interpolate(
            pixels[None], (fit.height, fit.width), mode="bilinear", align_corners=False, antialias=True
        )
        pixels = resized[0].clamp(0, 1)  # (3,height,width)
    right, bottom = size[1] - fit.width - fit.left, size[0] - fit.height - fit.top
    framed = F.pad(pixels, (fit.left, right, fit.top, bottom), value=fill)  # (3,h,w)
    return framed, fit.canvas, torch.tensor(picture.size)


def as_float(images: Tensor) -> Tensor:
    """uint8 to 0..1; on a CPU channels last in memory, in which its convolutions run two to four times as fast."""
    layout = torch.channels_last if images.device.type == "cpu" else torch.preserve_format
    return images.to(torch.float32, memory_format=layout).div_(255.0)


# ---------------------------------------------------------------- many pictures


def find_pictures(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The picture files meant by ``paths``; see :func:`saccade.data.files.find_files`."""
    return find_files(paths, SUFFIXES, "picture")


def stream_pictures(
    sources: Iterable[Source], batch: int, on_bad: Callable[[Source, DataError], None] | None = None
) -> Iterator[list[Picture]]:
    """Read ``sources`` into lists of at most ``batch`` pictures (fewer when they are very large).

    A picture that cannot be read goes to ``on_bad`` and the rest goes on; without ``on_bad`` its error is raised.
    """
    if batch < 1:
        raise DataError(f"a batch holds 1 picture or more, found {batch}")
    gathered: list[Picture] = []
    pixels = 0
    for source in sources:
        try:
            picture = read_picture(source)
        except DataError as error:
            if on_bad is None:
                raise
            on_bad(source, error)
            continue
        gathered.append(picture)
        pixels += picture.size[0] * picture.size[1]
        if len(gathered) == batch or pixels >= PIXEL_LIMIT:
            yield gathered
            gathered, pixels = [], 0
    if gathered:
        yield gathered


# ---------------------------------------------------------------- files


def _from_path(path: Path, name: str | None, pixels: int) -> Picture:
    try:
        mode = path.stat().st_mode  # before it is opened: to open a pipe is to wait for whoever writes into it
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise DataError(f"{path}: not an ordinary file; save the picture as a file first")
        with path.open("rb") as file:
            return _decode(file, name or str(path), pixels)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path") from error
    except IsADirectoryError as error:
        raise DataError(f"{path}: a folder, not a picture; name a file in it") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be opened ({error.strerror or error})") from error
    except ValueError as error:  # a NUL in the name
        raise DataError(f"{str(path)!r}: not the name of a file ({error}); check the path") from error


def _decode(file: BinaryIO, name: str, pixels: int) -> Picture:
    """Open, check the header's size, decode; ``file`` must be seekable."""
    try:
        start = file.tell()
        first = file.read(1)
        file.seek(start)
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(
            f"{name}: cannot be read from its start ({_one_line(error)}); save it as a file first"
        ) from error
    if not isinstance(first, bytes):
        raise DataError(f"{name}: opened as text; open it as a binary file, with mode 'rb'")
    if not first:
        raise DataError(f"{name}: the file is empty (0 bytes); fetch or export it again")
    try:
        image = Image.open(file, formats=FORMATS)
        _check_size(image.size, name, min(pixels, PIXEL_LIMIT))
        frames = int(getattr(image, "n_frames", 1))
        image.load()
    except Image.DecompressionBombError as error:
        limit = f"{min(pixels, PIXEL_LIMIT) / 1_000_000:g} million"
        raise DataError(f"{name}: far more pixels than the {limit} allowed; make it smaller") from error
    except UnidentifiedImageError as error:
        raise DataError(
            f"{name}: not a picture in a format saccade reads ({', '.join(FORMATS)}); convert it"
        ) from error
    except _DECODER_ERRORS as error:
        raise DataError(f"{name}: damaged or cut short ({_one_line(error)}); fetch or export it again") from error
    notes = (f"first of {frames} frames",) if frames > 1 else ()
    return _from_pil(image, name, notes)


def _check_size(size: tuple[int, int], name: str, pixels: int = PIXEL_LIMIT) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise DataError(f"{name}: a picture of {width}×{height} pixels has nothing to look at")
    if width * height > pixels:
        limit = f"{pixels / 1_000_000:g} million"
        raise DataError(f"{name}: {width}×{height} pixels are more than the {limit} allowed; make it smaller")


# ---------------------------------------------------------------- colours


def _from_pil(image: Image.Image, name: str, notes: tuple[str, ...] = ()) -> Picture:
    _check_size(image.size, name)
    try:
        image, turned = _upright(image)
        image, converted = _as_rgb(image, name)
    except _DECODER_ERRORS as error:
        raise DataError(f"{name}: damaged or cut short ({_one_line(error)}); fetch or export it again") from error
    return Picture(image, name, notes + turned + converted)


def _upright(image: Image.Image) -> tuple[Image.Image, tuple[str, ...]]:
    """``image`` turned as its EXIF tag asks; a damaged tag is ignored, as viewers do."""
    image.load()
    try:
        orientation = image.getexif().get(0x0112, 1)
        if orientation not in range(2, 9):
            return image, ()
        return ImageOps.exif_transpose(image), (f"turned upright (EXIF orientation {orientation})",)
    except _DECODER_ERRORS:
        return image, ("its EXIF data is damaged; shown as stored",)


def _as_rgb(image: Image.Image, name: str) -> tuple[Image.Image, tuple[str, ...]]:
    if image.mode == "RGB" and not image.has_transparency_data:
        return image.copy(), ()  # a plain Image: its own pixels, no link to an open file
    if image.mode.startswith("I") or image.mode == "F":
        return _from_deep_grey(np.asarray(image), image.mode, name)
    if image.has_transparency_data:
        backing = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(backing, image.convert("RGBA")).convert("RGB"), ("transparency laid over white",)
    note = () if image.mode in ("L", "1", "P") else (f"converted from {image.mode}",)
    return image.convert("RGB"), note


def _from_deep_grey(values: np.ndarray, mode: str, name: str) -> tuple[Image.Image, tuple[str, ...]]:
    """16-bit integers (which Pillow also holds as 32-bit ones) and floats 0..1, scaled to 8 bits."""
    top = 1.0 if mode == "F" else 65535.0
    low, high = float(values.min()), float(values.max())
    if not (low >= 0 and high <= top):  # NaN fails too
        raise DataError(f"{name}: grey values from {low:g} to {high:g}; expected 0 to {top:g}; rescale them first")
    grey = np.round(values * (255.0 / top)).astype(np.uint8)  # (H,W)
    return Image.fromarray(grey).convert("RGB"), (f"{'float' if mode == 'F' else '16-bit'} grey scaled to 8 bits",)


# ---------------------------------------------------------------- arrays


def _channels_last(tensor: Tensor) -> np.ndarray:
    if tensor.dim() != 3 or tensor.shape[0] not in (1, 3):
        raise ShapeError("a picture tensor", "(3,H,W) or (1,H,W)", tensor.shape)
    values = tensor.detach().cpu()
    if values.dtype in (torch.bfloat16, torch.float16):
        values = values.float()
    return values.permute(1, 2, 0).numpy()  # (H,W,C)


def _from_array(array: np.ndarray, name: str) -> Picture:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]  # (H,W)
    if array.ndim != 2 and not (array.ndim == 3 and array.shape[2] in (3, 4)):
        raise ShapeError(f"picture '{name}'", "(H,W), (H,W,3) or (H,W,4)", array.shape)
    _check_size((array.shape[1], array.shape[0]), name)
    if array.dtype == np.uint8:
        pixels = array
    elif array.dtype == np.uint16 and array.ndim == 2:
        grey, notes = _from_deep_grey(array, "I", name)
        return Picture(grey, name, notes)
    elif array.dtype == np.bool_:
        pixels = array.astype(np.uint8) * np.uint8(255)
    elif np.issubdtype(array.dtype, np.floating):
        low, high = float(array.min()), float(array.max())
        if not (low >= -1e-6 and high <= 1 + 1e-6):  # NaN fails too
            raise DataError(
                f"{name}: float pixels lie between 0 and 1, found {low:g} to {high:g}; "
                f"divide by 255, or undo the normalisation"
            )
        pixels = np.round(np.clip(array, 0, 1) * 255).astype(np.uint8)
    else:
        raise DataError(f"{name}: pixels are uint8, or floats from 0 to 1; found {array.dtype}")
    return _from_pil(Image.fromarray(np.ascontiguousarray(pixels)), name)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
