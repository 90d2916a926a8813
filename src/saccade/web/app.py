"""The whole application: the API, the static page beside it, and the guard around both."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from saccade import __version__
from saccade.families import families
from saccade.web.api import api_of
from saccade.web.errors import ApiError, install_error_handlers
from saccade.web.family_page import family_modules
from saccade.web.guard import Access, Guard
from saccade.web.page import offline_page
from saccade.web.service import Service

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
    return Guard(app, service.limits, names, None if token is None else Access(token))
