"""A lock that one process holds at a time. The kernel releases it when the process ends, however it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from saccade.atomic import writing
from saccade.errors import OutputError


class LockedError(OutputError):
    """Another process holds the lock."""


@contextmanager
def locked(path: Path, what: str, *, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the lock file ``path``; its folder must exist.

    Args:
        path: the lock file; it goes when the lock is released.
        what: what the holder does, for messages, such as ``trains into runs/a``.
        wait: called once with what the holder does, before waiting for it; None: a held lock is refused at once.

    Raises:
        LockedError: another process holds it.
        OutputError: the lock file cannot be written.
    """
    from filelock import FileLock, Timeout  # not needed by whoever only reads

    lock = FileLock(path, thread_local=False)
    said = f"another process {what}"
    with writing(path):
        try:
            lock.acquire(blocking=False)
        except Timeout:
            if wait is None:
                raise LockedError(f"{said}; wait for it or stop it") from None
            wait(said)
            lock.acquire()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)  # before the release: who waits for this file looks whether it is still there
        lock.release()
