"""One server with tiny models for all tests of its behaviour; tests of limits start their own."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from page_browser import Opened, launched, opened, served
from web_models import LIVE

import saccade
from saccade.web.page import STATIC, offline_page
from tiny_models import save_tiny

DIGITS = tuple(str(digit) for digit in range(4))


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that is asked about digits 0..3, and one that knows other words."""
    folder = tmp_path_factory.mktemp("models")
    save_tiny(folder / "digits", name="digits", queries=DIGITS)
    save_tiny(folder / "words", seed=1, name="words")
    return folder


@pytest.fixture(scope="session")
def server(tiny_folder: Path) -> Iterator[Any]:
    from live_server import serving

    with serving(tiny_folder / "digits", tiny_folder / "words") as running:
        yield running


_STARTED: list[tuple[ExitStack, object]] = []
"""The browser that runs, and how it is ended."""


@pytest.fixture(scope="module")
def browser() -> object:
    """A Chromium for tests of the page; every test opens pages of its own in it."""
    if not _STARTED:
        stack = ExitStack()
        _STARTED.append((stack, stack.enter_context(launched())))
    return _STARTED[0][1]


@pytest.fixture(scope="module")
def run(browser: object) -> Iterator[Callable[..., Any]]:
    """``run(module, body, given)``: what the JavaScript ``body``, which sees a module of the page as ``m``, returns."""
    with served(STATIC) as site, opened(browser, f"{site}/glyphs.png") as page:

        def call(module: str, body: str, given: Any = None) -> Any:
            script = f"async (given) => {{ const m = await import('/js/{module}.js'); {body} }}"
            return page.page.evaluate(script, given)

        yield call


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """The browser ends with the last test of this folder in a row: elsewhere, its event loop would be in the way."""
    try:
        return (yield)
    finally:
        if _STARTED and (nextitem is None or Path(__file__).parent not in nextitem.path.parents):
            _STARTED.pop()[0].close()


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page as a file, with the two models of the tour inside."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(offline_page([saccade.load(name, "cpu") for name in LIVE]), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: object, page_file: Path) -> Iterator[Opened]:
    """That page, opened and answered; modules that watch another page have a fixture of their own."""
    with opened(browser, page_file.as_uri()) as watched:
        watched.wait_for("red", 0)
        watched.wait_for("red", 1)
        yield watched
