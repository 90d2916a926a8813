"""Importing large packages in less time."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from threading import Thread

_of_a_command: list[bool] = []  # empty: the process is not ours alone


@contextmanager
def quick_imports() -> Iterator[None]:
    """No garbage collection inside: importing torch makes half a million objects that stay, and next to no garbage.

    Looking through all of them again and again takes a fifth of the time. In a process that is one command they are not
    looked through later either.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if _of_a_command:
            gc.freeze()
        if was_on:
            gc.enable()


def process_is_a_command() -> None:
    """What is imported from now on stays until the process ends; a program that uses saccade decides for itself."""
    _of_a_command.append(True)


_WITHOUT_TORCH = ("list", "data", "doctor", "report")
"""Verbs that do their work, or most of it, without torch."""


def preload_torch(words: Sequence[str]) -> Thread | None:
    """Begin to load the largest library of torch beside everything else, if a command of these ``words`` needs torch.

    Loading it takes a quarter of the time of ``import torch``, and no Python. It is done in a thread while this one
    imports what else the command needs. Whatever goes wrong is left to ``import torch``, which says what it is.
    """
    verb = next((word for word in words if not word.startswith("-")), None)
    if verb is None or verb in _WITHOUT_TORCH or not {"-h", "--help", "--version"}.isdisjoint(words):
        return None
    spec = find_spec("torch") if sys.platform == "linux" and "torch" not in sys.modules else None
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = os.path.join(spec.submodule_search_locations[0], "lib")
    thread = Thread(target=_load_libraries, args=(folder,), name="preload-torch", daemon=True)
    thread.start()
    return thread


def _load_libraries(folder: str) -> None:
    """Load the libraries as ``import torch`` does first; by a call that lets other threads go on meanwhile."""
    import ctypes

    load = ctypes.CDLL(None).dlopen
    load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
    for name, mode in (("libtorch_global_deps.so", os.RTLD_GLOBAL), ("libtorch_cpu.so", os.RTLD_LOCAL)):
        if os.path.exists(path := os.path.join(folder, name)):
            load(path.encode(), os.RTLD_LAZY | mode)
