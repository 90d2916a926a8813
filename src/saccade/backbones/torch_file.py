"""Reads tensors from files that torch saved. This is the only place that does, and only for files with a known digest.

Such files are pickles. torch reads them with ``weights_only``, and only after the content matched the digest that its
publisher announced. Other weights must be safetensors.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from saccade.cache import file_digest
from saccade.errors import DataError


def read_torch_file(path: Path, sha256: str) -> dict[str, Tensor]:
    """The tensors in ``path`` by name, if its SHA-256 starts with ``sha256``; else a DataError."""
    try:
        found = file_digest(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    if not found.startswith(sha256):
        raise DataError(
            f"{path}: SHA-256 {found[:12]}…, expected {sha256[:12]}…; it is damaged or holds other weights, and is "
            "not opened. Delete it and get it again; weights of your own are read from safetensors"
        )
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # its reader fails in many ways; each means that this file is no use
        raise DataError(f"{path}: torch cannot read it ({type(error).__name__}: {error})") from error
    if not isinstance(content, dict) or not all(isinstance(tensor, Tensor) for tensor in content.values()):
        raise DataError(f"{path}: expected tensors by name, found {type(content).__name__}")
    return {str(name): tensor for name, tensor in content.items()}
