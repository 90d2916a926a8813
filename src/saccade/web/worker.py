"""One thread that does one piece of work after the other: a model's queue, with a length and a time limit.

A thread cannot be stopped from outside. Work is given up when it takes too long, or when the client hangs up. What was
given up before it began is never started. What has begun ends at its next :meth:`Worker.check`, and then the next piece
starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from saccade.web.errors import ApiError

Result = TypeVar("Result")


class Cancelled(Exception):  # noqa: N818 (no error: nobody waits for the result)
    """Ends a piece of work whose result is no longer needed."""


class _Piece:
    """A piece of work."""

    is_wanted = True


class Worker:
    """A queue of work for one thread.

    Args:
        name: of what it works for; said when it is too busy.
        waiting: pieces of work in hand at most.
        seconds: for a piece of work, its wait included.
    """

    def __init__(self, name: str, waiting: int, seconds: float) -> None:
        self._name, self._waiting, self._seconds = name, waiting, seconds
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"saccade-{name}")
        self._in_hand = 0
        self._now = _Piece()  # set and read in the thread alone

    async def run(self, work: Callable[[], Result]) -> Result:
        """What ``work`` returns; an ApiError if there is no place for it or it takes too long."""
        if self._in_hand >= self._waiting:
            raise ApiError(429, "busy", f"'{self._name}' has {self._waiting} requests in hand; try again in a moment")
        self._in_hand += 1
        loop = asyncio.get_running_loop()
        piece = _Piece()
        job: Future[Result] = self._thread.submit(self._do, piece, work)
        job.add_done_callback(lambda _: self._let_go(loop))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), self._seconds)  # cancels a job that has not begun
        except TimeoutError as error:
            raise ApiError(
                503, "too_slow", f"'{self._name}' did not answer within {self._seconds:g} s; try again later"
            ) from error
        finally:
            piece.is_wanted = False

    def check(self) -> None:
        """Go on if the piece of work in hand is still wanted; called by that piece itself."""
        if not self._now.is_wanted:
            raise Cancelled

    def _do(self, piece: _Piece, work: Callable[[], Result]) -> Result:
        self._now = piece
        self.check()
        return work()

    def _let_go(self, loop: asyncio.AbstractEventLoop) -> None:
        """One piece less in hand; counted in the event loop's own thread."""
        try:
            loop.call_soon_threadsafe(self._count_down)
        except RuntimeError:  # the loop is closed: the server has ended
            self._count_down()

    def _count_down(self) -> None:
        self._in_hand -= 1

    def close(self) -> None:
        """Take no more work; what waits is given up."""
        self._thread.shutdown(wait=False, cancel_futures=True)
