"""The page in other hands: by keys alone, in a low window, on a phone, at twice the size."""

from __future__ import annotations

import pytest
from page_browser import Opened, expect

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
