"""Digests of the bytes of files.

Names, sizes and times do not tell two data sets apart: archives are often packed with one time for all files. So what
is kept of pictures, and what a run learned from, goes by their content.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from saccade.errors import DataError
from saccade.files import open_regular


def content_digests(
    paths: Sequence[Path],
    *,
    unreadable: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[str]:
    """A digest of the bytes of each file, 32 hexadecimal digits, in the order of ``paths``.

    Args:
        paths: the files.
        unreadable: what stands in for the digest of a file that cannot be read; None: that is an error.
        progress: called with files done and files in all.

    Raises:
        DataError: a file cannot be read, or is no regular file.
    """
    digests: list[str] = []

    def digest(path: Path) -> str:
        try:
            with open_regular(path) as file:
                return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        except OSError as error:
            if unreadable is None:
                raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
            return unreadable

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for found in pool.map(digest, paths):
            digests.append(found)
            progress(len(digests), len(paths))
    return digests


def files_digest(paths: Iterable[Path]) -> str:
    """One digest of the contents of files, in their order: it changes when a picture does, whatever they are called."""
    return hashlib.sha256(json.dumps(content_digests(list(paths))).encode()).hexdigest()[:32]


def copy_groups(paths: Sequence[Path]) -> list[int]:
    """For each picture, the number of the first one with the same bytes, or its own."""
    first: dict[str, int] = {}
    return [first.setdefault(digest, number) for number, digest in enumerate(content_digests(paths))]
