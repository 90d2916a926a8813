"""Checks every request before it is handled, limits its size, and sets the security headers of every response.

A page from elsewhere must not reach a server on the loopback. Such a page can make the browser send requests to
127.0.0.1, and by rebinding a name of its own it can even read the answers. So the Host must be an address or name of
ours, a request that says it comes from another origin is refused, and nothing ever allows another origin to read.

A server that other machines can reach asks for its token. The token is made anew at each start and printed once, in the
address of the page. Opening that address keeps the token in a cookie, so it leaves the address bar; scripts send it as
``Authorization: Bearer …``. It is compared in constant time, so that nobody can guess it letter by letter.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import secrets
import time
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from saccade.web.errors import ApiError, error_response
from saccade.web.serve import Limits

PARAMETER = "token"
"""Name of the token's parameter in the printed address."""


def new_token() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def _cookie(scope: Scope) -> str:
    """Browsers do not keep the cookies of two ports apart, so the name does."""
    server = scope.get("server")
    return f"saccade_{server[1] if server else 0}"


POLICY = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "worker-src 'self'", "style-src 'self'", "connect-src 'self'",
        "img-src 'self' data: blob:", "font-src 'self'", "manifest-src 'self'", "base-uri 'none'", "form-action 'none'",
        "frame-ancestors 'none'",
    )
)  # fmt: skip
"""The page's own scripts and styles, pictures from the API, and nothing else."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
LOG = logging.getLogger("saccade.access")
GONE = 499
_LONGEST = 200  # characters of a path
PICTURE_PATHS = frozenset({"/api/encode"})
"""Where a body may be as large as a picture."""


class Guard:
    """Lets good requests through to ``app`` with their body whole, and refuses the others.

    Args:
        app: what is guarded.
        limits: of bytes.
        names: hosts that the server goes by besides the loopback. An empty name accepts any numeric IP address; DNS
            rebinding cannot fake one.
        token: required of every request; None: everybody who reaches the server may come in.
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
            client = scope.get("client")
            asked = scope["method"], scope.get("raw_path", b"").decode("latin-1") or scope["path"]
            log_request(client[0] if client else "", *asked, response.status, response.length, time.monotonic() - start)

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
        raise ApiError(413, "too_large", f"a request here may hold {limit / (1 << 20):g} MiB; send a smaller one")

    def _check_token(self, scope: Scope, token: bytes) -> Response | None:
        """None for a request that may go on; a redirect for one that brings the token in its address.

        Raises:
            ApiError: the token is missing or wrong.
        """

        def is_right(sent: str) -> bool:
            return hmac.compare_digest(sent.encode("utf-8", "surrogatepass"), token)

        asked = HTTPConnection(scope)
        kind, _, sent = asked.headers.get("authorization", "").partition(" ")
        if kind.casefold() == "bearer" and is_right(sent.strip()):
            return None
        if is_right(asked.cookies.get(_cookie(scope), "")):
            return None
        if scope["method"] != "GET" or not is_right(asked.query_params.get(PARAMETER, "")):
            raise ApiError(
                401,
                "token_wanted",
                "this server needs its token: open the address it printed, or send 'Authorization: Bearer TOKEN'",
            )
        # To the same page without the token in its address, which a cookie holds from now on.
        left = [pair for pair in parse_qsl(scope["query_string"].decode("latin-1")) if pair[0] != PARAMETER]
        path = "/" + quote(scope["path"].lstrip("/\\"))  # "//host" would lead to another site
        response = RedirectResponse(path + (f"?{urlencode(left)}" if left else ""), 303)
        response.set_cookie(_cookie(scope), token.decode(), path="/", httponly=True, samesite="lax")
        return response

    def _check_origin(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._is_ours(_host_name(host)):
            raise ApiError(421, "wrong_host", "this server answers to its own address only; open the one it printed")
        origin = headers.get("origin")
        foreign = origin is not None and origin.partition("://")[2].casefold() != host.casefold()
        if foreign or (headers.get("sec-fetch-site") == "cross-site" and not _is_visit(scope, headers)):
            raise ApiError(403, "wrong_origin", "this server answers its own page and scripts, not other sites")

    def _is_ours(self, name: str) -> bool:
        if name == "localhost" or name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or "" in self._names


def _is_visit(scope: Scope, headers: Headers) -> bool:
    """Whether someone follows a link to the page, which a link anywhere may lead to."""
    is_page = scope["method"] == "GET" and not scope["path"].startswith("/api/")
    return is_page and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


async def _answer(app: ASGIApp, scope: Scope, body: bytes, receive: Receive, response: _ResponseRecorder) -> None:
    """What ``app`` answers to ``body``; given up when the client hangs up."""
    hung_up = asyncio.create_task(_hang_up(receive))
    messages = iter([{"type": "http.request", "body": body}])

    async def replay() -> Message:
        for message in messages:
            return message
        await asyncio.wait((hung_up,))
        return {"type": "http.disconnect"}

    answer = asyncio.ensure_future(app(scope, replay, response))
    try:
        await asyncio.wait((answer, hung_up), return_when=asyncio.FIRST_COMPLETED)
        if answer.done() or response.is_complete:
            await answer
    finally:
        answer.cancel()
        hung_up.cancel()
        await asyncio.wait((answer,))


async def _hang_up(receive: Receive) -> None:
    """Wait for the end of the connection, which comes with that of the answer too."""
    while (await receive())["type"] != "http.disconnect":
        continue


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


def _host_name(host: str) -> str:
    """``host`` without its port, and an IPv6 address without its brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].casefold()
    return host.partition(":")[0].casefold().removesuffix(".")


def log_request(client: str, method: str, path: str, status: int, length: int, seconds: float) -> None:
    """Write the line of one request; what a client chose freely cannot begin a line of its own."""
    if LOG.isEnabledFor(logging.INFO):
        asked = ascii(f"{method} {path}"[:_LONGEST])[1:-1]
        LOG.info('%s "%s" %d %d B %.3f s', client or "-", asked.replace('"', '\\"'), status, length, seconds)


def show_log() -> None:
    """Print the log to stderr from now on."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    LOG.handlers[:] = [handler]
    LOG.setLevel(logging.INFO)
    LOG.propagate = False
