"""Files and folders that are either whole or not there: written beside their place, flushed, then moved into it.

Every failure to write (full disk, read-only folder, a file where a folder should be) becomes an OutputError that
names the place and what to do.

What is being written is called ``.NAME.HOST-PID-RANDOM.part``. A killed process leaves its ``.part`` behind; the first
write of a later process into the same folder removes it. A folder that is replaced is called ``….old`` for a moment. If
its writer was killed in that moment, :func:`recover` puts a whole folder in place again.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from saccade.errors import OutputError

_REMEDY = {
    errno.ENOSPC: "the disk is full; free some space or choose another place",
    errno.EFBIG: "the file is larger than this process or this file system may write; see 'ulimit -f'",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another place",
    errno.EROFS: "the place is read-only; choose another one",
    errno.EACCES: "permission denied; choose a place you may write to",
    errno.EPERM: "permission denied; choose a place you may write to",
    errno.ENOTDIR: "the path, or a part of it, is a file, not a folder",
    errno.EISDIR: "it is a folder, not a file",
    errno.EEXIST: "a file of that name is in the way of the folder",
    errno.ENAMETOOLONG: "the name is too long",
}
_HOST = re.sub(r"\W", "_", socket.gethostname())[:40]
_DRAFT = re.compile(r"\.(?P<name>.+)\.\w+-\d+-\w+\.(part|old)", re.DOTALL)  # .NAME.HOST-PID-RANDOM.part
_NO_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EACCES}  # a file system without it; a folder that may not be read
_NAME_SHOWN = 40  # characters of a name in that of its draft: both must fit into 255 bytes
_swept: set[str] = set()
"""Folders in which this process has looked for drafts of dead writers."""


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


@contextmanager
def growing(path: Path, *, keep_partial: bool = True) -> Iterator[Path]:
    """A file that is written bit by bit beside ``path``, and takes its place in the end.

    Readers of ``path`` see the old file or the new one. Who deletes the file that is handed out keeps the old one.
    ``keep_partial``: after an error inside, what was written so far takes its place too.
    """
    make_folder(path.parent)
    _sweep_once(path.parent)
    with writing(path):
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(path.name[:_NAME_SHOWN]), suffix=".part")
        os.close(descriptor)
        draft = Path(name)
        try:
            try:
                yield draft
            except BaseException:
                if not keep_partial:
                    draft.unlink()
                raise
            finally:
                if draft.exists():
                    _sync_file(draft)
                    os.chmod(draft, 0o666 & ~_UMASK)  # mkstemp makes private files; these are ordinary ones
                    os.replace(draft, path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def write_bytes(path: Path, data: bytes) -> Path:
    """Write ``data`` to ``path`` whole or not at all."""
    with growing(path, keep_partial=False) as draft:
        draft.write_bytes(data)
    return path


def write_text(path: Path, text: str) -> Path:
    """Write ``text`` as UTF-8, whole or not at all."""
    return write_bytes(path, text.encode())


def write_json(path: Path, value: object) -> Path:
    """Write ``value`` as indented JSON. NaN is refused, because other JSON readers reject it."""
    return write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_json_by_key(path: Path, values: Mapping[str, object]) -> Path:
    """Write ``values`` as JSON with one line for each key: a third shorter than indented, and diffs tell keys."""
    lines = []
    for key, value in values.items():
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        lines.append(f" {json.dumps(key, ensure_ascii=False)}: {text}")
    return write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


@contextmanager
def folder_in_place(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Fill a temporary folder beside ``path``; on success it becomes ``path`` (replacing an old one), else it goes.

    ``durable`` waits until every file is on the disk. Use it for few, valuable files; it is slow for thousands.
    """
    make_folder(path.parent)
    recover(path)
    _sweep_once(path.parent)
    with writing(path):
        draft = Path(tempfile.mkdtemp(dir=path.parent, prefix=_prefix(path.name), suffix=".part"))
        old = draft.with_suffix(".old")
        try:
            with _named_as(draft, path):
                yield draft
            for file in draft.rglob("*"):
                if durable and file.is_file():
                    _sync_file(file)
            os.chmod(draft, 0o777 & ~_UMASK)
            if path.exists() and not path.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
            if path.exists():
                os.replace(path, old)  # from here to the next rename there is nothing at path: see recover
            if draft.exists() or not path.exists():  # else a reader has recovered it
                os.replace(draft, path)
        except BaseException:
            if old.exists() and not path.exists():
                os.replace(old, path)  # the old folder is better than none
            shutil.rmtree(draft, ignore_errors=True)
            raise
        shutil.rmtree(old, ignore_errors=True)
        sync_folder(path.parent)


