"""Processes that are killed, and what they leave."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

KILLED_AT = """
import os, signal, sys
from pathlib import Path
from saccade import files

def kill_at(name, number):
    real, calls = getattr(os, name), []
    def counted(*given):
        calls.append(1)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given)
    setattr(os, name, counted)

path = Path(sys.argv[3])
kill_at(sys.argv[1], int(sys.argv[2]))
if sys.argv[4] == "file":
    files.write_text(path, "new")
else:
    with files.folder_in_place(path) as draft:
        (draft / "x").write_text("new")
"""


def run(code: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False, timeout=60
    )


def killed_while_writing(path: Path, *, call: str, number: int, kind: str) -> None:
    """Let a process write ``path`` (a file or a folder) and die by SIGKILL at the n-th call of a function of os."""
    done = run(KILLED_AT, call, number, path, kind)
    assert done.returncode == -9, done.stderr
