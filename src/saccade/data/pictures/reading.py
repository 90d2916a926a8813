"""Pictures in: the only place that opens image files.

Whatever comes in (a path, bytes, a PIL image, an array, a tensor) leaves as an upright 8-bit RGB :class:`Picture`, or
as a DataError that names the file, what is wrong with it and what to do.

Files are untrusted: :mod:`saccade.data.pictures.files` checks them before they are decoded.

EXIF rotation is applied; transparency is laid over white; 16-bit grey is scaled to 8 bits, not clipped; of an animation
the first frame is taken. ``Picture.notes`` says which of these happened.
"""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from saccade.data.pictures.files import (
    SUFFIXES,
    check_size,
    decode,
    deep_grey,
    find_files,
    local_path,
    strips,
    upright_rgb,
)
from saccade.errors import DataError, ShapeError
from saccade.files import MAX_PIXELS, open_regular
from saccade.geometry import Fit, Size, fit_inside
from saccade.progress import OnProgress, no_progress

# More pixels than this in one picture are refused, and a streamed batch ends early rather than hold more.
PIXEL_LIMIT = MAX_PIXELS
SIDE_LIMIT = 4096  # No network input is higher or wider: a slip in a size must not run out of memory
THREADS = min(4, os.cpu_count() or 1)  # That decode side by side; Pillow lets the others run meanwhile
_MOST_BYTES = 1 << 30  # of a file
_MOST_SCANS = 100  # of a JPEG; encoders write about ten, and each may touch every pixel
_MOST_COMMENTS, _MOST_TEXT = 100, 16 << 20  # of a PNM in text, which Python parses


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture as a viewer shows it."""

    image: Image.Image  # Upright, RGB, 8 bits a channel
    name: str  # Its path, or what kind of thing it was
    notes: tuple[str, ...] = ()  # What was done to it on the way in

    @property
    def size(self) -> Size:
        """(height, width)."""
        return self.image.height, self.image.width

    @property
    def stem(self) -> str:
        """The name without folders and suffix: what files about this picture are called."""
        return Path(self.name).stem or "picture"


Source = str | os.PathLike[str] | bytes | BinaryIO | Image.Image | np.ndarray | Tensor | Picture


def read_picture(source: Source, *, name: str | None = None) -> Picture:
    """The picture in ``source``.

    Args:
        source: a path; the bytes or the open binary file of an image; a PIL image; an array (H,W), (H,W,3) or (H,W,4)
            of uint8, or of floats 0..1; a tensor (1,H,W) or (3,H,W) of floats 0..1.
        name: what to call it; by default its path.
    """
    if isinstance(source, Picture):
        return source
    if isinstance(source, (str, os.PathLike)):
        path = local_path(os.fspath(source), "picture")
        return _from_path(path, name or str(path))
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _from_bytes(bytes(source), name or "picture")
    if isinstance(source, Image.Image):
        return _from_pil(source, name or str(getattr(source, "filename", "") or "picture"))
    if isinstance(source, Tensor):
        return _from_array(_channels_last(source), name or "tensor")
    if isinstance(source, np.ndarray):
        return _from_array(source, name or "array")
    if hasattr(source, "read"):
        name, data = name or str(getattr(source, "name", "picture")), source.read(_MOST_BYTES + 1)
        if not isinstance(data, bytes):
            raise DataError(f"{name}: opened as text; open it as a binary file, with mode 'rb'")
        if getattr(source, "seekable", bool)():
            source.seek(-len(data), os.SEEK_CUR)  # so that it can be read again; a pipe cannot
        return _from_bytes(data, name)
    raise DataError(f"a picture is a path, bytes, a PIL image, an array or a tensor; found {type(source).__name__}")


def prepare(
    picture: Picture, size: Size, fill: float = 0.0, fitted: Callable[[Size, Size], Fit] = fit_inside
) -> tuple[Tensor, Tensor, Tensor]:
    """Lay ``picture`` into a network input of ``size``, undistorted or as ``fitted`` says; ``fill`` is the border.

    Returns:
        The input (3,h,w) in 0..1; the canvas (2,3), network input → picture; the picture's size (2,). A picture that
        already has the size passes exactly.
    """
    pixels = _as_floats(picture.image)  # (3,H,W)
    fit = fitted(picture.size, size)
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
    """uint8 to 0..1; on a CPU channels last in memory, which convolutions run two to four times as fast."""
    layout = torch.channels_last if images.device.type == "cpu" else torch.preserve_format
    return images.to(torch.float32, memory_format=layout).div_(255.0)


def find_pictures(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The picture files meant by ``paths``; see :func:`saccade.data.pictures.files.find_files`."""
    return find_files(paths, SUFFIXES, "picture")


