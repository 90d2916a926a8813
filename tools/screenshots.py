"""Make the screenshots of the live page that the documentation shows: ``python tools/screenshots.py [FOLDER]``.

Needs the extra ``dev`` (playwright) and a Chromium (``make chromium``). The page is the offline one, opened as a file;
what it shows is a function of the code and the shipped weights alone.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from chromium import ARGUMENTS, found
from PIL import Image
from playwright.sync_api import sync_playwright

import saccade
from saccade.verbs.tour import LIVE
from saccade.web.page import offline_page

FOLDER = Path(__file__).parent.parent / "docs" / "images"


def compose(page: Any) -> None:
    """Two models on one cluttered scene, asked for the 3."""
    page.locator('[data-part="example"]').select_option("Coloured clutter")


def looks(page: Any) -> None:
    """One model, its third gate, in the dark."""
    page.get_by_label("Close this model").nth(1).click()
    page.locator(".thumbnail").nth(2).click()
    page.locator('[data-part="palette"]').select_option("viridis")
    page.keyboard.press("9")


SHOTS = {
    "page-compare": (compose, {"viewport": {"width": 1440, "height": 980}, "color_scheme": "light"}),
    "page-looks": (looks, {"viewport": {"width": 1240, "height": 940}, "color_scheme": "dark"}),
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    chromium = found()
    if chromium is None:
        sys.exit("no Chromium is here; 'make chromium' brings one")
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        file = Path(scratch) / "page.html"
        file.write_text(offline_page([saccade.load(name, "cpu") for name in LIVE]), encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for name, (arrange, options) in SHOTS.items():
            page = browser.new_page(**options)
            page.goto(file.as_uri())
            page.locator(".lens").nth(1).locator(".answer strong").wait_for()
            arrange(page)
            page.wait_for_timeout(1500)  # until both have answered and painted
            shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            shot.save(folder / f"{name}.png", optimize=True)  # in full colour: colours are what it is about
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
