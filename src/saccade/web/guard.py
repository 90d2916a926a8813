"""What a request may cost, and the guard that checks each one and sets the security headers of every response.

A page from elsewhere can make the browser send requests to 127.0.0.1, and by DNS rebinding read the answers. So the
Host must be ours, and requests from another origin are refused.

A server that other machines can reach asks for its token, made at each start and printed in the address of the page,
which keeps it in a cookie; scripts send it as ``Authorization: Bearer …``. It is compared in constant time.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from saccade.web.schemas import ApiError, error_response

MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bytes, pixels, seconds and places; every one of them can be hit, and then the answer says which."""

    picture_bytes: int = 28 * MEGABYTE  # Largest request with a picture: one of 20 MiB in base64.
    request_bytes: int = MEGABYTE // 4  # Largest request without a picture.
    pixels: int = 32_000_000  # Most pixels of an uploaded picture; its header is checked before it is decoded.
    side: int = 1024  # Pixels of the longer side that are kept of a picture; a larger one is reduced.
    decoders: int = 2  # Processes that decode pictures.
    decoding_seconds: float = 5.0  # For one picture to be decoded; then its process is killed.
    decoding_wait_seconds: float = 15.0  # For a picture to wait until a process is free.
    connections: int = 256  # Open at once; one more is answered with 503.
    answer_seconds: float = 30.0  # For a model to answer, waiting in its queue included.
    waiting: int = 128  # Requests that may wait for one model.
    kept_bytes: int = 48 * MEGABYTE  # Memory for uploaded pictures and rendered scenes; the latest are kept.
    encodings_bytes: int = 8 * MEGABYTE  # Memory for encoded pictures, for each model.
    records: int = 256  # Answers that can be fetched again.
    records_bytes: int = 32 * MEGABYTE  # Memory for those answers.


def server_config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    """How uvicorn runs ``app``."""
    return uvicorn.Config(
        app,
        http="h11",
        limit_concurrency=limits.connections,
        log_level="error",  # what a client does wrong stands in the log of requests
        access_log=False,
        server_header=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=16 << 10,
        ws="none",
    )


