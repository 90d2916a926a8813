"""A real Chromium for tests of the page: opened pages are watched, and any error in them fails the test."""

import base64
import functools
import http.server
import io
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import ARGUMENTS, found
from PIL import Image

try:
    from playwright.sync_api import TimeoutError, expect, sync_playwright
except ImportError:  # the tests are skipped when they ask for a browser
    expect = sync_playwright = None

CHROMIUM = found()
REQUIRED = os.environ.get("SACCADE_BROWSER_TESTS") == "required"
"""Set where a missing browser must be a failure and not a skip."""
SAYS = """([number, answer]) => {
  const said = document.querySelectorAll(".lens .answer strong")[number];
  return said !== undefined && said.textContent.trim().replace(/\\s+/g, " ") === answer;
}"""
"""Whether a lens gives an answer."""


@contextmanager
def launched() -> Iterator[Any]:
    """A headless browser; the test is skipped where there is none."""
    if sync_playwright is None or CHROMIUM is None:
        missing = "no Chromium is here" if sync_playwright else "playwright is not installed"
        (pytest.fail if REQUIRED else pytest.skip)(f"{missing}; 'make chromium' brings it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address under which the files of ``folder`` can be loaded."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@dataclass
class Opened:
    """A page with what went wrong in it and what it asked the network for."""

    page: Any
    wrong: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def part(self, name: str) -> Any:
        return self.page.locator(f'[data-part="{name}"]')

    def lens(self, number: int = 0) -> Any:
        return self.page.locator(".lens").nth(number)

    def answers(self) -> list[str]:
        return [text.strip() for text in self.page.locator(".lens .answer strong").all_inner_texts()]

    def wait_for(self, answer: str, number: int = 0) -> None:
        """Wait until a lens gives ``answer``.

        The page is asked often: ``expect`` looks again after 100, 350, 850 and 1,850 ms, so a test would mostly wait.
        """
        with suppress(TimeoutError):
            self.page.wait_for_function(SAYS, arg=[number, answer], timeout=5_000, polling=30)
        expect(self.page.locator(".lens .answer strong").nth(number)).to_have_text(answer)

    def settle(self) -> None:
        """Wait until what was done is known to the page, no model is being asked, and the answers are painted."""
        self.frames()
        self.page.wait_for_function(
            "() => document.querySelectorAll('.lens .answer strong').length > 0"
            " && !document.querySelector('.lens[aria-busy]')"
        )
        self.frames()

    def frames(self) -> None:
        """Wait for two frames: the page takes over changes at the first, and has painted them by the second."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def stage_point(self, x: float, y: float, number: int = 0) -> tuple[float, float]:
        """Where on the screen the pixel (x, y) of a picture of 100 × 100 is."""
        box = self.page.locator(".stage").nth(number).bounding_box()
        return box["x"] + x / 100 * box["width"], box["y"] + y / 100 * box["height"]

    def drag(self, start: tuple[float, float], end: tuple[float, float], number: int = 0) -> None:
        """Drag on a picture, in its pixels."""
        mouse = self.page.mouse
        mouse.move(*self.stage_point(*start, number))
        mouse.down()
        mouse.move(*self.stage_point(*end, number), steps=12)
        mouse.up()

    def download(self, button: str, folder: Path) -> Path:
        with self.page.expect_download() as waiting:
            self.part(button).click()
        path = folder / waiting.value.suggested_filename
        waiting.value.save_as(path)
        return path

    def record(self, folder: Path, lens: int = 0) -> dict[str, Any]:
        """What the page shows now, as it saves it."""
        content = json.loads(self.download("save-record", folder).read_text(encoding="utf-8"))
        view: dict[str, Any] = content["views"][lens] if content["schema"] == "saccade.views/1" else content
        return view


@contextmanager
def opened(browser: Any, address: str, *, width: int = 1280, height: int = 900, **options: Any) -> Iterator[Opened]:
    """A page at ``address``; an error in it, a refusal of its policy, or a request elsewhere fails the test."""
    context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **options)
    context.route("**/favicon.ico", lambda route: route.fulfill(status=204))  # asked for where a file has no head
    watched = Opened(context.new_page())
    watched.page.set_default_timeout(10_000)
    watched.page.on("pageerror", lambda error: watched.wrong.append(str(error)))
    watched.page.on("console", lambda line: watched.wrong.append(line.text) if line.type == "error" else None)
    watched.page.on("request", lambda request: watched.asked.append(request.url))
    watched.page.goto(address)
    try:
        yield watched
    finally:
        context.close()
    assert watched.wrong == []
    origin = address.rpartition("/")[0] if address.startswith("http") else address
    elsewhere = [url for url in watched.asked if not url.startswith((origin, "data:", "blob:"))]
    assert not elsewhere, f"the page asked for {elsewhere}"


def stage_pixels(page: Opened) -> np.ndarray:
    """What the first picture shows on the screen, (H,W,3)."""
    return np.array(Image.open(io.BytesIO(page.page.locator(".stage").first.screenshot())).convert("RGB")).astype(int)


def floats(entry: dict[str, Any]) -> np.ndarray:
    """The weights of a look or total of a view, as (T,h,w) or (h,w)."""
    values = np.frombuffer(base64.b64decode(entry["weights"]), dtype=f"<f{2 if entry['dtype'] == 'float16' else 4}")
    return values.reshape(-1, *entry["grid"]) if "steps" in entry else values.reshape(entry["grid"])
