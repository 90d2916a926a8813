"""Looks that repeat together, label by label, and captions word by word: order, names, dots, and what lights what."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_browser import Opened, expect, opened, served, stage_pixels
from PIL import Image

from saccade.web.page import STATIC, offline_page

pytestmark = [pytest.mark.web, pytest.mark.slow]
SIDE = 4  # cells each way, of 10 pixels


def encoded(values: np.ndarray) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode()


def look(name: str, steps: int, active: int, **more: Any) -> dict[str, Any]:
    """A look whose step t has all its weight on cell t."""
    weights = np.eye(SIDE * SIDE)[:steps].reshape(steps, SIDE, SIDE)
    return {
        "name": name, "kind": "soft", "role": "input", "norm": "none", "steps": steps, "grid": [SIDE, SIDE],
        "frame": [[10, 0, 0], [0, 10, 0]], "weights": encoded(weights), "dtype": "float32",
        "active": [step < active for step in range(steps)], "gain": None, "choice": None, "emits": None, "box": None,
        **more,
    }  # fmt: skip


def view(looks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 40), (60, 60, 60)).save(buffer, "PNG")
    png = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    total = {"grid": [1, 1], "frame": [[40, 0, 0], [0, 40, 0]], "weights": encoded(np.ones(1)), "dtype": "float32"}
    return {
        "schema": "saccade.view/1", "model": "a reader", "task": "multiset", "question": None, "answer": "{3, 3, 7}",
        "confidence": 0.5, "alternatives": [], "labels": None, "words": None, "total": total, "evidence": None,
        "scores": None, "picture": {"width": 40, "height": 40, "png": png}, "looks": looks, **more,
    }  # fmt: skip


def multiset(**more: Any) -> dict[str, Any]:
    """Three labels in four steps, two glimpses each; the last two glimpses fell on one cell."""
    return view(
        [
            look("saliency", 4, 3),
            look("covert", 4, 3, role="multiplier"),
            look("priority", 4, 3),
            look("glimpse", 8, 6, kind="hard", role="policy", choice=[0, 15, 5, 10, 6, 6, 0, 0]),
            look("inhibited", 4, 3),
        ],
        labels=[["3", 0.9], ["7", 0.8], ["3", 0.7]],
        **more,
    )


def acts(page: Any, given: dict[str, Any]) -> list[list[Any]]:
    script = (
        "async (given) => { const m = await import('/js/acts.js');"
        "return m.actsOf(given).map((act) => [act.title, act.place ?? null, act.path ?? null]); }"
    )
    return page.page.evaluate(script, given)


@pytest.fixture(scope="module")
def site(browser: Any) -> Iterator[Opened]:
    with served(STATIC) as address, opened(browser, f"{address}/glyphs.png") as page:
        yield page


def test_acts_go_label_by_label_in_the_order_of_the_trace(site: Opened) -> None:
    found = acts(site, multiset())
    assert found[:6] == [
        ["3 · saliency before", "step 1 of 3", None],
        ["3 · covert mask", "step 1 of 3", None],
        ["3 · priority map", "step 1 of 3", None],
        ["3 · glimpse 1", "step 1 of 3", [0]],
        ["3 · glimpse 2", "step 1 of 3", [0, 15]],
        ["3 · saliency after", "step 1 of 3", None],
    ]
    assert [title for title, *_ in found[6:12]] == [title.replace("3 ·", "7 ·") for title, *_ in found[:6]]
    assert found[15:17] == [["3 · glimpse 1", "step 3 of 3", [6]], ["3 · glimpse 2", "step 3 of 3", [6, 6]]]
    assert found[18:] == [["total", None, None]]


@pytest.fixture
def page(browser: Any, tmp_path: Path) -> Iterator[Opened]:
    path = tmp_path / "multiset.html"
    path.write_text(offline_page(views=[multiset()]), encoding="utf-8")
    with opened(browser, path.as_uri()) as watched:
        watched.wait_for("{3, 3, 7}")
        yield watched


def test_every_label_has_a_row_of_named_looks(page: Opened) -> None:
    rows = page.page.locator(".beat")
    expect(rows).to_have_count(4)
    expect(page.page.locator(".beat h4 strong")).to_have_text(["3", "7", "3", "all"])
    expect(page.page.locator(".beat h4 span")).to_have_text(["90 %", "80 %", "70 %", ""])
    names = ["saliency before", "covert mask", "priority map", "glimpse 1", "glimpse 2", "saliency after"]
    expect(rows.nth(1).locator(".thumbnail span")).to_have_text(names)
    expect(rows.nth(3).locator(".thumbnail span")).to_have_text(["total"])
    expect(rows.nth(1)).to_have_attribute("aria-label", "7, step 2 of 3")


def test_glimpses_are_dots_in_order(page: Opened) -> None:
    """The first fell on the cell at (5, 5), the second on that at (35, 35) of 40 × 40 pixels."""

    def bright(x: float, y: float) -> float:
        pixels = stage_pixels(page)
        height, width = pixels.shape[:2]
        at, reach = (round(y / 40 * height), round(x / 40 * width)), width // 60
        return float(pixels[at[0] - reach : at[0] + reach, at[1] - reach : at[1] + reach].max())

    row = page.page.locator(".beat").nth(0)
    row.get_by_text("glimpse 1").click()
    expect(page.part("act-name")).to_have_text("3 · glimpse 1 · step 1 of 3")
    assert bright(5, 5) > 250
    assert bright(35, 35) < 200
    row.get_by_text("glimpse 2").click()
    expect(page.part("act-name")).to_have_text("3 · glimpse 2 · step 1 of 3")
    assert bright(35, 35) > 250
    assert 120 < bright(5, 5) < 250  # the first is still there, paler
