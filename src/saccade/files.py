"""Files: written whole or not at all, read as a stranger's, and known by their digest.

**Writing.** A file or folder is written beside its place as ``.NAME.RANDOM.saccade-part``, then moved into it. A
failure to write becomes an OutputError that names the place and a remedy. A later writer removes drafts of killed
processes that are a week old. A replaced folder is called ``….saccade-old`` for a moment; if its writer was killed
then, :func:`recover` puts a whole folder in place again.

**Reading.** Files have to be regular (no pipe or device) and of a bounded size, plain values of a bounded depth,
tensors of known shapes and digest. Refusals are OSError or ValueError; the caller adds the name of the file.

**The cache folder** holds downloads, each known by its digest.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from saccade.errors import CheckpointError, OutputError

if TYPE_CHECKING:
    from torch import Tensor

_REMEDY = {
    errno.ENOSPC: "the disk is full; free some space or choose another place",
    errno.EFBIG: "the file is larger than this process or this file system may write; see 'ulimit -f'",
    errno.EDQUOT: "the disk quota is used up; free some space or choose another place",
    errno.EROFS: "the place is read-only; choose another one",
    errno.EACCES: "permission denied; choose a place you may write to",
    errno.EPERM: "permission denied; choose a place you may write to",
    errno.ENOTDIR: "the path, or a part of it, is a file, not a folder",
    errno.EEXIST: "a file of that name is in the way of the folder",
}
_PART, _OLD = ".saccade-part", ".saccade-old"
_WEEK = 7 * 24 * 3600.0
_NAME_SHOWN = 40  # characters of a name in that of its draft: both must fit into 255 bytes
_UMASK = os.umask(0o022)  # it can only be read by setting it: once, while no other thread makes files
os.umask(_UMASK)
_swept: set[str] = set()  # Folders in which this process has looked for old drafts.


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn any OSError inside into an OutputError about ``path``."""
    try:
        yield
    except OSError as error:
        remedy = _REMEDY.get(error.errno or 0, error.strerror or str(error))
        raise OutputError(f"cannot write {path}: {remedy}") from error


def make_folder(path: Path) -> Path:
    """The folder ``path``, made if it is not there; at the first use, old drafts in it are removed."""
    with writing(path):
        path.mkdir(parents=True, exist_ok=True)
    place = os.path.abspath(path)
    if place not in _swept:
        _swept.add(place)
        sweep(path)
    return path


@contextmanager
def growing(path: Path, *, keep_partial: bool = True) -> Iterator[Path]:
    """A file that is written bit by bit beside ``path``, and takes its place in the end.

    ``keep_partial``: after an error inside, what was written so far takes its place too.
    """
    make_folder(path.parent)
    with writing(path):
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:_NAME_SHOWN]}.", suffix=_PART)
        os.close(descriptor)
        draft, is_kept = Path(name), keep_partial
        try:
            try:
                yield draft
                is_kept = True
            finally:
                if is_kept and draft.exists():
                    _sync_file(draft)
                    os.chmod(draft, 0o666 & ~_UMASK)  # mkstemp makes private files; these are ordinary ones
                    os.replace(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(path.parent)


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
    """Write ``values`` as JSON with one line for each key."""
    lines = []
    for key, value in values.items():
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        lines.append(f" {json.dumps(key, ensure_ascii=False)}: {text}")
    return write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


@contextmanager
def folder_in_place(path: Path, *, durable: bool = True) -> Iterator[Path]:
    """Fill a temporary folder beside ``path``; on success it becomes ``path`` (replacing an old one), else it goes.

    ``durable`` waits until every file is on the disk.
    """
    recover(path)
    make_folder(path.parent)
    with writing(path):
        draft = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}.", suffix=_PART))
        old = draft.with_suffix(_OLD)
        try:
            yield draft
            for file in draft.rglob("*") if durable else ():
                if file.is_file():
                    _sync_file(file)
            os.chmod(draft, 0o777 & ~_UMASK)
            if path.is_dir():
                os.replace(path, old)  # from here to the next rename there is nothing at path: see recover
            if draft.exists() or not path.exists():  # else a reader has recovered it
                os.replace(draft, path)
        finally:
            if old.exists() and not path.exists():
                os.replace(old, path)  # the old folder is better than none
            shutil.rmtree(draft, ignore_errors=True)
            shutil.rmtree(old, ignore_errors=True)
        _sync_folder(path.parent)


def recover(path: Path) -> None:
    """Put a whole folder at ``path`` if its writer was killed between moving the old one away and the new one in.

    The new folder is taken; if it is gone, the old one is put back. Call it before ``path`` is read.
    """
    with suppress(OSError, ValueError):  # a name that no folder can have
        if not os.path.lexists(path):
            for old in path.parent.glob(f".{glob.escape(path.name)}.*{_OLD}"):
                if _place(old).name != path.name:
                    continue  # of "a.b", where "a" is looked for
                new = old.with_suffix(_PART)
                os.replace(new if new.is_dir() else old, path)
                shutil.rmtree(old, ignore_errors=True)


