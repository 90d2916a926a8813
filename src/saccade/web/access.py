"""Who may use a server that other machines can reach: those who have its token.

The token is made anew at each start and printed once, in the address of the page. Opening that address keeps the token
in a cookie, so it leaves the address bar; scripts send it as ``Authorization: Bearer …``. It is compared in constant
time, so that nobody can guess it letter by letter.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import Scope

from saccade.web.errors import ApiError

PARAMETER = "token"
"""Name of the token's parameter in the printed address."""


def new_token() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


class Access:
    """Lets requests with ``token`` in."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def check(self, scope: Scope) -> Response | None:
        """None for a request that may go on; a redirect for one that brings the token in its address.

        Raises:
            ApiError: the token is missing or wrong.
        """
        asked = HTTPConnection(scope)
        kind, _, sent = asked.headers.get("authorization", "").partition(" ")
        if kind.casefold() == "bearer" and self._is_right(sent.strip()):
            return None
        if self._is_right(asked.cookies.get(_cookie(scope), "")):
            return None
        if scope["method"] == "GET" and self._is_right(asked.query_params.get(PARAMETER, "")):
            return self._kept(scope)
        raise ApiError(
            401,
            "token_wanted",
            "this server needs its token: open the address it printed, or send 'Authorization: Bearer TOKEN'",
        )

    def _is_right(self, sent: str) -> bool:
        return hmac.compare_digest(sent.encode("utf-8", "surrogatepass"), self._token)

    def _kept(self, scope: Scope) -> Response:
        """To the same page without the token in its address, which a cookie holds from now on."""
        left = [pair for pair in parse_qsl(scope["query_string"].decode("latin-1")) if pair[0] != PARAMETER]
        path = "/" + quote(scope["path"].lstrip("/\\"))  # "//host" would lead to another site
        response = RedirectResponse(path + (f"?{urlencode(left)}" if left else ""), 303)
        response.set_cookie(_cookie(scope), self._token.decode(), path="/", httponly=True, samesite="lax")
        return response


def _cookie(scope: Scope) -> str:
    """Browsers do not keep the cookies of two ports apart, so the name does."""
    server = scope.get("server")
    return f"saccade_{server[1] if server else 0}"
