"""The whole application: the API, whose routes are thin calls to the service, the static page and the guard around."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from saccade import __version__
from saccade.data.files import EXAMPLES
from saccade.errors import nearest
from saccade.families import families
from saccade.web import schemas
from saccade.web.errors import ApiError, PlainJson, install_error_handlers
from saccade.web.family_page import family_modules
from saccade.web.guard import Guard
from saccade.web.page import offline_page
from saccade.web.scenes import backgrounds
from saccade.web.service import Service
from saccade.web.store import StoredAnswer, bytes_of, shown_name

_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": schemas.ErrorBody} for status in (404, 409, 413, 422, 429)
}
STATIC = Path(__file__).parent / "static"


def create_app(service: Service, names: Iterable[str] = (), token: str | None = None) -> ASGIApp:
    """The application over ``service``.

    Args:
        service: models, pictures and answers.
        names: hosts that the server goes by besides the loopback; see :class:`~saccade.web.guard.Guard`.
        token: required of every request; None: no token.
    """

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
    install_error_handlers(app)
    app.include_router(api_of(service))

    @app.get("/viewer.html", include_in_schema=False)
    def viewer() -> HTMLResponse:
        """A page without models, which the page fills with what it shows when that is to be taken along."""
        return HTMLResponse(offline_page())

    @app.get("/families/{name}/{module}", include_in_schema=False)
    def panel(name: str, module: str) -> Response:
        """The controls of one family; only its panel and what that imports can be had."""
        family = families().get(name)
        file = None if family is None else family_modules(family, "panel").get(module)
        if file is None:
            raise ApiError(404, "unknown_panel", "no family of this name has such a panel")
        return Response(file.read_bytes(), media_type="text/javascript; charset=utf-8")

    if STATIC.is_dir():
        app.mount("/", StaticFiles(directory=STATIC, html=True))
    return Guard(app, service.limits, names, token)


def api_of(service: Service) -> APIRouter:
    """The routes under ``/api``, over ``service``."""
    router = APIRouter(prefix="/api", responses=_ERRORS, default_response_class=PlainJson)

    @router.get("/models", response_model=schemas.ModelList, summary="What can be asked, and of whom")
    async def models() -> Response:
        return _told(schemas.ModelList(models=[model.entry() for model in service.models.values()]))

    @router.post("/encode", response_model=schemas.Encoding, summary="Send a picture, once")
    async def encode(sent: schemas.Upload) -> Response:
        return _told(await service.encode(bytes_of(sent.picture), sent.name, sent.model))

    @router.post("/ask", response_model=schemas.View, summary="Ask about an encoded picture or a scene")
    async def ask(asked: schemas.Question) -> Response:
        return PlainJson(await service.ask(asked))

    @router.post("/edit", response_model=schemas.View, summary="Ask with edited attention")
    async def edit(asked: schemas.EditedQuestion) -> Response:
        return PlainJson(await service.edit(asked))

    @router.post("/ask_all", response_model=schemas.Views, summary="Ask every question the model knows, in one go")
    async def ask_all(asked: schemas.Questions) -> Response:
        return PlainJson({"schema": "saccade.views/1", "views": await service.ask_all(asked)})

    @router.get("/scene", response_model=schemas.SceneMaterial, summary="What scenes can be made of")
    async def material() -> Response:
        return _told(schemas.SceneMaterial(backgrounds=await service.studio.run(backgrounds)))

    @router.post("/scene", response_model=schemas.RenderedScene, summary="Render a scene, with its truth")
    async def scene(described: schemas.Scene) -> Response:
        return _told(await service.render(described))

    @router.get("/examples/{name}", response_class=FileResponse, summary="A picture that ships with saccade")
    async def example(name: str) -> Response:
        if name not in EXAMPLES:
            raise ApiError(404, "unknown_example", f"no example '{shown_name(name)}': {nearest(name, EXAMPLES)}")
        return FileResponse(EXAMPLES[name].path)

    @router.get("/records/{record}", response_model=schemas.View, summary="An answer given before")
    async def record(record: schemas.Id) -> Response:
        return PlainJson(service.records.find(record).view)

    @router.get("/records/{record}/view.json", response_model=schemas.View, summary="… as a file for the page")
    async def view_file(record: schemas.Id) -> Response:
        kept = service.records.find(record)
        view = await service.studio.run(lambda: kept.whole_view)
        return _file(kept, json.dumps(view, indent=1).encode("ascii"), "application/json", "json")

    @router.get("/records/{record}/strip.png", response_class=Response, summary="… as a strip of its looks")
    async def strip(record: schemas.Id) -> Response:
        kept = service.records.find(record)
        return _file(kept, await service.studio.run(kept.strip_png), "image/png", "png")

    @router.get("/records/{record}/page.html", response_class=Response, summary="… as a page that opens offline")
    async def page(record: schemas.Id) -> Response:
        kept = service.records.find(record)
        html = await service.studio.run(kept.page)
        return _file(kept, html.encode("utf-8"), "text/html; charset=utf-8", "html")

    return router


def _told(answer: Any) -> Response:
    return PlainJson(answer.model_dump(mode="json", by_alias=True))


def _file(kept: StoredAnswer, data: bytes, kind: str, ending: str) -> Response:
    """A download; its name has no character that a request chose freely."""
    disposition = f'attachment; filename="{kept.stem}.{ending}"'
    return Response(data, media_type=kind, headers={"Content-Disposition": disposition})
