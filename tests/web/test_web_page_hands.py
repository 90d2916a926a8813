"""The page in other hands: by keys alone, in a low window, on a phone, at twice the size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_browser import Opened, expect, opened
from PIL import Image

pytestmark = [pytest.mark.web, pytest.mark.slow]


def focused(page: Opened) -> str | None:
    name: str | None = page.page.evaluate("document.activeElement.getAttribute('aria-label')")
    return name


@pytest.fixture
def low(browser: Any, page_file: Path) -> Iterator[Opened]:
    """One model in a window that is too low for its picture, which therefore stands in the middle of its place."""
    with opened(browser, page_file.as_uri(), width=1440, height=600) as page:
        page.wait_for("red", 1)
        page.lens(1).get_by_label("Close this model").click()
        expect(page.page.locator(".lens")).to_have_count(1)
        yield page


def test_a_button_that_was_pressed_by_key_keeps_the_focus(page: Opened) -> None:
    page.part("digit-list").get_by_label("Select the 3").focus()
    page.page.keyboard.press("Enter")
    expect(page.part("digit-list").locator("[aria-pressed=true]")).to_have_text("3")
    page.settle()
    assert focused(page) == "Select the 3"


def test_the_focus_goes_to_a_neighbour_where_its_button_has_gone(page: Opened) -> None:
    assert page.part("add-list").locator("[aria-pressed]").count() == 0  # adding is no toggle
    page.part("add-list").get_by_label("Add a 8").focus()  # the last of them
    page.page.keyboard.press("Enter")
    expect(page.part("add-list").locator("button")).to_have_count(4)
    page.settle()
    assert focused(page) == "Add a 6"


def test_what_is_held_down_is_pressed_though_the_looks_play(page: Opened) -> None:
    page.hold_timers()
    page.part("play").click()
    page.part("digit-list").get_by_label("Select the 3").hover()
    page.page.mouse.down()
    assert page.tick() == 1  # one look further
    page.page.mouse.up()
    expect(page.part("digit-list").locator("[aria-pressed=true]")).to_have_text("3")


def test_keys_for_digits_do_nothing_to_a_picture(page: Opened, tmp_path: Path) -> None:
    path = tmp_path / "mine.png"
    Image.new("RGB", (60, 40), (10, 200, 30)).save(path)
    page.part("picture-file").set_input_files(path)
    stage = page.page.locator(".stage").first
    expect(stage).to_have_attribute("height", "427")
    expect(stage).to_have_attribute("role", "img")
    stage.focus()
    for key in ("Delete", "ArrowLeft", "c"):
        page.page.keyboard.press(key)
    page.page.get_by_role("button", name="Compose").click()
    expect(page.part("digit-list").locator("button")).to_have_count(5)
    expect(page.part("example")).to_have_value("Five digits")  # as it was left
    expect(stage).to_have_attribute("role", "application")
    assert "arrow keys move the 7" in stage.get_attribute("aria-label")


def test_a_page_of_records_knows_no_new_scene(page: Opened, browser: Any, tmp_path: Path) -> None:
    saved = page.download("save-page", tmp_path)
    with opened(browser, saved.as_uri()) as alone:
        alone.wait_for("red", 1)
        alone.page.keyboard.press("n")
        alone.settle()
        assert alone.answers() == ["red", "red"]


def test_the_pointer_is_where_it_seems_in_a_low_window(low: Opened) -> None:
    box = low.page.locator(".stage").bounding_box()
    assert box["width"] > box["height"] + 50
    left = box["x"] + (box["width"] - box["height"]) / 2
    for x, selected in ((0.72, "3"), (0.02, "3"), (0.23, "7"), (0.98, "7")):  # the margins hold no digit
        low.page.mouse.click(left + x * box["height"], box["y"] + 0.25 * box["height"])
        low.settle()
        expect(low.part("digit-list").locator("[aria-pressed=true]")).to_have_text(selected)


def test_the_look_that_is_shown_is_in_the_window_of_its_strip(browser: Any, page_file: Path) -> None:
    with opened(browser, page_file.as_uri(), width=300, height=800) as page:
        page.wait_for("red")
        for look in ("0", "4"):
            page.part("act-slider").fill(look)
            strip, chosen = page.lens().locator(".strip"), page.lens().locator(".thumbnail[aria-pressed=true]")
            expect(chosen).to_have_text("stage1" if look == "0" else "total")
            window, inner = strip.bounding_box(), chosen.bounding_box()
            assert window["x"] <= inner["x"]
            assert inner["x"] + inner["width"] <= window["x"] + window["width"]
        assert strip.evaluate("strip => strip.scrollLeft") > 0  # there was something to scroll


def test_the_bar_is_one_line_at_every_size_but_a_phones(page: Opened) -> None:
    for width in (640, 720, 1024):
        page.page.set_viewport_size({"width": width, "height": 450})
        tops = {round(page.part(name).bounding_box()["y"]) for name in ("compare", "help-button", "theme")}
        assert len(tops) == 1
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
