"""Connections: how long one may take to send a request and to read the answer, and how many there are at most.

uvicorn waits forever for the rest of a header, so a thousand half-sent ones would stay. Here a timer ends them.
When all places are taken, a new connection takes the place of the one that has been idle longest; only if every one of
them has a request in hand is the new one told to come back.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from saccade.web.access_log import log_request
from saccade.web.errors import error_response
from saccade.web.guard import HEADERS
from saccade.web.limits import Limits


def protocol_of(limits: Limits) -> type[H11Protocol]:
    """The protocol under ``limits``; uvicorn makes one object for each connection."""

    class LimitedProtocol(_LimitedProtocol):
        limited_by = limits

    return LimitedProtocol


class _LimitedProtocol(H11Protocol):
    limited_by: Limits

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._header_timer: asyncio.TimerHandle | None = None
        self._writing_timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether no request is in hand."""
        return self.cycle is None or self.cycle.response_complete

    # uvicorn gives this kind
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, if need be that of another."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        if len(self.connections) > self.limited_by.connections and not self._make_room():
            self._refuse(
                503, "busy", f"all {self.limited_by.connections} connections are in use; try again in a moment"
            )
            return
        self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        """Bytes of a request. The timer runs from the first byte of a header. Later bytes do not restart the timer."""
        if self.transport.is_closing():
            return
        if self.is_idle:
            self._start_header_timer()
        super().data_received(data)
        if not self.is_idle:
            self._stop_header_timer()

    def on_response_complete(self) -> None:
        """Idle from now on, unless the next request is there already."""
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if not self.is_idle:
            self._stop_header_timer()
        elif self.conn.trailing_data[0]:  # the next header has begun
            self._start_header_timer()
        if self.transport.is_closing():  # with something left to send, to one who may never read it
            self.pause_writing()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        if self._writing_timer is None:
            self._writing_timer = self.loop.call_later(self.limited_by.writing_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        if self._writing_timer is not None and not self.transport.is_closing():
            self._writing_timer.cancel()
            self._writing_timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The end of it."""
        for timer in (self._header_timer, self._writing_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP, in the form that all errors have."""
        self._refuse(400, "bad_request", "this is not an HTTP request")

    def _should_upgrade(self) -> bool:
        return False  # without the warnings of uvicorn; the guard refuses web sockets

    def _make_room(self) -> bool:
        """End the connection that has been idle longest; False if all have work."""
        others = (each for each in self.connections if each is not self and not each.transport.is_closing())
        idle = [each for each in others if isinstance(each, _LimitedProtocol) and each.is_idle]
        if not idle:
            return False
        min(idle, key=lambda each: each._idle_since).transport.abort()
        return True

    def _header_late(self) -> None:
        self._header_timer = None
        seconds = self.limited_by.header_seconds
        self._refuse(408, "too_slow", f"the header of the request did not arrive within {seconds:g} s")

    def _refuse(self, status: int, code: str, message: str) -> None:
        """Answer without having a request, and hang up."""
        if self.transport.is_closing():
            return
        headers = {**HEADERS, "Connection": "close", **({"Retry-After": "1"} if status == 503 else {})}
        response = error_response(status, code, message, headers)
        lines = [f"HTTP/1.1 {status} ".encode(), *(name + b": " + value for name, value in response.raw_headers)]
        body = bytes(response.body)
        self.transport.write(b"\r\n".join([*lines, b"", body]))
        self.transport.close()
        log_request(self.client[0] if self.client else "", "-", "-", status, len(body), 0.0)

    def _start_header_timer(self) -> None:
        if self._header_timer is None:
            self._header_timer = self.loop.call_later(self.limited_by.header_seconds, self._header_late)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None
