"""Writing so that a crash, a full disk or a kill leaves either the old content or the new, never half of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from saccade.errors import OutputError


@contextmanager
def output_errors(what: Path) -> Iterator[None]:
    """Turn what the operating system says about a place we write to into an `OutputError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(
            f"cannot write {what}: {reason}. Free some space or choose another folder; what was there is untouched"
        ) from error


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file and wait until it is on the disk."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in ``folder`` are on the disk (a no-op where folders cannot be opened)."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(path: Path, content: bytes) -> None:
    """Put ``content`` in place of the file ``path`` in one move."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    with output_errors(path):
        try:
            write_synced(draft, content)
            os.replace(draft, path)
            sync_folder(path.parent)
        finally:
            draft.unlink(missing_ok=True)
