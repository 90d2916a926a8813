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


@pytest.mark.parametrize("steps", [(3, 2), (4, 6)])
def test_looks_without_a_common_beat_follow_each_other(site: Opened, steps: tuple[int, int]) -> None:
    given = view([look("a", steps[0], 9), look("b", steps[1], 9)])
    names = [f"{name} {step + 1}" for name, count in zip("ab", steps) for step in range(count)]
    assert [title for title, *_ in acts(site, given)] == [*names, "total"]


@pytest.mark.parametrize(
    ("words", "steps", "last"), [(["a", "dog"], 3, "word 3: end"), (["a", "dog"], 2, "word 2: dog")]
)
def test_behind_the_last_word_comes_the_end(site: Opened, words: list[str], steps: int, last: str) -> None:
    given = view([look("word", 4, steps)], words=words)
    assert acts(site, given)[-2][0] == last


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


def test_the_slider_goes_label_by_label(page: Opened) -> None:
    page.part("act-slider").fill("8")
    expect(page.part("act-name")).to_have_text("7 · priority map · step 2 of 3")
    expect(page.lens().locator(".readout")).to_have_text(
        "7 · priority map · step 2 of 3 · soft input, 4×4 cells · peak 1.00"
    )
    expect(page.page.locator(".beat[data-lit] h4 strong")).to_have_text(["7"])
    expect(page.page.locator(".word[aria-current=true]")).to_have_text(["7"])


def test_a_label_lights_its_row_and_keeps_the_look(page: Opened) -> None:
    words = page.page.locator(".said .word")
    words.nth(2).hover()
    expect(page.part("act-name")).to_have_text("3 · covert mask · step 3 of 3")  # what attends, behind the total
    expect(page.page.locator(".beat").nth(2)).to_have_attribute("data-lit", "")
    page.page.locator(".beat").nth(0).get_by_text("glimpse 2").click()
    expect(page.part("act-name")).to_have_text("3 · glimpse 2 · step 1 of 3")
    words.nth(0).focus()
    page.page.keyboard.press("Tab")
    expect(page.part("act-name")).to_have_text("7 · glimpse 1 · step 2 of 3")
    expect(page.page.locator(".beat[data-lit] h4 strong")).to_have_text(["7"])


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


@pytest.fixture(scope="module")
def captions(browser: Any) -> Iterator[Opened]:
    """Both captioners that ship, side by side, on the scene of their kind."""
    pytest.importorskip("fastapi")
    from live_server import live_server

    from saccade.web.service import Service

    service = Service(["sat-soft-scenes", "sat-hard-scenes"], "cpu")
    with live_server(service) as server, opened(browser, f"http://127.0.0.1:{server.port}/") as page:
        page.part("compare").select_option("sat-hard-scenes")
        for number in (0, 1):
            page.wait_for("a large red seven left of a small blue four", number)
        yield page


def test_the_words_of_two_captions_light_together(captions: Opened) -> None:
    expect(captions.part("example")).to_have_value("Two digits")
    captions.lens(1).get_by_role("button", name="blue", exact=True).hover()
    for number in (0, 1):
        expect(captions.lens(number).locator(".word[aria-current=true]")).to_have_text(["blue"])
    captions.page.keyboard.press("Tab")
    captions.lens(0).locator(".word").nth(2).focus()
    captions.page.keyboard.press("Tab")
    for number in (0, 1):
        expect(captions.lens(number).locator(".word[aria-current=true]")).to_have_text(["seven"])


def test_the_gate_stands_beside_the_peak_and_the_end_is_called_so(captions: Opened) -> None:
    captions.lens(0).locator(".thumbnail").nth(10).click()
    expect(captions.part("act-name")).to_have_text("word 11: end (11 of 12)")
    expect(captions.lens(0).locator(".thumbnail span").nth(10)).to_have_text("end")
    for number in (0, 1):
        text = captions.lens(number).locator(".readout").inner_text()
        assert 0 < float(text.rpartition("gate β ")[2]) < 1
        assert " · peak " in text


def test_a_word_is_scored_on_the_digit_it_names(captions: Opened) -> None:
    title = captions.lens(0).locator(".scores h4")
    captions.lens(0).get_by_role("button", name="seven", exact=True).click()
    expect(title).to_have_text("Attention on “seven”")
    captions.lens(0).get_by_role("button", name="left", exact=True).click()
    expect(title).to_have_text("Attention on the evidence")


@pytest.mark.parametrize(
    ("word", "named"),
    [("seven", [1, 0, 0]), ("7", [1, 0, 0]), ("blue", [0, 1, 1]), ("red", None), ("above", None), ("nine", None),
     ("3", [0, 1, 1])],
)  # fmt: skip
def test_what_a_word_names(site: Opened, word: str, named: list[int] | None) -> None:
    """A red 7 on the first pixel, a blue 3 on both others, a red 3 on the last."""
    digits = [{"digit": 7, "colour": "red"}, {"digit": 3, "colour": "blue"}, {"digit": 3, "colour": "red"}]
    script = "async (given) => (await import('/js/named.js')).maskNamed(...given)"
    assert site.page.evaluate(script, [word, digits, [[1, 0, 0], [0, 1, 1], [0, 0, 1]]]) == named
