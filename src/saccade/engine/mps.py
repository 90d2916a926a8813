"""CUDA MPS: lets kernels of several processes run on one GPU at the same time instead of by turns.

A daemon of one's own, with its own folder of pipes, needs no rights and disturbs nobody. It is started where the
program is installed and none runs, and ended with the runs. Without it the processes share the GPU by time slicing.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
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
    """Environment variables for processes that share a GPU, and how they share it, in words."""
    program = shutil.which(PROGRAM)
    if program is None:
        yield {}, f"by time slicing, because {PROGRAM} is not installed"
        return
    if _asked(program, "get_server_list", os.environ):
        yield {}, "by CUDA MPS, whose daemon runs already"
        return
    folder = Path(tempfile.mkdtemp(prefix="saccade-mps-"))  # a short path: sockets allow 107 characters
    own = {_PIPES: str(folder / "pipe"), _LOGS: str(folder / "log")}
    for place in own.values():
        Path(place).mkdir()
    environment = {**os.environ, **own}
    try:
        if _runs([program, "-d"], environment) and _runs([sys.executable, "-c", _PROBE], environment):
            yield own, "by CUDA MPS, with a daemon of their own"
        else:
            yield {}, f"by time slicing, because {PROGRAM} did not start"
    finally:
        if not _asked(program, "quit -t 10", environment):
            _end(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _end(folder: Path) -> None:
    """End the daemon that wrote its id into ``folder``, if that process is still the daemon."""
    with suppress(OSError, ValueError):
        pid = int((folder / "pipe" / f"{PROGRAM}.pid").read_text(encoding="ascii"))
        if Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").startswith("nvidia-cuda-mps"):
            os.kill(pid, signal.SIGTERM)


def _asked(program: str, command: str, environment: Mapping[str, str]) -> bool:
    """Whether a daemon took the command."""
    return _runs([program], environment, command + "\n")


def _runs(words: list[str], environment: Mapping[str, str], told: str = "") -> bool:
    """Whether a command ends well and in time."""
    # Neither output is a pipe: a daemon that inherits one would keep it open for ever.
    none = subprocess.DEVNULL
    try:
        return not subprocess.run(  # noqa: S603
            words, input=told, env=environment, text=True, timeout=_SECONDS, check=False, stdout=none, stderr=none
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return False
