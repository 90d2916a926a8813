"""Returns memory that uploads used to the system.

The C library keeps what was freed, in pieces between what is still in use: after a crowd of uploads a server would hold
100 MB for nothing. glibc can be asked for it back; other C libraries are left alone.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

SECONDS = 5.0
"""Seconds between two trims."""


async def keep_giving_back(requests: Callable[[], int]) -> None:
    """Give back now and then, until cancelled.

    Args:
        requests: how many there were; while there is no new one, nothing is done.
    """
    trim = _trim()
    if trim is None:
        return
    known = requests()
    while True:
        await asyncio.sleep(SECONDS)
        if (now := requests()) != known:
            known = now
            await asyncio.to_thread(trim, 0)


def _trim() -> Callable[[int], int] | None:
    """``malloc_trim`` of glibc."""
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # another C library, Windows
        return None
    return found
