"""Files here and elsewhere: a path, or a URI of any store that fsspec knows (s3://, gs://, hf://, memory:// …)."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from saccade.atomic import make_folder, write_bytes, writing
from saccade.errors import DataError, OutputError
from saccade.untrusted import open_regular, read_regular

MAX_BYTES = 512 << 20
"""Largest picture file, in bytes."""


def is_remote(uri: str) -> bool:
    """Whether ``uri`` names a store.

    >>> is_remote("s3://bucket/a.png"), is_remote("/data/a.png"), is_remote("file:///data/a.png")
    (True, False, False)
    """
    return "://" in uri and not uri.startswith("file://")


def local(uri: str) -> Path:
    """A path of this machine."""
    return Path(uri.removeprefix("file://"))


def store_of(uri: str) -> tuple[Any, str]:
    """The fsspec file system of ``uri``, and the path in it."""
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(uri)
    except (ImportError, ValueError) as error:  # no such kind of store, or its package is missing
        raise DataError(f"{uri}: {' '.join(str(error).split())[:200]}") from error
    return system, path


@contextmanager
def reached(uri: str) -> Iterator[None]:
    """Turn what a store raises into a DataError about ``uri``: stores raise what they like."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{uri}: no such file; check the address") from error
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise DataError(f"{uri}: cannot be read ({reason})") from error


def read_file(uri: str, most: int = MAX_BYTES) -> bytes:
    """The bytes of a file; a DataError where there is none, or it has more than ``most``."""
    if not is_remote(uri):
        try:
            return read_regular(local(uri), most)
        except OSError as error:
            raise DataError(f"{uri}: cannot be read ({error.strerror or error})") from error
    system, path = store_of(uri)
    with reached(uri):
        size = system.size(path) or 0
        if size > most:
            raise DataError(f"{uri}: {size:,} bytes, and at most {most:,} are allowed")
        return bytes(system.cat_file(path))


def open_file(uri: str) -> BinaryIO:
    """A file that is read from its start, and can be sought in."""
    if not is_remote(uri):
        try:
            return open_regular(local(uri))
        except OSError as error:
            raise DataError(f"{uri}: cannot be read ({error.strerror or error})") from error
    system, path = store_of(uri)
    with reached(uri):
        opened: BinaryIO = system.open(path, "rb")
        return opened


def listed(uri: str) -> list[tuple[str, str]]:
    """Files of a store that ``uri`` means, with their stamps: one file, a folder through and through, or a glob."""
    system, path = store_of(uri)
    scheme = uri.split("://")[0]
    with reached(uri):
        if glob.has_magic(path):
            found = system.glob(path, detail=True)
        elif system.isdir(path):
            found = system.find(path, detail=True)
        else:
            found = {path: system.info(path)}
    files = {name: info for name, info in found.items() if info.get("type", "file") == "file"}
    return [(f"{scheme}://{name.lstrip('/')}", _stamp(info)) for name, info in sorted(files.items())]


def _stamp(info: dict[str, object]) -> str:
    keys = ("ETag", "etag", "md5Hash", "crc32c", "checksum", "LastModified", "last_modified", "mtime", "created")
    return f"{info.get('size')}-{next((info[key] for key in keys if info.get(key)), '')}"


class Folder:
    """A folder for output, here or in a store; a file in it is whole or not there."""

    def __init__(self, where: str) -> None:
        self.where = where.rstrip("/")
        self._is_remote = is_remote(where)
        if self._is_remote:
            self._system, self._root = store_of(self.where)
        else:
            self.path = local(self.where)

    @property
    def is_remote(self) -> bool:
        """Whether it lies in a store."""
        return self._is_remote

    def make(self) -> None:
        """Make it, where stores have folders at all."""
        if not self._is_remote:
            make_folder(self.path)

    def names(self) -> list[str]:
        """Names of its files; none if there is no such folder."""
        if not self._is_remote:
            with writing(self.path):
                return sorted(file.name for file in self.path.iterdir()) if self.path.exists() else []
        with reached(self.where):
            self._system.invalidate_cache()
            if not self._system.isdir(self._root):
                return []
            return sorted(PurePosixPath(name).name for name in self._system.ls(self._root, detail=False))

    def has(self, name: str) -> bool:
        """Whether there is a file of that name."""
        if not self._is_remote:
            return (self.path / name).is_file()
        with reached(self.where):
            self._system.invalidate_cache()
            return bool(self._system.exists(f"{self._root}/{name}"))

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all: stores put an object as a whole."""
        if not self._is_remote:
            write_bytes(self.path / name, data)
            return
        try:
            self._system.pipe_file(f"{self._root}/{name}", data)
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise OutputError(f"cannot write {self.where}/{name}: {reason}") from error

    def remove(self, name: str) -> None:
        """Remove a file; it may be gone."""
        if not self._is_remote:
            with writing(self.path):
                (self.path / name).unlink(missing_ok=True)
        elif self.has(name):
            with reached(self.where):
                self._system.rm_file(f"{self._root}/{name}")

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return read_file(f"{self.where}/{name}", most=1 << 40)

    def open(self, name: str) -> BinaryIO:
        """A file, to be read bit by bit."""
        return open_file(f"{self.where}/{name}")
