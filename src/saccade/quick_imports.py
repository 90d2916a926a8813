"""Makes the import of large packages faster."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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
