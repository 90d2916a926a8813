"""Untrusted files: regular ones of a bounded size, plain values of a bounded depth, tensors of known shapes and digest.

A path may lead to a pipe, a device or a file without end, and text may nest a million brackets. Refusals are OSError or
ValueError, as for any other unreadable file; the caller adds the name of the file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from saccade.errors import CheckpointError

MAX_TEXT = 16 * 2**20
"""Bytes of a JSON or YAML file; those that saccade writes have a few megabytes at most."""
DEEPEST = 64
"""Levels of nested lists and mappings."""
MAX_PIXELS = 64_000_000
"""No picture, and no map over one, has more: a wrong size must not use up the memory."""
LOWEST_INT, HIGHEST_INT = -(2**63), 2**63 - 1
"""What 64 bits hold; torch and other readers of JSON take no more."""

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: Path, most: int | None = None) -> BufferedReader:
    """``path`` opened for reading bytes, if it is a regular file of at most ``most`` bytes, and no pipe."""
    try:
        descriptor = os.open(path, _OPEN)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"no file can have this name ({error})") from error
    mode, size = os.fstat(descriptor).st_mode, os.fstat(descriptor).st_size
    if stat.S_ISREG(mode) and (most is None or size <= most):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"{size:,} bytes, and at most {most:,} are allowed")
    what = "Is a directory" if stat.S_ISDIR(mode) else "not a regular file, but a pipe or a device"
    raise OSError(errno.EINVAL, what)


def read_regular(path: Path, most: int = MAX_TEXT) -> bytes:
    """The bytes of the regular file ``path``; an OSError where there is none, or where it has more than ``most``."""
    with open_regular(path, most) as file:
        return file.read()


@contextmanager
def _reading(path: Path, also: type[Exception] = OSError) -> Iterator[None]:
    """Turn whatever is wrong with the file ``path`` into a CheckpointError that names it."""
    try:
        yield
    except (OSError, ValueError, OverflowError, also) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise CheckpointError(f"{path}: cannot be read ({reason}); get it again") from error


def read_json(path: Path) -> dict[str, Any]:
    """The mapping in a JSON file; a CheckpointError, which names the file, where there is none."""
    with _reading(path):
        values = parse_json(read_regular(path).decode("utf-8"))
        if not isinstance(values, dict):
            raise ValueError(f"expected a mapping, found {type(values).__name__}")
        return values


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Plain values from JSON; ``options`` as those of :func:`json.loads`.

    Raises:
        ValueError: not JSON, or values that :func:`check_plain` refuses.
    """
    try:
        values = json.loads(text, **options)
    except RecursionError as error:
        raise ValueError(f"nested deeper than {DEEPEST} levels") from error
    check_plain(values)
    return values


def check_plain(values: object, levels: int = DEEPEST) -> None:
    """Refuse values of JSON or YAML that are nested deeper than ``levels``, or that other code cannot hold."""
    if isinstance(values, str):
        check_text(values)
    elif isinstance(values, int) and not LOWEST_INT <= values <= HIGHEST_INT:
        raise ValueError("a whole number beyond 64 bits")
    elif isinstance(values, (dict, list)):
        if levels == 0:
            raise ValueError(f"nested deeper than {DEEPEST} levels")
        for value in (*values, *values.values()) if isinstance(values, dict) else values:
            check_plain(value, levels - 1)


def check_text(text: str) -> None:
    r"""Refuse text that no file holds: NUL, and half of a surrogate pair.

    U+DC80 … U+DCFF pass. Python uses these code points for file-name bytes that are not UTF-8.

    >>> check_text("caf\u00e9")
    """
    if "\0" in text or (
        not text.isascii() and any("\ud800" <= each < "\udc80" or "\udcff" < each <= "\udfff" for each in text)
    ):
        raise ValueError(f"text that holds NUL or half of a surrogate pair: {text[:40]!a}")


if TYPE_CHECKING:
    from torch import Tensor

MAX_FILE = 2 * 2**30
"""Bytes of a file of tensors; 500 million numbers as float32."""


class Entry(NamedTuple):
    """What a header says of one tensor."""

    dtype: str
    """As safetensors writes it: ``F32``, ``I64`` …"""
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


def verify_digest(path: Path, sha256: str, most: int = MAX_FILE) -> None:
    """Raise a CheckpointError unless ``path`` is a regular file of at most ``most`` bytes with this SHA-256."""
    with _reading(path), open_regular(path, most) as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != sha256:
            raise ValueError(f"damaged: SHA-256 {found[:12]}…, expected {sha256[:12]}…")


def read_header(path: Path, sha256: str, most: int = MAX_FILE) -> dict[str, Entry]:
    """Type and shape of each tensor of the file ``path``, whose SHA-256 must be ``sha256``. No number is read.

    Raises:
        CheckpointError: it cannot be read, is larger than ``most`` bytes, is damaged or is no safetensors file.
    """
    from safetensors import SafetensorError, safe_open  # not at the top: few need them

    verify_digest(path, sha256, most)
    with _reading(path, SafetensorError), safe_open(path, "pt") as file:
        parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no mapping
        return {name: Entry(part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}


def read_tensors(path: Path, sha256: str, most: int = MAX_FILE) -> dict[str, Tensor]:
    """The tensors of a file, after the checks of :func:`read_header`."""
    from safetensors.torch import load

    read_header(path, sha256, most)
    return load(path.read_bytes())
