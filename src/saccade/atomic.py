"""Files that are either whole or not there: written beside their place, flushed, then moved into it.

Every failure to write (full disk, read-only folder, a file where a folder should be) becomes an OutputError that
names the place and what to do.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from saccade.errors import OutputError

_REMEDY = {
    errno.ENOSPC: "the disk is full; free some space or choose another place",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another place",
    errno.EROFS: "the place is read-only; choose another one",
    errno.EACCES: "permission denied; choose a place you may write to",
    errno.EPERM: "permission denied; choose a place you may write to",
    errno.ENOTDIR: "the path, or a part of it, is a file, not a folder",
    errno.EISDIR: "it is a folder, not a file",
    errno.EEXIST: "a file of that name is in the way of the folder",
    errno.ENAMETOOLONG: "the name is too long",
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn any OSError inside into an OutputError about ``path``."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDY.get(error.errno or 0, error.strerror or str(error))
        raise OutputError(f"cannot write {path}: {remedy}") from error


def make_folder(path: Path) -> Path:
    """The folder ``path``, made if it is not there."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


def write_bytes(path: Path, data: bytes) -> Path:
    """Write ``data`` to ``path`` whole or not at all."""
    make_folder(path.parent)
    with writing(path):
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o666 & ~_umask())  # mkstemp makes private files; these are ordinary ones
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        sync_folder(path.parent)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write ``text`` as UTF-8, whole or not at all."""
    return write_bytes(path, text.encode())


def write_json(path: Path, value: Any) -> Path:
    """Write ``value`` as indented JSON; NaN is refused, because other readers do."""
    return write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextmanager
def folder_in_place(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Fill a temporary folder beside ``path``; on success it becomes ``path`` (replacing an old one), else it goes.

    ``durable`` waits until every file is on the disk: right for a few that are dear, slow for thousands that can be
    made again.
    """
    make_folder(path.parent)
    with writing(path):
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part"))
        try:
            with _named_as(temporary, path):
                yield temporary
            for file in temporary.rglob("*"):
                if durable and file.is_file():
                    with file.open("rb+") as handle:
                        os.fsync(handle.fileno())
            os.chmod(temporary, 0o777 & ~_umask())
            if path.exists() and not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            if path.exists():
                old = path.with_name(f".{path.name}.old")
                shutil.rmtree(old, ignore_errors=True)
                os.replace(path, old)
                try:
                    os.replace(temporary, path)
                except OSError:
                    os.replace(old, path)  # the old folder is better than none
                    raise
                shutil.rmtree(old, ignore_errors=True)
            else:
                os.replace(temporary, path)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        sync_folder(path.parent)


@contextmanager
def _named_as(temporary: Path, path: Path) -> Iterator[None]:
    """Let an OutputError name the file as it was to be called: nobody has heard of the temporary folder."""
    try:
        yield
    except OutputError as error:
        raise OutputError(str(error).replace(str(temporary), str(path))) from error


def sync_folder(path: Path) -> None:
    """Make a rename inside ``path`` last through a power cut, where the system can."""
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current
