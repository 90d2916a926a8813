"""Untrusted files: only regular files of a bounded size and plain values of a bounded depth are read.

A path may lead to a pipe, a device or a file without end. Text may nest a million brackets, or repeat itself by
references. Refusals are OSError or ValueError, as for any other unreadable file; the caller adds the name of the file.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any

MAX_TEXT = 16 * 2**20
"""Bytes of a JSON or YAML file; those that saccade writes have a few megabytes at most."""
DEEPEST = 64
"""Levels of nested lists and mappings."""
MAX_VALUES = 1_000_000
"""Values in a file, each counted as often as it is referred to."""
MAX_PIXELS = 64_000_000
"""No picture, and no map over one, has more: a wrong size must not use up the memory."""
LOWEST_INT, HIGHEST_INT = -(2**63), 2**63 - 1
"""What 64 bits hold; torch and other readers of JSON take no more."""

_OPEN = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def read_regular(path: Path, most: int = MAX_TEXT) -> bytes:
    """The bytes of the regular file ``path``.

    Raises:
        OSError: there is no such file, it is a pipe, a device or a folder, or it has more than ``most`` bytes.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise OSError(errno.EFBIG, f"{size:,} bytes, and at most {most:,} are allowed")
        return file.read(size)


def open_regular(path: Path) -> BufferedReader:
    """``path`` opened for reading bytes, if it is a regular file; a pipe is not waited for."""
    try:
        descriptor = os.open(path, _OPEN)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"no file can have this name ({error})") from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    code = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
    raise OSError(code, "Is a directory" if stat.S_ISDIR(mode) else "not a regular file, but a pipe or a device")


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


def check_plain(values: object) -> None:
    """Refuse values that are nested too deep, too many, or that other code cannot hold.

    Args:
        values: what JSON or YAML made. A value that refers to itself is endlessly deep.

    Raises:
        ValueError: says which.
    """
    level, count = [values], 0
    for _ in range(DEEPEST + 1):
        inside: list[object] = []
        for value in level:
            if isinstance(value, str):
                check_text(value)
            elif isinstance(value, int):
                if not LOWEST_INT <= value <= HIGHEST_INT:
                    raise ValueError("a whole number beyond 64 bits")
            elif isinstance(value, dict):
                inside += value
                inside += value.values()
            elif isinstance(value, list):
                inside += value
            if count + len(inside) > MAX_VALUES:
                raise ValueError(f"more than {MAX_VALUES:,} values")
        if not inside:
            return
        count += len(inside)
        level = inside
    raise ValueError(f"nested deeper than {DEEPEST} levels")


def check_text(text: str) -> None:
    r"""Refuse text that no file holds: NUL, and half of a surrogate pair.

    U+DC80 … U+DCFF pass. Python uses these code points for file-name bytes that are not UTF-8.

    >>> check_text("caf\u00e9")
    """
    if text.isascii():
        if "\0" in text:
            raise ValueError("text that holds NUL")
        return
    if "\0" in text or any("\ud800" <= each < "\udc80" or "\udcff" < each <= "\udfff" for each in text):
        raise ValueError(f"text that holds NUL or half of a surrogate pair: {text[:40]!a}")
