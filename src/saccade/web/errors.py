"""What the server says when it cannot do what was asked: ``{"error": {"code", "message"}}`` and a status.

Whatever a request can cause ends in a status of the 400s with a sentence for the person who sent it. What remains is
a fault of saccade: it is logged with its traceback and answered with a 500 that tells nothing of the inside.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from saccade.errors import CheckpointError, MissingExtraError, SaccadeError

_LOG = logging.getLogger("saccade.web")
_CODES = {404: "not_found", 405: "method_not_allowed"}
_SHOWN = 3  # faults of a request that one message lists


class ApiError(SaccadeError):
    """A request that is refused, with the status and a word that a script can act on."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code = status, code
        super().__init__(message)


class PlainJson(JSONResponse):
    """JSON in ASCII: half a character (a lone surrogate), which UTF-8 cannot hold, passes as the escape it came as."""

    def render(self, content: object) -> bytes:
        """The bytes of ``content``."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def error_response(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """The one form that every error has."""
    body = {"error": {"code": code, "message": " ".join(message.split())}}
    return PlainJson(body, status, headers=dict(headers or {}))


def install_error_handlers(app: FastAPI) -> None:
    """Give every error of ``app`` its form."""
    for kind in (SaccadeError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _refusal)


async def _refusal(request: Request, error: Exception) -> Response:
    """What is answered when ``error`` ended a request."""
    if isinstance(error, ApiError):
        headers = {"Retry-After": "1"} if error.status in (429, 503) else {}
        return error_response(error.status, error.code, str(error), headers)
    if isinstance(error, (CheckpointError, MissingExtraError)):  # no request can mend a model that is not all there
        _LOG.warning("%s", error)
        return error_response(409, "model_unavailable", problem_of(error))
    if isinstance(error, SaccadeError):
        return error_response(422, "invalid", str(error))
    if isinstance(error, RequestValidationError):
        found = [f"{_place(each['loc'])}: {each['msg']}" for each in error.errors()]
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        return error_response(422, "invalid", f"{'; '.join(found[:_SHOWN])}{more}")
    if isinstance(error, HTTPException):
        code = _CODES.get(error.status_code, "bad_request" if error.status_code < 500 else "internal")
        said = f"there is no {request.url.path} here" if error.status_code == 404 else str(error.detail)
        return error_response(error.status_code, code, said, error.headers)
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(500, "internal", "saccade failed at this; its log says why")


def problem_of(error: CheckpointError | MissingExtraError) -> str:
    """Why a model cannot be loaded, without saying where on this machine it lies."""
    is_here = isinstance(error, CheckpointError)
    return "its folder cannot be loaded; the server's log says why" if is_here else str(error)


def _place(steps: tuple[object, ...]) -> str:
    """Where in the request a fault lies, as in ``digits.0.x``."""
    inner = [str(step) for step in steps if step not in ("body", "query", "path")]
    return ".".join(inner) or "the request"
