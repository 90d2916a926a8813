"""Pictures in: the only place that opens image files.

Whatever comes in (a path, bytes, a PIL image, an array, a tensor) leaves as an upright 8-bit RGB :class:`Picture`, or
as a DataError that names the file, what is wrong with it and what to do.

Files are untrusted, and a small one can take minutes to decode. So they are decoded in processes of their own, which
are killed at a deadline and have a memory limit (:mod:`.decoder_pool`). One exception saves the start of a process: a
single PNG, WebP or JPEG of few scans is decoded here, because its time is bounded by its pixels. A stream of files is
always decoded in such processes, ahead of whoever computes.

Choices, said once: EXIF rotation is applied; transparency is laid over white, as viewers show it; 16-bit grey is scaled
to 8 bits, not clipped; of an animation the first frame is taken. ``Picture.notes`` says which of these happened.
"""

from __future__ import annotations

import io
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from saccade.data.files import find_files, local_path
from saccade.data.pictures.decoder_pool import (
    SECONDS,
    Decoded,
    DecoderPool,
    Decoding,
    process_count,
    shared_pool,
)
from saccade.data.pictures.decoding import SUFFIXES, check_size, decode, deep_grey, one_line, strips, upright_rgb
from saccade.errors import DataError, ShapeError
from saccade.geometry import Size, fit_inside
from saccade.untrusted import MAX_PIXELS

PIXEL_LIMIT = MAX_PIXELS
"""More pixels than this in one picture are refused, and a streamed batch ends early rather than hold more."""
SIDE_LIMIT = 4096
"""No network input is higher or wider: a slip in a size must not run out of memory."""
_PLAIN_BYTES = 64 << 20  # of a file that is decoded here
_PLAIN_SCANS = 20  # of a JPEG that is decoded here; encoders write about ten


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

    A file whose decoding could take longer than its pixels justify is decoded in another process, for at most 60 s.
    PNG, WebP and ordinary JPEG are decoded here, so that one picture costs no start of a process.

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
        return _from_bytes(bytes(source), name or "picture", pixels)
    if isinstance(source, Image.Image):
        return _from_pil(source, name or str(getattr(source, "filename", "") or "picture"))
    if isinstance(source, Tensor):
        return _from_array(_channels_last(source), name or "tensor")
    if isinstance(source, np.ndarray):
        return _from_array(source, name or "array")
    if hasattr(source, "read"):
        return _from_file(source, name or str(getattr(source, "name", "picture")), pixels)
    raise DataError(f"a picture is a path, bytes, a PIL image, an array or a tensor; found {type(source).__name__}")


