"""Fetches and decodes pictures ahead of the model, in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from saccade.data.pictures.reading import PIXEL_LIMIT, THREADS, Picture, pixels_waiting, read_picture
from saccade.errors import DataError
from saccade.scale.entries import Entry

_FETCHING = 4
"""Threads that wait for bytes while others wait for pixels."""


class PictureReader:
    """Reads the pictures of entries, in order.

    Args:
        count: of threads that decode side by side; None: one a core, four at most.
    """

    def __init__(self, count: int | None = None) -> None:
        self._threads = ThreadPoolExecutor((count or THREADS) + _FETCHING, thread_name_prefix="saccade-fetching")

    def read(self, entries: Iterator[Entry], ahead: int) -> Iterator[tuple[Entry, Picture | DataError]]:
        """Each entry with its picture, or with what is wrong with it; at most ``ahead`` are begun at a time."""
        begun: deque[tuple[Entry, Future[Picture]]] = deque()
        try:
            while True:
                while len(begun) < ahead and pixels_waiting(job for _, job in begun) < PIXEL_LIMIT // 2:
                    entry = next(entries, None)
                    if entry is None:
                        break
                    begun.append((entry, self._threads.submit(self._picture, entry)))
                if not begun:
                    return
                entry, future = begun.popleft()
                try:
                    found: Picture | DataError = future.result()
                except DataError as error:
                    found = error
                yield entry, found
        finally:
            for _, waiting in begun:
                waiting.cancel()

    def _picture(self, entry: Entry) -> Picture:
        return read_picture(entry.load(), name=entry.source)

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def __enter__(self) -> PictureReader:
        return self

    def __exit__(self, *told: Any) -> None:
        self.close()