def sweep(folder: Path, *, everything: bool = False, names: Collection[str] = ()) -> None:
    """Remove drafts from ``folder`` that are a week old; of what a lock guards all: ``everything``, or ``names``."""
    for draft in [*folder.glob(f".*{_OLD}"), *folder.glob(f".*{_PART}")]:
        with suppress(OSError, ValueError):
            if draft.suffix == _OLD:
                recover(_place(draft))
                if not os.path.lexists(_place(draft)):
                    continue  # it may be the only copy
            if everything or _place(draft).name in names or time.time() - draft.lstat().st_mtime > _WEEK:
                shutil.rmtree(draft) if draft.is_dir() else draft.unlink()


def _place(draft: Path) -> Path:
    return draft.with_name(draft.name[1:].rsplit(".", 2)[0])


def is_draft(name: str) -> bool:
    """Whether a file or folder of this name is something half-written."""
    return name.endswith((_PART, _OLD))


@contextmanager
def locked(path: Path, what: str, *, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock file ``path``, whose folder must exist; the kernel releases it when the process ends.

    ``what`` the holder does, as in ``trains into runs/a``, is passed to ``wait``, which is called once before waiting,
    or else named by an OutputError at once.
    """
    from filelock import FileLock, Timeout  # not needed by whoever only reads

    lock = FileLock(path, thread_local=False)
    busy = f"another process {what}"
    with writing(path):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            if wait is None:
                raise OutputError(f"{busy}; wait for it or stop it") from None
            wait(busy)
            lock.acquire()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before the release: who waits for this file looks whether it is still there
        lock.release()


def _sync_folder(path: Path) -> None:
    """Make a rename inside ``path`` last through a power cut, where the file system can."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sync_file(path: Path) -> None:
    with path.open("rb+") as file:
        os.fsync(file.fileno())


MAX_TEXT = 16 * 2**20  # Bytes of a JSON or YAML file; those that saccade writes have a few megabytes at most.
DEEPEST = 64  # Levels of nested lists and mappings.
MAX_PIXELS = 64_000_000  # No picture, and no map over one, has more: a wrong size must not use up the memory.
LOWEST_INT, HIGHEST_INT = -(2**63), 2**63 - 1  # What 64 bits hold; torch and other readers of JSON take no more.

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
    why = "Is a directory" if stat.S_ISDIR(mode) else "not a regular file, but a pipe or a device"
    if stat.S_ISREG(mode):
        why = f"{size:,} bytes, and at most {most:,} are allowed"
    raise OSError(errno.EINVAL, why)


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
    """Plain values from JSON, with options of :func:`json.loads`; a ValueError where there are none."""
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

    U+DC80 … U+DCFF pass: Python uses them for file-name bytes that are not UTF-8.

    >>> check_text("caf\u00e9")
    """
    if "\0" in text or (
        not text.isascii() and any("\ud800" <= letter < "\udc80" or "\udcff" < letter <= "\udfff" for letter in text)
    ):
        raise ValueError(f"text that holds NUL or half of a surrogate pair: {text[:40]!a}")


MAX_FILE = 2 * 2**30  # Bytes of a file of tensors; 500 million numbers as float32.


class Entry(NamedTuple):
    """What a header says of one tensor."""

    dtype: str  # As safetensors writes it: ``F32``, ``I64`` …
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


def verify_digest(path: Path, sha256: str, most: int = MAX_FILE) -> None:
    """Raise a CheckpointError unless ``path`` is a regular file of at most ``most`` bytes with this SHA-256."""
    with _reading(path), open_regular(path, most) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != sha256:
            raise ValueError(f"damaged: SHA-256 {digest[:12]}…, expected {sha256[:12]}…")


def read_header(path: Path, sha256: str, most: int = MAX_FILE) -> dict[str, Entry]:
    """Type and shape of each tensor of the file ``path``, whose SHA-256 must be ``sha256``. No number is read."""
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


def cache_home() -> Path:
    """Where downloads live: the environment's ``SACCADE_HOME``, else ``~/.cache/saccade``."""
    return Path(os.environ.get("SACCADE_HOME") or Path.home() / ".cache" / "saccade").expanduser()


@dataclass(frozen=True)
class RemoteFile:
    """A file of others, known by its decompressed content."""

    name: str
    size: int
    sha256: str

    def is_at(self, path: Path) -> bool:
        """Whether ``path`` is this file, to the last byte; False also for a file that may not be read."""
        try:
            return path.is_file() and path.stat().st_size == self.size and file_digest(path) == self.sha256
        except OSError:
            return False


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


REGISTERED: dict[str, Any] = json.loads(Path(__file__).with_name("downloads.json").read_text(encoding="utf-8"))
# What ``saccade data get NAME`` brings, by that name, which is also their folder in the cache.
FILES = {name: tuple(RemoteFile(**file) for file in entry["files"]) for name, entry in REGISTERED.items()}
WEIGHTS = {name: files[0] for name, files in FILES.items() if name.endswith("-imagenet")}
METEOR = "meteor"  # What ``saccade data get`` calls the program METEOR 1.5, and its folder in the cache.
METEOR_JAR, METEOR_PARAPHRASES = FILES[METEOR]