def prepare(picture: Picture, size: Size, fill: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """Lay ``picture`` into a network input of ``size`` without distortion, the border filled with ``fill``.

    Returns:
        The input (3,h,w) in 0..1; the canvas (2,3), network input → picture; the picture's size (2,). A picture that
        already has the size passes exactly.
    """
    pixels = _as_floats(picture.image)  # (3,H,W)
    fit = fit_inside(picture.size, size)
    if (fit.height, fit.width) != picture.size:
        resized = F.interpolate(
            pixels[None], (fit.height, fit.width), mode="bilinear", align_corners=False, antialias=True
        )
        pixels = resized[0].clamp(0, 1)  # (3,height,width)
    right, bottom = size[1] - fit.width - fit.left, size[0] - fit.height - fit.top
    framed = F.pad(pixels, (fit.left, right, fit.top, bottom), value=fill)  # (3,h,w)
    return framed, fit.canvas, torch.tensor(picture.size)


def _as_floats(image: Image.Image) -> Tensor:
    """(3,H,W) in 0..1, channels last in memory; filled by strips, so that no second copy of a large one is made."""
    boxes = strips(image.size)
    if len(boxes) == 1:
        return torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div_(255)  # (3,H,W)
    pixels = torch.empty(image.height, image.width, 3)  # (H,W,3)
    for box in boxes:
        pixels[box[1] : box[3]] = torch.from_numpy(np.array(image.crop(box)))
    return pixels.div_(255).permute(2, 0, 1)  # (3,H,W)


def as_float(images: Tensor) -> Tensor:
    """uint8 to 0..1; on a CPU channels last in memory, in which its convolutions run two to four times as fast."""
    layout = torch.channels_last if images.device.type == "cpu" else torch.preserve_format
    return images.to(torch.float32, memory_format=layout).div_(255.0)


def find_pictures(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The picture files meant by ``paths``; see :func:`saccade.data.files.find_files`."""
    return find_files(paths, SUFFIXES, "picture")


def stream_pictures(
    sources: Iterable[Source],
    batch: int,
    on_bad: Callable[[Source, DataError], None] | None = None,
    *,
    seconds: float = SECONDS,
) -> Iterator[list[Picture]]:
    """Read ``sources``, in order, into lists of at most ``batch`` pictures (fewer when they are very large).

    Files are decoded in processes of their own, several at a time. Of a list of sources, later batches are decoded
    while the caller computes with the earlier ones; of any other iterable no more is taken than the next batch needs.

    Args:
        sources: what :func:`read_picture` takes.
        batch: pictures in a list.
        on_bad: called with a source that cannot be read and its error, in order, and the rest goes on; without it the
            error is raised.
        seconds: for one file; then its process is killed.
    """
    if batch < 1:
        raise DataError(f"a batch holds 1 picture or more, found {batch}")
    return _batches(sources, batch, on_bad, seconds)


def _batches(
    sources: Iterable[Source], batch: int, on_bad: Callable[[Source, DataError], None] | None, seconds: float
) -> Iterator[list[Picture]]:
    processes = process_count()
    ahead = batch + processes if isinstance(sources, Sequence) else 0
    coming = iter(sources)
    pool = DecoderPool(processes, seconds=seconds)
    begun: deque[_Begun] = deque()
    gathered: list[Picture] = []
    pixels = 0
    try:
        while True:
            wanted = max(batch - len(gathered), ahead)
            while len(begun) < wanted and (not begun or sum(each.pixels for each in begun) < PIXEL_LIMIT // 2):
                if not (more := list(islice(coming, 1))):
                    break
                begun.append(_Begun(more[0], pool))
            if not begun:
                break
            first = begun.popleft()
            try:
                picture = first.picture()
            except DataError as error:
                if on_bad is None:
                    raise
                on_bad(first.source, error)
                continue
            gathered.append(picture)
            pixels += picture.size[0] * picture.size[1]
            if len(gathered) == batch or pixels >= PIXEL_LIMIT:
                yield gathered
                gathered, pixels = [], 0
        if gathered:
            yield gathered
    finally:
        pool.close()


class _Begun:
    """A source whose reading has begun: a file is being decoded, anything else is read when its turn comes."""

    def __init__(self, source: Source, pool: DecoderPool) -> None:
        self.source = source
        self._name = ""
        self._job: Decoding | DataError | None = None
        try:
            if isinstance(source, (str, os.PathLike)):
                path = local_path(os.fspath(source), "picture")
                _check_ordinary(path)
                self._name, self._job = str(path), pool.submit(path, str(path))
            elif isinstance(source, (bytes, bytearray, memoryview)):
                self._name, self._job = "picture", pool.submit(bytes(source), "picture")
        except DataError as error:
            self._job = error

    @property
    def pixels(self) -> int:
        """Decoded pixels held in memory."""
        if not isinstance(self._job, Decoding) or not self._job.is_there:
            return 0
        width, height = self._job.result()[0].size
        return width * height

    def picture(self) -> Picture:
        if isinstance(self._job, DataError):
            raise self._job
        if self._job is None:
            return read_picture(self.source)
        image, notes = self._job.result()
        return Picture(image, self._name, notes)


def _from_path(path: Path, name: str | None, pixels: int) -> Picture:
    _check_ordinary(path)
    called = name or str(path)
    try:
        with path.open("rb") as file:
            data = _plain_bytes(file)
    except OSError as error:
        raise _not_opened(path, error) from error
    if data is not None:
        return _decode_here(io.BytesIO(data), called, pixels)
    return _from_decoded(shared_pool().decode(path, called, pixels), called)


def _check_ordinary(path: Path) -> None:
    """Refuse what is no file, before it is opened. Opening a pipe would block until someone writes."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise _not_opened(path, error) from error
    except ValueError as error:  # a NUL in the name
        raise DataError(f"{str(path)!r}: not the name of a file ({error}); check the path") from error
    if stat.S_ISDIR(mode):
        raise DataError(f"{path}: a folder, not a picture; name a file in it")
    if not stat.S_ISREG(mode):
        raise DataError(f"{path}: not an ordinary file; save the picture as a file first")


def _not_opened(path: Path, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such file; check the path")
    return DataError(f"{path}: cannot be opened ({error.strerror or error})")


def _from_file(file: BinaryIO, name: str, pixels: int) -> Picture:
    """From an open file, where it stands."""
    try:
        start = file.tell()
        data = file.read()
        file.seek(start)
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(
            f"{name}: cannot be read from its start ({one_line(error)}); save it as a file first"
        ) from error
    if not isinstance(data, bytes):
        raise DataError(f"{name}: opened as text; open it as a binary file, with mode 'rb'")
    return _from_bytes(data, name, pixels)


def _from_bytes(data: bytes, name: str, pixels: int) -> Picture:
    if not data or _plain_bytes(io.BytesIO(data)) is not None:
        return _decode_here(io.BytesIO(data), name, pixels)
    return _from_decoded(shared_pool().decode(data, name, pixels), name)


def _plain_bytes(file: BinaryIO) -> bytes | None:
    """What is in ``file``, if to decode it takes no longer than its pixels justify; otherwise None.

    That is known of PNG, of WebP and of JPEG with few scans. Every scan of a JPEG may touch every pixel, and a few
    hundred bytes are a scan. The bytes that begin one are counted wherever they occur. Overcounting is safe.
    """
    head = file.read(12)
    is_png = head.startswith(b"\x89PNG\r\n\x1a\n")
    is_webp = head[:4] == b"RIFF" and head[8:] == b"WEBP"
    is_jpeg = head.startswith(b"\xff\xd8\xff")
    if head and not (is_png or is_webp or is_jpeg):
        return None
    data = head + file.read(_PLAIN_BYTES + 1)
    if len(data) > _PLAIN_BYTES or (is_jpeg and data.count(b"\xff\xda") > _PLAIN_SCANS):
        return None
    return data


def _decode_here(file: BinaryIO, name: str, pixels: int) -> Picture:
    try:
        image, notes = decode(file, name, min(pixels, PIXEL_LIMIT))
        if type(image) is not Image.Image:
            image = image.copy()  # a plain Image: its own pixels, no link to an open file
    except MemoryError as error:
        raise DataError(f"{name}: there is not enough memory to decode it; make it smaller") from error
    return Picture(image, name, notes)


def _from_pil(image: Image.Image, name: str) -> Picture:
    check_size(image.size, name, PIXEL_LIMIT)
    try:
        found, notes = upright_rgb(image, name)
    except MemoryError as error:
        raise DataError(f"{name}: there is not enough memory to convert it; make it smaller") from error
    return Picture(found.copy() if found is image else found, name, notes)


def _from_decoded(decoded: Decoded, name: str) -> Picture:
    image, notes = decoded
    return Picture(image, name, notes)


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
    check_size((array.shape[1], array.shape[0]), name, PIXEL_LIMIT)
    if array.dtype == np.uint8:
        pixels = array
    elif array.dtype == np.uint16 and array.ndim == 2:
        grey, notes = deep_grey(Image.fromarray(np.ascontiguousarray(array)), name)
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
