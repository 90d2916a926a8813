"""Untrusted safetensors files: digest and shapes are checked before any number is in memory."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from saccade.errors import CheckpointError
from saccade.untrusted import open_regular

if TYPE_CHECKING:
    from torch import Tensor

MAX_FILE = 2 * 2**30
"""Bytes of a file of tensors; 500 million numbers as float32."""


class Entry(NamedTuple):
    """What a header says of one tensor."""

    dtype: str
    """As safetensors writes it: ``F32``, ``I64`` …"""
    shape: tuple[int, ...]


def verify_digest(path: Path, sha256: str, most: int = MAX_FILE) -> None:
    """Raise a CheckpointError unless ``path`` is a regular file of at most ``most`` bytes with this SHA-256."""
    try:
        with open_regular(path) as file:
            if (size := os.fstat(file.fileno()).st_size) > most:
                raise OSError(errno.EFBIG, f"{size:,} bytes, and at most {most:,} are allowed")
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or error}); get it again") from error
    if found != sha256:
        raise CheckpointError(f"{path}: damaged (SHA-256 {found[:12]}…, expected {sha256[:12]}…); get it again")


def read_header(path: Path, sha256: str, most: int = MAX_FILE) -> dict[str, Entry]:
    """Type and shape of each tensor of the file ``path``, whose SHA-256 must be ``sha256``. No number is read.

    Raises:
        CheckpointError: it cannot be read, is larger than ``most`` bytes, is damaged or is no safetensors file.
    """
    from safetensors import SafetensorError, safe_open  # digests alone need no torch

    verify_digest(path, sha256, most)
    try:
        with safe_open(path, "pt") as file:
            parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
            return {name: Entry(part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}
    except (SafetensorError, OverflowError) as error:
        raise CheckpointError(f"{path}: not a safetensors file ({error}); get it again") from error


def read_tensors(path: Path, sha256: str, most: int = MAX_FILE) -> dict[str, Tensor]:
    """The tensors of a file, after the checks of :func:`read_header`."""
    from safetensors.torch import load

    read_header(path, sha256, most)
    return load(path.read_bytes())
