"""What a visitor does, in a real browser, with the page opened as a file: no server, no network."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from carried_models import LIVE
from page_browser import Opened, expect, floats, opened
from PIL import Image

import saccade
from saccade.show.report import Report, Section
from saccade.web.page import live_part

pytestmark = [pytest.mark.web, pytest.mark.slow]
CTX, SOFT, *_ = LIVE


def evidence(view: dict[str, Any]) -> np.ndarray:
    return np.array(
        Image.open(io.BytesIO(base64.b64decode(view["evidence"]["mask_png"].partition(",")[2]))).convert("1")
    )


def peak(view: dict[str, Any]) -> tuple[int, int]:
    total = floats(view["total"])
    y, x = np.unravel_index(total.argmax(), total.shape)
    return int(x), int(y)


def test_it_opens_with_a_scene_and_two_models(page: Opened) -> None:
    assert page.page.locator(".lens").count() == 2
    assert page.page.locator(".lens select").all_inner_texts()[0].split("\n") == list(LIVE)
    expect(page.part("where")).to_have_text("Models run in this page")
    expect(page.lens().locator(".bar-list").first.locator("li")).to_have_count(5)


def test_ask_three_and_attention_jumps(page: Opened, tmp_path: Path) -> None:
    before = page.record(tmp_path)
    page.part("question-list").get_by_text("3", exact=True).click()
    page.wait_for("blue")
    after = page.record(tmp_path)
    assert (before["question"], after["question"]) == ("7", "3")
    assert evidence(before).any()
    assert peak(before)[0] < 50 < peak(after)[0]  # the 7 is on the left, the 3 on the right


def test_drag_the_seven_and_attention_follows(page: Opened, tmp_path: Path) -> None:
    page.drag((23, 25), (67, 78))  # free room below the 9 is covered: the 7 lies in front there
    page.settle()
    view = page.record(tmp_path)
    columns = np.nonzero(evidence(view).any(0))[0]
    assert columns.min() > 50  # the digit itself has moved
    assert np.hypot(*np.subtract(peak(view), (67, 78))) < 25
    assert view["answer"] == "red"


def test_recolour_the_target_and_the_answer_flips(page: Opened) -> None:
    page.part("colour-list").get_by_label("blue").click()
    page.wait_for("blue")
    page.part("colour-list").get_by_label("green").click()
    page.wait_for("green")


def test_composing_by_keys(page: Opened, tmp_path: Path) -> None:
    def box() -> np.ndarray:
        rows, columns = np.nonzero(evidence(page.record(tmp_path)))
        return np.array([columns.min(), rows.min(), columns.max(), rows.max()])

    before = box()
    page.page.locator(".stage").first.focus()
    page.page.keyboard.press("Shift+ArrowRight")
    page.page.keyboard.press("ArrowDown")
    page.settle()
    assert (box() - before).tolist() == [8, 2, 8, 2]
    page.page.locator(".stage").first.focus()
    page.page.keyboard.press("c")  # from red on to blue
    page.wait_for("blue")
    page.page.keyboard.press("Delete")
    expect(page.part("digit-list").locator("button")).to_have_count(4)
    expect(page.part("question-note")).to_contain_text("The scene has no 7")


def test_the_slider_walks_through_the_looks(page: Opened) -> None:
    readout = page.lens().locator(".readout")
    expect(page.part("act-name")).to_have_text("total (5 of 5)")
    page.part("act-slider").fill("0")
    expect(readout).to_contain_text("stage1 · gate multiplier")
    expect(page.lens(1).locator(".readout")).to_have_text(f"{SOFT} has no look of this name")
    page.lens().locator(".thumbnail").nth(3).click()
    expect(page.part("act-name")).to_have_text("stage4 (4 of 5)")
    expect(page.lens(1).locator(".readout")).to_contain_text("stage4 · soft multiplier")


def test_compare_models_side_by_side(page: Opened) -> None:
    page.lens(1).get_by_label("Close this model").click()
    expect(page.page.locator(".lens")).to_have_count(1)
    expect(page.lens().get_by_label("Close this model")).to_be_hidden()
    page.part("compare").select_option(SOFT)
    expect(page.page.locator(".lens")).to_have_count(2)
    page.wait_for("red", 1)
    page.page.keyboard.press("3")
    page.wait_for("blue", 0)
    page.wait_for("blue", 1)
    page.lens(1).locator(".lens-head select").select_option(CTX)
    page.settle()
    expect(page.lens(1).locator(".thumbnail")).to_have_count(5)


@pytest.mark.parametrize(("width", "scheme"), [(340, "light"), (800, "dark"), (1500, "light")])
def test_it_fits_every_screen(browser: Any, page_file: Path, width: int, scheme: str) -> None:
    with opened(browser, page_file.as_uri(), width=width, color_scheme=scheme) as page:
        page.wait_for("red")
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
        inside = "lens => Math.max(...[...lens.children].map((e) => e.getBoundingClientRect().right))"
        edge = page.lens().bounding_box()
        assert page.lens().evaluate(inside) <= edge["x"] + edge["width"]  # nothing leaves its card
        ground = page.page.evaluate("getComputedStyle(document.querySelector('.saccade')).backgroundColor")
        assert ground == {"light": "rgb(244, 246, 248)", "dark": "rgb(13, 16, 20)"}[scheme]
        page.part("theme").click()  # light by choice
        assert page.page.evaluate("getComputedStyle(document.querySelector('.saccade')).colorScheme") == "light"


def test_the_report_is_alive_as_a_file(browser: Any, tmp_path: Path) -> None:
    live = live_part([saccade.load(name, "cpu") for name in LIVE])
    path = Report("Where the models looked", sections=[Section("One", "text")], live=live).save(tmp_path / "r.html")
    with opened(browser, path.as_uri(), width=1400) as page:
        page.wait_for("red")
        page.part("question-list").get_by_text("3", exact=True).click()
        page.wait_for("blue")
        page.drag((72, 25), (76, 30))
        page.settle()
        saved = page.download("save-page", tmp_path)
        expect(page.page.locator("h1")).to_have_text("Where the models looked")
    with opened(browser, saved.as_uri()) as alone:
        alone.wait_for("blue")
        expect(alone.page.locator("h1")).to_have_count(0)


def test_a_button_that_was_pressed_by_key_keeps_the_focus(page: Opened) -> None:
    page.part("digit-list").get_by_label("Select the 3").focus()
    page.page.keyboard.press("Enter")
    expect(page.part("digit-list").locator("[aria-pressed=true]")).to_have_text("3")
    page.settle()
    assert page.page.evaluate("document.activeElement.getAttribute('aria-label')") == "Select the 3"
