"""The page by itself: its size, and how many answers a second it gives while a digit is dragged, in a real browser.

python benchmarks/bench_page.py [--seconds 8]

The page is the self-contained one with the two models of the tour, opened as a file; one model answers at a time. Needs
the extra ``dev`` and a Chromium (``make chromium``). The exit code is 1 where a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import saccade
from saccade.families import families
from saccade.web.page import offline_page

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))
from chromium import ARGUMENTS, found

BYTES, FRAMES = 400_000, 5.0
LIVE = tuple(name for each in families().values() for name in each.live)

DRAG = """async (seconds) => {
  const stage = document.querySelector('[data-part="stage"]');
  const box = stage.getBoundingClientRect();
  const at = (x, y, type) => stage.dispatchEvent(new PointerEvent(type, {
    pointerId: 1, bubbles: true, clientX: box.left + x * box.width, clientY: box.top + y * box.height,
  }));
  stage.setPointerCapture = () => {};  // there is no such pointer
  let answers = 0;
  new MutationObserver(() => answers++).observe(document.querySelector(".lens .answer"), { childList: true });
  at(0.23, 0.25, "pointerdown");
  const start = performance.now();
  while (performance.now() - start < 1000 * seconds) {
    const turn = (performance.now() - start) / 400;
    at(0.4 + 0.2 * Math.cos(turn), 0.4 + 0.2 * Math.sin(turn), "pointermove");
    await new Promise(requestAnimationFrame);
  }
  at(0.4, 0.4, "pointerup");
  return answers / seconds;
}"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    seconds = parser.parse_args().seconds
    chromium = found()
    if chromium is None:
        sys.exit("no Chromium is here; 'make chromium' brings one")
    text = offline_page([saccade.load(name, "cpu") for name in LIVE])
    size = len(text.encode())
    print(f"the page with {' and '.join(LIVE)}   {size:,} bytes   (at most {BYTES:,})")
    slowest = float("inf")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "page.html"
        file.write_text(text, encoding="utf-8")
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        for name in LIVE:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(file.as_uri())
            page.locator(".lens").nth(1).locator(".answer strong").wait_for()
            page.get_by_label("Close this model").nth(1).click()
            page.locator(".lens select").first.select_option(name)
            page.locator(".lens .answer strong").wait_for()
            frames = page.evaluate(DRAG, seconds)
            print(f"a dragged digit, {name:26} {frames:5.1f} answers/s   (at least {FRAMES:g})")
            slowest = min(slowest, frames)
            page.close()
        browser.close()
    return int(size > BYTES or slowest < FRAMES)


if __name__ == "__main__":
    sys.exit(main())
