"""The whole application: the API, whose routes are thin calls to the service, the static page and the guard around."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from saccade import __version__
from saccade.errors import CheckpointError, MissingExtraError, SaccadeError, nearest
from saccade.families.registry import families
from saccade.web import schemas
from saccade.web.guard import Guard
from saccade.web.models import problem_of
from saccade.web.page import STATIC, offline_page, panel_files
from saccade.web.pictures import shown_name
from saccade.web.schemas import ApiError, PlainJson, error_response
from saccade.web.service import Service
from saccade.zoo.folders import EXAMPLES

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ErrorBody} for status in (404, 409, 413, 422, 429)
}
_KINDS = {"view.json": "application/json", "strip.png": "image/png", "page.html": "text/html; charset=utf-8"}
_LOG = logging.getLogger("saccade.web")
_CODES = {404: "not_found", 405: "method_not_allowed"}
_SHOWN = 3  # faults of a request that one message lists


def create_app(service: Service, names: Iterable[str] = (), token: str | None = None) -> ASGIApp:
    """The application over ``service``."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="saccade",
        description="Models that answer, and show where they looked.",
        version=__version__,
        openapi_url="/api/openapi.json",
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
    )
    for kind in (SaccadeError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, _refusal)
    app.include_router(api_of(service))

    @app.get("/viewer.html", include_in_schema=False)
    def viewer() -> HTMLResponse:
        """A page without models, which the page fills with what it shows when that is to be taken along."""
        return HTMLResponse(offline_page())

    @app.get("/families/{name}/{module}", include_in_schema=False)
    def panel(name: str, module: str) -> Response:
        """The controls of one family: its panel, what that imports, and its style sheet."""
        family = families().get(name)
        file = None if family is None else panel_files(family).get(module)
        if file is None:
            raise ApiError(404, "unknown_panel", "no family of this name has such a panel")
        kind = "css" if file.suffix == ".css" else "javascript"
        return Response(file.read_bytes(), media_type=f"text/{kind}; charset=utf-8")

    app.mount("/", StaticFiles(directory=STATIC, html=True))
    return Guard(app, service.limits, names, token)


def api_of(service: Service) -> APIRouter:
    """The routes under ``/api``, over ``service``."""
    router = APIRouter(prefix="/api", responses=_ERRORS, default_response_class=PlainJson)

    def add(method: str, path: str, answer: Callable[..., Any], model: type, summary: str) -> None:
        described: dict[int | str, dict[str, Any]] = {200: {"model": model}}
        router.add_api_route(path, answer, methods=[method], response_model=None, responses=described, summary=summary)

    async def example(name: str) -> Response:
        if name not in EXAMPLES:
            raise ApiError(404, "unknown_example", f"no example '{shown_name(name)}': {nearest(name, EXAMPLES)}")
        return FileResponse(EXAMPLES[name].path)

    async def record(record: schemas.Id) -> Response:
        return PlainJson(service.records.find(record).view)

    async def file(record: schemas.Id, form: Literal["view.json", "strip.png", "page.html"]) -> Response:
        stored = service.records.find(record)
        data = await service.studio.run(lambda: stored.file(form))
        # a download, whose name has no character that a request chose freely
        headers = {"Content-Disposition": f'attachment; filename="{stored.stem}.{form.partition(".")[2]}"'}
        return Response(data, media_type=_KINDS[form], headers=headers)

    add("GET", "/models", service.entries, schemas.ModelList, "What can be asked, and of whom")
    add("POST", "/encode", service.encode, schemas.Encoding, "Send a picture, once")
    add("POST", "/ask", service.ask, schemas.View, "Ask about an encoded picture or a scene")
    add("POST", "/edit", service.edit, schemas.View, "Ask with edited attention")
    add("POST", "/ask_all", service.ask_all, schemas.Views, "Ask every question the model knows, in one go")
    add("GET", "/scene", service.material, schemas.SceneMaterial, "What scenes can be made of")
    add("POST", "/scene", service.render, schemas.RenderedScene, "Render a scene, with its truth")
    add("GET", "/records/{record}", record, schemas.View, "An answer given before")
    get = partial(router.get, response_class=Response)
    get("/examples/{name}", summary="A picture that ships with saccade")(example)
    get("/records/{record}/{form}", summary="… as a file for the page, a strip of its looks, or a page")(file)
    return router


async def _refusal(request: Request, error: Exception) -> Response:
    if isinstance(error, ApiError):
        headers = {"Retry-After": "1"} if error.status in (429, 503) else {}
        return error_response(error.status, error.code, str(error), headers)
    if isinstance(error, (CheckpointError, MissingExtraError)):  # no request can mend a model that is not all there
        _LOG.warning("%s", error)
        return error_response(409, "model_unavailable", problem_of(error))
    if isinstance(error, SaccadeError):
        return error_response(422, "invalid", str(error))
    if isinstance(error, RequestValidationError):
        faults = []
        for fault in error.errors():
            place = ".".join(str(step) for step in fault["loc"] if step not in ("body", "query", "path"))
            faults.append(f"{place or 'the request'}: {fault['msg']}")
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        return error_response(422, "invalid", f"{'; '.join(faults[:_SHOWN])}{more}")
    if isinstance(error, HTTPException):
        code = _CODES.get(error.status_code, "bad_request" if error.status_code < 500 else "internal")
        message = f"there is no {request.url.path} here" if error.status_code == 404 else str(error.detail)
        return error_response(error.status_code, code, message, error.headers)
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(500, "internal", "saccade failed at this; its log says why")
