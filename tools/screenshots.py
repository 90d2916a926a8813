"""Make the screenshots of the live page that the documentation shows: ``python tools/screenshots.py [FOLDER]``.

Needs the extra ``dev`` (playwright) and a Chromium (``make chromium``). The page is the offline one, opened as a file,
or for a model that does not run inside a page the served one; what it shows is a function of the code and the shipped
weights alone.
"""

from __future__ import annotations

import io
import queue
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from chromium import ARGUMENTS, found
from PIL import Image
from playwright.sync_api import sync_playwright

import saccade
from saccade.commands.serve import serve
from saccade.families import families
from saccade.web.page import offline_page

CAPTIONS = "sat-soft-scenes"
LIVE = tuple(name for each in families().values() for name in each.live)
FOLDER = Path(__file__).parent.parent / "docs" / "images"


def compose(page: Any) -> None:
    """Two models on one cluttered scene, asked for the 3."""
    page.locator(".lens").nth(1).locator(".answer strong").wait_for()
    page.locator('[data-part="example"]').select_option("Coloured clutter")


def words(page: Any) -> None:
    """A caption, the word that names the digit on the right lit."""
    page.locator(".answer .word").last.hover()


SHOTS = {
    "page-compare": ("file", compose, {"viewport": {"width": 1440, "height": 980}, "color_scheme": "light"}),
    "page-words": ("server", words, {"viewport": {"width": 1240, "height": 860}, "color_scheme": "light"}),
}


def served(model: str) -> str:
    """The address of a page that ``model`` answers, for as long as this program runs."""
    addresses: queue.Queue[str] = queue.Queue()
    settings = {"port": 0, "device": "cpu", "announce": addresses.put}
    threading.Thread(target=serve, args=([model],), kwargs=settings, daemon=True).start()
    return addresses.get(timeout=60)


def small_webp(picture: Image.Image) -> bytes:
    """The picture as WebP, without loss where that is shorter."""
    kinds = ({"lossless": True, "quality": 100}, {"quality": 85})
    return min((_webp(picture, **kind) for kind in kinds), key=len)


def _webp(picture: Image.Image, **kind: Any) -> bytes:
    written = io.BytesIO()
    picture.save(written, "WEBP", method=6, **kind)
    return written.getvalue()


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    chromium = found()
    if chromium is None:
        sys.exit("no Chromium is here; 'make chromium' brings one")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        file = Path(scratch) / "page.html"
        file.write_text(offline_page([saccade.load(name, "cpu") for name in LIVE]), encoding="utf-8")
        where = {"file": file.as_uri(), "server": served(CAPTIONS)}
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for name, (source, arrange, options) in SHOTS.items():
            page = browser.new_page(**options)
            page.goto(where[source])
            page.locator(".lens .answer strong").first.wait_for()
            arrange(page)
            page.wait_for_timeout(1500)  # until all have answered and painted
            shot = Image.open(io.BytesIO(page.screenshot()))
            (folder / f"{name}.webp").write_bytes(small_webp(shot.convert("RGB")))
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
