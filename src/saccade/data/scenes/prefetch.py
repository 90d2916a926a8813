"""The next one while this one is used: work of the data side done in the background, beside training.

On CUDA the work runs on a stream of its own. What it made is handed over by an event; and its memory is safe to use
again because each start waits until the main stream has passed the point at which it was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Generic, TypeVar

import torch

Made = TypeVar("Made")


class Prefetcher(Generic[Made]):
    """Makes one numbered thing in advance; one at a time.

    Args:
        make: number → the thing; a function of the number alone.
        device: where it is made.
    """

    def __init__(self, make: Callable[[int], Made], device: torch.device) -> None:
        self._make, self._device = make, device
        self._worker: ThreadPoolExecutor | None = None
        self._stream: torch.cuda.Stream | None = None
        self._coming: tuple[int, Future[tuple[Made, torch.cuda.Event | None]]] | None = None

    def start(self, number: int) -> None:
        """Begin to make ``number``, unless that has begun already."""
        if self._coming is not None and self._coming[0] == number:
            return
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="ahead")
        now = None
        if self._device.type == "cuda":
            # torch has no types here
            self._stream = self._stream or torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
            now = torch.cuda.current_stream(self._device).record_event()
        self._coming = number, self._worker.submit(self._work, number, now)

    def take(self, number: int) -> Made:
        """The thing called ``number``: the one begun, once it is ready, or one made now."""
        coming, self._coming = self._coming, None
        if coming is None or coming[0] != number:
            return self._make(number)
        made, ready = coming[1].result()
        if ready is not None:
            torch.cuda.current_stream(self._device).wait_event(ready)
        return made

    def _work(self, number: int, not_before: torch.cuda.Event | None) -> tuple[Made, torch.cuda.Event | None]:
        with torch.no_grad(), torch.cuda.stream(self._stream) if self._stream is not None else nullcontext():
            if self._stream is not None and not_before is not None:
                self._stream.wait_event(not_before)
            made = self._make(number)
            return made, None if self._stream is None else self._stream.record_event()
