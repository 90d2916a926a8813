"""Untrusted safetensors files: the header is checked before any number is read.

A file is eight bytes with the length of its header, the header as JSON (name → type, shape, place), and the numbers.
The header must account for every byte of the file, so a sparse, truncated or padded file is recognised from its first
few kilobytes.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from saccade.errors import SaccadeError
from saccade.untrusted import open_regular, parse_json

if TYPE_CHECKING:
    from torch import Tensor

MAX_FILE = 2 * 2**30
"""Bytes of a file of tensors; 500 million numbers as float32."""
_MAX_HEADER = 8 * 2**20
_BYTES = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2, "I8": 1,
    "U8": 1, "BOOL": 1,
}  # fmt: skip
"""Bytes per element by dtype. saccade writes no other dtypes."""


class Entry(NamedTuple):
    """What a header says of one tensor."""

    dtype: str
    shape: tuple[int, ...]


class TensorFile:
    """An open safetensors file.

    Raises:
        OSError: not a regular file, not readable, or larger than :data:`MAX_FILE`.
    """

    def __init__(self, path: Path, most: int = MAX_FILE) -> None:
        self._file = open_regular(path)
        self.size = os.fstat(self._file.fileno()).st_size
        if self.size > most:
            self._file.close()
            raise OSError(f"{self.size:,} bytes, and at most {most:,} are allowed")

    def __enter__(self) -> TensorFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def header(self) -> dict[str, Entry]:
        """Type and shape of each tensor by name; a ValueError where they do not account for the bytes of the file."""
        self._file.seek(0)
        length = int.from_bytes(self._file.read(8), "little")
        if length > min(_MAX_HEADER, self.size - 8):
            raise ValueError("its header is longer than the file")
        found = parse_json(self._file.read(length))
        if not isinstance(found, dict):
            raise ValueError("its header is no mapping")
        entries = {name: _entry(name, said) for name, said in found.items() if name != "__metadata__"}
        data = sum(_BYTES[entry.dtype] * math.prod(entry.shape) for entry in entries.values())
        if data != self.size - 8 - length:
            raise ValueError(f"its header describes {data:,} bytes, found {self.size - 8 - length:,}")
        return entries

    def digest(self) -> str:
        """The SHA-256 of the file, of which only a piece at a time is in memory."""
        self._file.seek(0)
        return hashlib.file_digest(self._file, "sha256").hexdigest()

    def read(self) -> bytes:
        """The whole file."""
        self._file.seek(0)
        content: bytes = self._file.read(self.size)
        return content


Fits = Callable[[Mapping[str, Entry]], None]
"""Refuses a header by a SaccadeError."""


def read_with_digest(
    path: Path, fits: Fits | None = None, most: int = MAX_FILE
) -> tuple[bytes | SaccadeError | ValueError, str]:
    """The bytes of a file, or why its header is refused; and the SHA-256 of the file in either case.

    Look at the digest first: a damaged file is damaged, whatever its header says. A file whose header is refused is
    not read into memory.

    Args:
        path: of the file.
        fits: refuses what a sound header says; None: nothing is refused.
        most: bytes.

    Raises:
        OSError: not a regular file, not readable, or larger than ``most``.
    """
    with TensorFile(path, most) as file:
        try:
            header = file.header()
            if fits is not None:
                fits(header)
        except (SaccadeError, ValueError) as error:
            return error, file.digest()
        data = file.read()
    return data, hashlib.sha256(data).hexdigest()


def parse_tensors(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file; a ValueError where they are not safetensors."""
    from safetensors import SafetensorError  # the rest of this file needs no torch
    from safetensors.torch import load

    try:
        return load(data)
    except (SafetensorError, KeyError, TypeError, RuntimeError) as error:
        raise ValueError(str(error)) from error


def _entry(name: str, said: object) -> Entry:
    dtype, shape = (said.get("dtype"), said.get("shape")) if isinstance(said, Mapping) else (None, None)
    if not isinstance(dtype, str) or dtype not in _BYTES or not isinstance(shape, list):
        raise ValueError(f"its header does not say type and shape of '{name[:60]}'")
    if not all(isinstance(length, int) and length >= 0 for length in shape):
        raise ValueError(f"its header gives '{name[:60]}' the shape {str(shape)[:60]}")
    return Entry(dtype, tuple(shape))
