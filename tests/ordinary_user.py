"""Commands run by an ordinary user on places that are not theirs, and on disks without room."""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

NOBODY = 65534
_NEW_MOUNTS, _PRIVATE = 0x00020000, (1 << 14) | (1 << 18)


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    output: str
    left: tuple[str, ...]
    """What its folder holds afterwards."""


def drop_privileges() -> None:
    """Become nobody, if this is root: root may write everywhere."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def may_run_python() -> bool:
    """Whether an ordinary user may start this interpreter; one in the folder of another user it may not."""
    pid = os.fork()
    if pid == 0:
        try:
            drop_privileges()
            os._exit(0 if os.access(sys.executable, os.X_OK) else 1)
        finally:
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0


def limit_files(size: int) -> Callable[[], None]:
    """No file may get larger than this: writing ends in the middle, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def run_as(first: Callable[[], None], *words: object, folder: Path, note: Path) -> Said:
    """Run a command in a forked process after ``first``; a RuntimeError if ``first`` or the command broke down.

    Args:
        first: what changes the process, such as :func:`drop_privileges`.
        words: of the command line.
        folder: of this, what is left is told.
        note: a file that the process may write to.
    """
    note.parent.mkdir(mode=0o777, exist_ok=True)
    note.parent.chmod(0o777)
    told = note.with_name("told")
    told.unlink(missing_ok=True)

    def work() -> None:
        from saccade.commands.door import app

        with told.open("w") as file:  # before there is no room
            first()
            result = CliRunner().invoke(app, [str(word) for word in words])
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)  # no more
            left = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
            json.dump({"code": result.exit_code, "output": result.output, "left": left}, file)

    note.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        try:
            if "torch" in sys.modules:  # its pool of threads does not live through a fork; it is made anew here, once
                sys.modules["torch"].set_num_threads(1)
            work()
            os._exit(0)
        except BaseException:
            note.write_text(traceback.format_exc())
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError(note.read_text() if note.is_file() else "it left no word")
    return Said(**{**json.loads(told.read_text()), "left": tuple(json.loads(told.read_text())["left"])})