HEADERS = {
    # The page's own scripts and styles, pictures from the API, and nothing else.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob:; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
TOKEN = "token"  # noqa: S105 (the name of a parameter)
"""Name of the token's parameter in the printed address."""
LOG = logging.getLogger("saccade.access")
GONE = 499
_LONGEST = 200  # characters of a path
PICTURE_PATHS = frozenset({"/api/encode"})  # Where a body may be as large as a picture.


class Guard:
    """Lets good requests through to ``app`` with their body whole, and refuses the others.

    ``names`` are hosts that the server goes by besides the loopback; an empty name accepts any numeric IP address,
    which DNS rebinding cannot fake. With a ``token``, every request needs it.
    """

    def __init__(self, app: ASGIApp, limits: Limits, names: Iterable[str] = (), token: str | None = None) -> None:
        self._app, self._limits = app, limits
        self._names = {name.casefold() for name in names}
        self._token = None if token is None else token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets here; closing without accepting is a refusal
            await send({"type": "websocket.close", "code": 1008})
            return
        response = _ResponseRecorder(send)
        start = time.monotonic()
        try:
            self._check_origin(scope)
            redirect = None if self._token is None else self._check_token(scope, self._token)
            body = await self._body(scope, receive)
            if body is not None:
                await _answer(redirect or self._app, scope, body, receive, response)
        except ApiError as error:  # of ours; those of the app have become responses
            headers = {"Connection": "close", **({"WWW-Authenticate": "Bearer"} if error.status == 401 else {})}
            await error_response(error.status, error.code, str(error), headers)(scope, receive, response)
        finally:
            path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
            line = ascii(f"{scope['method']} {path}"[:_LONGEST])[1:-1].replace('"', '\\"')  # it cannot begin a new one
            client, seconds = (scope.get("client") or "-")[0], time.monotonic() - start
            LOG.info('%s "%s" %d %d B %.3f s', client, line, response.status, response.length, seconds)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body, which is refused where it is too large; None if the client hangs up meanwhile."""
        limit = self._limits.picture_bytes if scope["path"] in PICTURE_PATHS else self._limits.request_bytes
        declared = Headers(scope=scope).get("content-length", "")
        length, body, is_whole = int(declared[:20]) if declared.isdecimal() else 0, bytearray(), False
        while max(length, len(body)) <= limit:
            if is_whole:
                return bytes(body)
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            is_whole = not message.get("more_body", False)
        raise ApiError(413, "too_large", f"a request here may hold {limit / MEGABYTE:g} MiB; send a smaller one")

    def _check_token(self, scope: Scope, token: bytes) -> Response | None:
        """None for a request that may go on; a redirect for one that brings the token in its address."""

        def is_right(sent: str) -> bool:
            return hmac.compare_digest(sent.encode("utf-8", "surrogatepass"), token)

        request = HTTPConnection(scope)
        kind, _, sent = request.headers.get("authorization", "").partition(" ")
        # Browsers do not keep the cookies of two ports apart, so the name does.
        cookie = f"saccade_{(scope.get('server') or ('', 0))[1]}"
        if (kind.casefold() == "bearer" and is_right(sent.strip())) or is_right(request.cookies.get(cookie, "")):
            return None
        if scope["method"] != "GET" or not is_right(request.query_params.get(TOKEN, "")):
            message = "this server needs its token: open the address it printed, or send 'Authorization: Bearer TOKEN'"
            raise ApiError(401, "token_wanted", message)
        # To the same page without the token in its address, which a cookie holds from now on.
        query = [pair for pair in parse_qsl(scope["query_string"].decode("latin-1")) if pair[0] != TOKEN]
        path = "/" + quote(scope["path"].lstrip("/\\"))  # "//host" would lead to another site
        response = RedirectResponse(path + (f"?{urlencode(query)}" if query else ""), 303)
        response.set_cookie(cookie, token.decode(), path="/", httponly=True, samesite="lax")
        return response

    def _check_origin(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(host):
            raise ApiError(421, "wrong_host", "this server answers to its own address only; open the one it printed")
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2].casefold() != host.casefold()
        # A link anywhere may lead to the page.
        is_page = scope["method"] == "GET" and not scope["path"].startswith("/api/")
        fetched = tuple(headers.get(f"sec-fetch-{name}") for name in ("site", "mode", "dest"))
        is_visit = is_page and fetched[1:] == ("navigate", "document")
        if foreign or (fetched[0] == "cross-site" and not is_visit):
            raise ApiError(403, "wrong_origin", "this server answers its own page and scripts, not other sites")

    def _is_ours(self, host: str) -> bool:
        """Whether ``host``, perhaps with a port, is a name of ours."""
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0].removesuffix(".")
        if name.casefold() in {"localhost", *self._names}:
            return True
        try:
            return ipaddress.ip_address(name).is_loopback or "" in self._names
        except ValueError:
            return False


async def _answer(app: ASGIApp, scope: Scope, body: bytes, receive: Receive, response: _ResponseRecorder) -> None:
    """What ``app`` answers to ``body``; given up when the client hangs up."""

    async def hang_up() -> None:
        while (await receive())["type"] != "http.disconnect":  # it comes with the end of the answer too
            continue

    async def replay() -> Message:
        for message in messages:
            return message
        await asyncio.wait((hung_up,))
        return {"type": "http.disconnect"}

    messages = iter([{"type": "http.request", "body": body}])
    hung_up = asyncio.create_task(hang_up())
    answer = asyncio.ensure_future(app(scope, replay, response))
    try:
        await asyncio.wait((answer, hung_up), return_when=asyncio.FIRST_COMPLETED)
        if answer.done() or response.is_complete:
            await answer
    finally:
        answer.cancel()
        hung_up.cancel()
        await asyncio.wait((answer,))


class _ResponseRecorder:
    """A ``send`` that adds what the browser must know, where the response does not say it itself; and keeps count."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status, self.length, self.is_complete = GONE, 0, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        else:
            self.length += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)
        await self._send(message)
