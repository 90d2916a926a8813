"""A lock that one process holds at a time, as a file that says who holds it.

The kernel keeps the lock (``flock``) and releases it when the process ends, however it ends. The file holds, as JSON,
which process that is; it is removed when the lock is released, so a file that is found unlocked was left by a process
that was killed. The next process takes that lock and says so.

On a file system without ``flock``, and on Windows, the file itself is the lock. It is free when its process no longer
runs. Where that cannot be seen (on Windows, or for a process on another host) the lock is refused, and the message says
which file to remove. Two processes that start in the same instant may both get such a lock.

Processes that are forked while a lock is held do not hold it: they close it at once, so it ends with their parent.
"""

from __future__ import annotations

import datetime
import errno
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from saccade import owner
from saccade.atomic import writing
from saccade.errors import OutputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # not on Windows

_WITHOUT = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF}
"""What a file system without locks answers."""
_LARGEST = 4096  # bytes of a lock file
_WAIT_SECONDS = 0.2
_held: set[int] = set()


@dataclass(frozen=True)
class Holder:
    """The process that a lock file names."""

    pid: int
    started: int
    host: str
    boot: str
    since: str
    """When it took the lock, in UTC."""

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"

    @property
    def is_elsewhere(self) -> bool:
        """Whether it ran on another machine. The name of a container changes, the kernel under it does not."""
        return self.host != owner.host() and (not self.boot or self.boot != owner.boot())

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, as far as that can be seen without the kernel's lock."""
        restarted = self.boot != owner.boot()
        return not self.is_elsewhere and (restarted or not owner.is_running(self.pid, self.started))


class LockedError(OutputError):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, what: str, *, wait: Callable[[str], None] | None = None) -> Iterator[str]:
    """Hold the lock ``path``; its folder must exist. Gives a remark if it was taken over from a dead process, else "".

    Args:
        path: the lock file.
        what: what the holder does, for messages, such as ``trains into runs/a``.
        wait: called once with who holds the lock, before waiting for it; None: a held lock is refused at once.

    Raises:
        LockedError: another process holds it; the message names the process and its host.
        OutputError: the lock file cannot be written.
    """
    told = False
    while True:
        try:
            descriptor, before = _take(path, what)
            break
        except _BusyError as busy:
            said = f"{busy.holder or 'another process'} {what}"
            if wait is None:
                remedy = "" if busy.by_kernel else f". If it no longer runs, remove {path} and try again"
                raise LockedError(f"{said}; wait for it or stop it{remedy}") from None
            if not told:
                wait(said)
                told = True
            time.sleep(_WAIT_SECONDS)
    pid = os.getpid()
    try:
        yield "" if before is None else f"{before} is gone; its lock {path.name} was taken over"
    finally:
        if os.getpid() == pid:  # not in a process that was forked meanwhile
            _release(path, descriptor)


class _BusyError(Exception):
    """The lock is held."""

    def __init__(self, holder: Holder | None, *, by_kernel: bool) -> None:
        self.holder, self.by_kernel = holder, by_kernel


def _take(path: Path, what: str) -> tuple[int, Holder | None]:
    """The descriptor of the lock, and the dead process that held it before, if any."""
    with writing(path):
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                is_kept = _flock(descriptor)
                if not _is_at(descriptor, path):
                    os.close(descriptor)
                    continue  # its holder removed it while we opened it
                found = _read(descriptor)
                if not is_kept and found is not None and found.is_elsewhere:
                    raise LockedError(
                        f"{found} {what}; from {owner.host()} it cannot be seen whether it still runs. If it does "
                        f"not, remove {path} and try again"
                    )
                if not is_kept and found is not None and not found.is_gone:
                    raise _BusyError(found, by_kernel=False)
                try:
                    _write(descriptor)
                except OSError:  # the disk is full
                    path.unlink(missing_ok=True)
                    raise
            except BaseException:
                os.close(descriptor)
                raise
            _held.add(descriptor)
            return descriptor, found


def _flock(descriptor: int) -> bool:
    """Lock the open file; False where the system has no locks, :class:`_BusyError` where it is locked."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise _BusyError(_read(descriptor), by_kernel=True) from None
    except OSError as error:
        if error.errno in _WITHOUT:
            return False
        raise
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one called ``path``."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False


def _read(descriptor: int) -> Holder | None:
    """Who wrote the lock file; None if it is empty or unreadable."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        found = Holder(**json.loads(os.read(descriptor, _LARGEST)))
    except (ValueError, TypeError, RecursionError):
        return None
    numbers, words = (found.pid, found.started), (found.host, found.boot, found.since)
    is_sound = all(type(each) is int for each in numbers) and all(isinstance(each, str) for each in words)
    return found if is_sound and found.pid > 0 else None


def _write(descriptor: int) -> None:
    pid, now = os.getpid(), datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    holder = Holder(pid, owner.started(pid), owner.host(), owner.boot(), now)
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, json.dumps(asdict(holder)).encode())


def _release(path: Path, descriptor: int) -> None:
    """Remove the file while it is still locked, then let go of it."""
    _held.discard(descriptor)
    with suppress(OSError):
        if fcntl is None:
            os.close(descriptor)  # Windows does not remove a file that is open
            path.unlink()
            return
        if _is_at(descriptor, path):
            path.unlink()
    os.close(descriptor)


def _let_go() -> None:
    """In a forked process: close what the parent holds. This does not unlock it there."""
    for descriptor in _held:
        with suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
