"""Digests of the bytes of files, each read once: an index in the cache folder remembers them.

Names, sizes and times do not tell two data sets apart: archives are often packed with one time for all files. So what
is kept of pictures, and what a run learned from, goes by their content.

The index remembers a digest by the file's absolute path, size, time of change, inode and time of the last change of the
inode (``st_ctime_ns``). What is promised:

* A file that was only touched, moved or copied has the same digest; it is read again once.
* A file that was rewritten has a new digest, even in place and with its old time put back, because the system itself
  sets ``st_ctime_ns``. Windows has no such time: there, same path, size, time and inode count as the same file.
* A file that changes while it is read, or changed within the last second, is not remembered.

The index is a file of fixed-size entries, at most :data:`MOST` of them; the newest stay. It is written beside its place
and moved into it, after what other processes have added was merged in. If two write at the same time, one may lose its
new entries: those files are read once more. A damaged index, or one that cannot be written, only costs time.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from saccade.atomic import write_bytes
from saccade.cache import cache_home
from saccade.errors import DataError, OutputError

MOST = 1 << 18
"""Files that the index remembers at most: 8 MB."""

_INDEX = "contents.index"
_HEADER = b"saccade contents 1\n"
_EACH = 16  # bytes of a key, and of a digest
_CHECK = 32  # bytes of the SHA-256 behind the entries
_SETTLED_NS = 1_000_000_000
_CHUNK = 1 << 20

_Entries = dict[bytes, bytes]
"""Where and when a file was → its digest, in the order in which they were used last."""


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
    index = cache_home() / _INDEX
    known = _read_index(index)
    digests: list[str] = []
    fresh: _Entries = {}

    def found(path: Path) -> tuple[bytes | None, bytes | None]:
        try:
            return _digest(path, known)
        except DataError:
            if unreadable is None:
                raise
            return None, None

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for key, digest in pool.map(found, paths):
            digests.append(str(unreadable) if digest is None else digest.hex())
            if key is not None and digest is not None and key not in known:
                fresh[key] = digest
            progress(len(digests), len(paths))
    if fresh:
        _add_to_index(index, fresh)
    return digests


def files_digest(paths: Iterable[Path]) -> str:
    """One digest of the contents of files, in their order: it changes when a picture does, whatever they are called."""
    return hashlib.sha256(json.dumps(content_digests(list(paths))).encode()).hexdigest()[:32]


def _digest(path: Path, known: _Entries) -> tuple[bytes | None, bytes]:
    """Where and when the file was (None: it must not be remembered), and its digest."""
    try:
        before = path.stat()
        if not stat.S_ISREG(before.st_mode):
            raise DataError(f"{path}: not a regular file; name a picture")
        key = _key(path, before)
        if key in known:
            return key, known[key]
        with path.open("rb") as file:
            digest = hashlib.blake2b(digest_size=_EACH)
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
            after = os.fstat(file.fileno())
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}); check the path") from error
    changed = max(after.st_mtime_ns, after.st_ctime_ns)
    is_settled = _key(path, after) == key and changed <= time.time_ns() - _SETTLED_NS
    return key if is_settled else None, digest.digest()


def _key(path: Path, found: os.stat_result) -> bytes:
    facts = [os.path.abspath(path), found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev, found.st_ctime_ns]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=_EACH).digest()


def _read_index(index: Path) -> _Entries:
    """What the index remembers; nothing where it is not there, or damaged."""
    try:
        content = index.read_bytes()
    except OSError:
        return {}
    entries, check = content[len(_HEADER) : -_CHECK], content[-_CHECK:]
    if not content.startswith(_HEADER) or hashlib.sha256(_HEADER + entries).digest() != check:
        return {}
    step = 2 * _EACH
    return {entries[at : at + _EACH]: entries[at + _EACH : at + step] for at in range(0, len(entries), step)}


def _add_to_index(index: Path, fresh: _Entries) -> None:
    """Add entries behind those that are there by now; the oldest make room."""
    entries = {key: digest for key, digest in _read_index(index).items() if key not in fresh} | fresh
    newest = list(entries.items())[-MOST:]
    content = _HEADER + b"".join(key + digest for key, digest in newest)
    try:
        write_bytes(index, content + hashlib.sha256(content).digest())
    except OutputError:
        return  # files will be read again next time; whoever needs the folder will say what is wrong with it
