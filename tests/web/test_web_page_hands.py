"""The page in other hands: by keys alone, in a low window, on a phone, at twice the size."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_browser import Opened, expect
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
