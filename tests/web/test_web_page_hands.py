"""The page in other hands: by keys alone, in a low window, on a phone, at twice the size."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from page_browser import Opened, expect, opened
from PIL import Image

pytestmark = [pytest.mark.web, pytest.mark.slow]


def focused(page: Opened) -> str | None:
    name: str | None = page.page.evaluate("document.activeElement.getAttribute('aria-label')")
    return name


def test_a_button_that_was_pressed_by_key_keeps_the_focus(page: Opened) -> None:
    page.part("digit-list").get_by_label("Select the 3").focus()
    page.page.keyboard.press("Enter")
    expect(page.part("digit-list").locator("[aria-pressed=true]")).to_have_text("3")
    page.settle()
    assert focused(page) == "Select the 3"


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


def test_the_bar_is_one_line_at_every_size_but_a_phones(page: Opened) -> None:
    for width in (640, 720, 1024):
        page.page.set_viewport_size({"width": width, "height": 450})
        tops = {round(page.part(name).bounding_box()["y"]) for name in ("compare", "help-button", "theme")}
        assert len(tops) == 1
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width
