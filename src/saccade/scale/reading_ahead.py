"""Fetches and decodes pictures ahead of the model: threads fetch, processes decode, with the limits of untrusted files.

The processes are those of :mod:`saccade.data.pictures.decoder_pool`. They live as long as the reader, over all parts of
a job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from saccade.data.pictures.decoder_pool import DecoderPool, process_count
from saccade.data.pictures.reading import PIXEL_LIMIT, Picture
from saccade.errors import DataError
from saccade.scale.entries import Entry

_FETCHING = 4
"""Threads that wait for bytes while others wait for pixels."""


class PictureReader:
    """Reads the pictures of entries, in order.

    Args:
        processes: that decode side by side; None: one a core, four at most.
    """

    def __init__(self, processes: int | None = None) -> None:
        count = processes or process_count()
        self._pool = DecoderPool(count)
        self._threads = ThreadPoolExecutor(count + _FETCHING, thread_name_prefix="saccade-fetching")

    def read(self, entries: Iterator[Entry], ahead: int) -> Iterator[tuple[Entry, Picture | DataError]]:
        """Each entry with its picture, or with what is wrong with it; at most ``ahead`` are begun at a time."""
        begun: deque[tuple[Entry, Future[Picture]]] = deque()
        try:
            while True:
                while len(begun) < ahead and _pixels(begun) < PIXEL_LIMIT // 2:
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
        image, notes = self._pool.decode(entry.load(), entry.source)
        return Picture(image, entry.source, notes)

    def close(self) -> None:
        """End threads and processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._pool.close()
        self._threads.shutdown(wait=True)

    def __enter__(self) -> PictureReader:
        return self

    def __exit__(self, *told: Any) -> None:
        self.close()


def _pixels(begun: deque[tuple[Entry, Future[Picture]]]) -> int:
    """Decoded pixels that wait in memory."""
    done = (future for _, future in begun if future.done() and future.exception() is None)
    return sum(future.result().size[0] * future.result().size[1] for future in done)