def recover(path: Path) -> None:
    """Put a whole folder at ``path`` if its writer was killed between moving the old one away and the new one in.

    The new folder was whole by then, so it is taken; if it is gone, the old one is put back. Call it before ``path`` is
    read. It does nothing if ``path`` is there or if the place cannot be written. A writer that is at work in that very
    moment finds its work done.
    """
    if os.path.lexists(path):
        return
    for old in _drafts(path.parent, ".old"):
        if _name_of(old) == path.name:
            new = old.with_suffix(".part")
            with suppress(OSError):
                os.replace(new if new.is_dir() else old, path)
                shutil.rmtree(old, ignore_errors=True)
            return


def sweep(folder: Path, own: Collection[str] = ()) -> None:
    """Remove the drafts of dead writers from ``folder``, and put folders in place that one left between two renames.

    Args:
        folder: where to look; folders in it are left alone.
        own: names that nobody else can be writing now, because the caller holds a lock: their drafts go whoever began
            them, also on another host.
    """
    for old in _drafts(folder, ".old"):
        path = old.with_name(_name_of(old))
        recover(path)
        if os.path.lexists(path) and _is_left(old, own):  # else it may be the only copy
            shutil.rmtree(old, ignore_errors=True)
    for part in _drafts(folder, ".part"):
        if _is_left(part, own) and not os.path.lexists(part.with_suffix(".old")):  # else it waits to be put in place
            if part.is_dir() and not part.is_symlink():
                shutil.rmtree(part, ignore_errors=True)
            else:
                with suppress(OSError):
                    part.unlink()


def is_draft(name: str) -> bool:
    """Whether a file or folder of this name is something half-written."""
    return _DRAFT.fullmatch(name) is not None


def _prefix(name: str) -> str:
    return f".{name}.{_HOST}-{os.getpid()}-"


def _name_of(draft: Path) -> str:
    """What a draft is to be called in the end."""
    return _DRAFT.sub(r"\g<name>", draft.name)


def _is_left(draft: Path, own: Collection[str]) -> bool:
    """Whether nobody writes the draft any more; a process on another host cannot be seen, so its drafts stay."""
    final = draft
    while is_draft(final.name):  # drafts may be of drafts
        final = final.with_name(_name_of(final))
    if final.name in own:
        return True
    host, pid, _ = draft.suffixes[-2].removeprefix(".").rsplit("-", 2)
    if host != _HOST or os.name == "nt":  # on Windows signal 0 would end the process
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _sweep_once(folder: Path) -> None:
    """Sweep ``folder`` at the first write of this process into it."""
    place = os.path.abspath(folder)
    if place not in _swept and not is_draft(folder.name):
        _swept.add(place)
        sweep(folder)


def _drafts(folder: Path, kind: str) -> list[Path]:
    try:
        return [folder / name for name in sorted(os.listdir(folder)) if name.endswith(kind) and is_draft(name)]
    except (OSError, ValueError):  # a name that no folder can have
        return []


@contextmanager
def _named_as(temporary: Path, path: Path) -> Iterator[None]:
    """Let an OutputError name the file as it was to be called: nobody has heard of the temporary folder."""
    try:
        yield
    except OutputError as error:
        raise OutputError(str(error).replace(str(temporary), str(path))) from error


def _sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Make a rename inside ``path`` last through a power cut, where the system can."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def _read_umask() -> int:
    current = os.umask(0o022)  # it can only be read by setting it
    os.umask(current)
    return current


_UMASK = _read_umask()
"""Read once, while no other thread makes files."""
