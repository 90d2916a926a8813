"""CUDA MPS: lets kernels of several processes run on one GPU at the same time instead of by turns.

A private daemon with its own pipe folder needs no special rights and affects no other user. It is started if the
program is installed and no daemon runs, and stopped with the runs. Without it the processes share the GPU by time
slicing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAM = "nvidia-cuda-mps-control"
_PIPES, _LOGS = "CUDA_MPS_PIPE_DIRECTORY", "CUDA_MPS_LOG_DIRECTORY"
_SECONDS = 30
_PROBE = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, device = ctypes.c_void_p(), ctypes.c_int()
sys.exit(bool(cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), 0)
              or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)))
"""


@contextmanager
def shared_gpu() -> Iterator[tuple[dict[str, str], str]]:
    """Environment variables for processes that share a GPU, and how they share it, in words.

    While a daemon of one's own runs, SIGTERM and SIGHUP (the terminal was closed) raise SystemExit in the main thread,
    so that it is ended.
    """
    program = shutil.which(PROGRAM)
    if program is None:
        yield {}, f"by time slicing, because {PROGRAM} is not installed"
        return
    if _daemon(Path(os.environ.get(_PIPES) or "/tmp/nvidia-mps")) is not None:  # noqa: S108 - where CUDA looks for it
        yield {}, "by CUDA MPS, whose daemon runs already"
        return
    folder = Path(tempfile.mkdtemp(prefix="saccade-mps-"))  # a short path: sockets allow 107 characters
    own = {_PIPES: str(folder / "pipe"), _LOGS: str(folder / "log")}
    for place in own.values():
        Path(place).mkdir()
    environment = {**os.environ, **own}
    with _unwind_at_signals():
        try:
            if _runs([program, "-d"], environment) and _runs([sys.executable, "-c", _PROBE], environment):
                yield own, "by CUDA MPS, with a daemon of their own"
            else:
                yield {}, f"by time slicing, because {PROGRAM} did not start"
        finally:
            if not _runs([program], environment, "quit\n") and (pid := _daemon(folder / "pipe")) is not None:
                with suppress(OSError):
                    os.kill(pid, signal.SIGTERM)
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _unwind_at_signals() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP unwind the stack where they would have ended the process."""
    is_main = threading.current_thread() is threading.main_thread()  # elsewhere Python allows no handlers
    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if is_main and hasattr(signal, name)]
    deadly = [number for number in known if signal.getsignal(number) is signal.SIG_DFL]
    for number in deadly:
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        for number in deadly:
            signal.signal(number, signal.SIG_DFL)


def _daemon(pipes: Path) -> int | None:
    """The process of the daemon with these pipes; None if none runs."""
    try:
        pid = int((pipes / f"{PROGRAM}.pid").read_text(encoding="ascii"))
        is_it = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").startswith(PROGRAM[:15])
    except (OSError, ValueError):
        return None
    return pid if is_it else None


def _runs(words: list[str], environment: Mapping[str, str], told: str = "") -> bool:
    """Whether a command ends well and in time."""
    # Neither output is a pipe: a daemon that inherits one would keep it open forever.
    none = subprocess.DEVNULL
    try:
        return not subprocess.run(  # noqa: S603
            words, input=told, env=environment, text=True, timeout=_SECONDS, check=False, stdout=none, stderr=none
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False
