"""Digests of the bytes of files.

Names, sizes and times do not tell two data sets apart: archives are often packed with one time for all files. So what
is kept of pictures, and what a run learned from, goes by their content.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from saccade.files import open_regular, write_bytes


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
        for each in pool.map(digest, paths):
            digests.append(each)
            progress(len(digests), len(paths))
    return digests


def files_digest(paths: Iterable[Path]) -> str:
    """One digest of the contents of files, in their order: it changes when a picture does, whatever they are called."""
    return hashlib.sha256(json.dumps(content_digests(list(paths))).encode()).hexdigest()[:32]


def copy_groups(paths: Sequence[Path]) -> list[int]:
    """For each picture, the number of the first one with the same bytes, or its own."""
    first: dict[str, int] = {}
    return [first.setdefault(digest, number) for number, digest in enumerate(content_digests(paths))]


def torn_copies(kind_of: Mapping[Path, str]) -> list[list[Path]]:
    """Groups of files with the same bytes that are not of one kind, such as one split or class.

    Only files of equal length are read, and only where these are of several kinds. Files that cannot be read are in no
    group.
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