def stream_pictures(
    sources: Iterable[Source], batch: int, on_bad: Callable[[Source, DataError], None] | None = None
) -> Iterator[list[Picture]]:
    """Read ``sources``, in order, into lists of at most ``batch`` pictures (fewer when they are very large).

    Of a list, a few threads decode later batches while the caller computes. ``on_bad`` is called with a source that
    cannot be read and its error; without it the error is raised.
    """
    if batch < 1:
        raise DataError(f"a batch holds 1 picture or more, found {batch}")
    ahead = batch + THREADS if isinstance(sources, Sequence) else 0
    coming = iter(sources)
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="saccade-decoding")
    begun: deque[tuple[Source, Future[Picture] | None]] = deque()
    gathered: list[Picture] = []
    pixels = 0
    try:
        while True:
            wanted = max(batch - len(gathered), ahead)
            while len(begun) < wanted and _pixels_waiting(job for _, job in begun) < PIXEL_LIMIT // 2:
                if not (more := list(islice(coming, 1))):
                    break
                is_file = isinstance(more[0], (str, os.PathLike, bytes, bytearray, memoryview))
                begun.append((more[0], threads.submit(read_picture, more[0]) if is_file else None))
            if not begun:
                break
            source, job = begun.popleft()
            try:
                picture = read_picture(source) if job is None else job.result()
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
    finally:
        threads.shutdown(wait=True, cancel_futures=True)


def unreadable_pictures(paths: Sequence[Path], on_progress: OnProgress = no_progress) -> list[str]:
    """What is wrong with each of these files that cannot be read; all are decoded."""
    wrong: list[str] = []
    read = 0
    for pictures in stream_pictures(paths, THREADS, lambda source, error: wrong.append(str(error))):
        read += len(pictures)
        on_progress("pictures", read + len(wrong), len(paths))
    return wrong


def _pixels_waiting(begun: Iterable[Future[Picture] | None]) -> int:
    done = (job.result().size for job in begun if job is not None and job.done() and job.exception() is None)
    return sum(height * width for height, width in done)


def _from_path(path: Path, name: str) -> Picture:
    try:
        with open_regular(path) as file:
            data = file.read(_MOST_BYTES + 1)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path") from error
    except OSError as error:
        raise DataError(f"{str(path)!r}: cannot be opened as a picture ({error.strerror or error})") from error
    return _from_bytes(data, name)


def _from_bytes(data: bytes, name: str) -> Picture:
    if is_laborious(data):
        raise DataError(
            f"{name}: decoding it takes longer than its pixels justify; save it again as a plain PNG or JPEG"
        )
    try:
        image, notes = decode(io.BytesIO(data), name, PIXEL_LIMIT)
        if type(image) is not Image.Image:
            image = image.copy()  # a plain Image: its own pixels, no link to the file
    except MemoryError as error:
        raise DataError(f"{name}: there is not enough memory to decode it; make it smaller") from error
    return Picture(image, name, notes)


def is_laborious(data: bytes) -> bool:
    """Whether a file asks for far more work than its pixels do.

    The bytes that begin a scan, or a comment, are counted wherever they occur.
    """
    if data.startswith(b"\xff\xd8"):
        return data.count(b"\xff\xda") > _MOST_SCANS
    if data.startswith((b"P1", b"P2", b"P3")):
        return len(data) > _MOST_TEXT or data.count(b"#") > _MOST_COMMENTS
    return len(data) > _MOST_BYTES


def _from_pil(image: Image.Image, name: str) -> Picture:
    check_size(image.size, name, PIXEL_LIMIT)
    upright, notes = upright_rgb(image, name)
    return Picture(upright.copy() if upright is image else upright, name, notes)


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
