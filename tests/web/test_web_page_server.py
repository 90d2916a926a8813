"""The page as the server gives it: asked over HTTP, under the server's own policy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_browser import Opened, expect, opened
from PIL import Image

from tiny_models import save_tiny

pytestmark = [pytest.mark.web, pytest.mark.slow]


@pytest.fixture
def page(browser: Any, server: Any) -> Iterator[Opened]:
    with opened(browser, f"http://127.0.0.1:{server.port}/") as watched:
        watched.settle()
        yield watched


def asked(page: Opened) -> list[str]:
    return [url for url in page.asked if url.endswith("/api/ask")]


def test_the_server_answers_what_the_page_composes(page: Opened) -> None:
    expect(page.part("where")).to_contain_text("server")
    expect(page.lens().locator(".lens-head select")).to_have_value("digits")
    expect(page.part("question-list").locator("[aria-pressed=true]")).to_have_text("2")  # known and in the scene
    before = len(asked(page))
    page.part("question-list").get_by_text("3", exact=True).click()
    expect(page.lens().locator(".asked")).to_have_text("3 → ")
    assert len(asked(page)) == before + 1


def test_a_model_that_does_not_know_the_question_says_so_in_its_own_card(page: Opened) -> None:
    page.part("question-list").get_by_text("3", exact=True).click()
    page.part("compare").select_option("words")
    expect(page.lens(1).locator(".answer")).to_have_text(
        "This model cannot be asked “3”. It can be asked: 0, 1, 2, north."
    )
    expect(page.part("notice")).to_be_hidden()
    assert page.answers() == page.answers()[:1]  # the other one goes on as before
    page.lens(1).locator(".lens-head select").select_option("digits")
    expect(page.lens(1).locator(".asked")).to_have_text("3 → ")


def test_a_model_of_photographs_starts_with_a_photograph(browser: Any, tmp_path: Path) -> None:
    """It stays until another model is chosen; a picture that somebody opened stays even then."""
    from live_server import serving

    save_tiny(tmp_path / "things", name="things", queries=("back", "crown", "nape", "wing"), data={"name": "vg"})
    save_tiny(tmp_path / "digits", name="digits", queries=("0", "1", "2", "3"), data={"name": "mref"})
    with (
        serving(tmp_path / "things", tmp_path / "digits") as served,
        opened(browser, f"http://127.0.0.1:{served.port}/") as page,
    ):
        root, model = page.page.locator("#saccade"), page.lens().locator(".lens-head select")
        page.settle()
        expect(root).to_have_attribute("data-mode", "picture")
        assert sum(url.endswith("/api/examples/cat") for url in page.asked) == 1
        assert sum(url.endswith("/api/encode") for url in page.asked) == 1  # and no scene was shown to it before
        model.select_option("digits")
        expect(root).to_have_attribute("data-mode", "scene")
        model.select_option("things")
        expect(root).to_have_attribute("data-mode", "picture")
        path = tmp_path / "mine.png"
        Image.new("RGB", (60, 40), (10, 200, 30)).save(path)
        page.part("picture-file").set_input_files(path)
        expect(page.page.locator(".stage").first).to_have_attribute("height", "427")
        model.select_option("digits")
        page.settle()
        expect(root).to_have_attribute("data-mode", "picture")


def test_a_server_that_has_gone_is_noticed(browser: Any, server: Any) -> None:
    with opened(browser, f"http://127.0.0.1:{server.port}/") as page:
        page.settle()
        page.page.route("**/api/ask", lambda route: route.abort())
        page.part("question-list").get_by_text("3", exact=True).click()
        expect(page.part("notice-text")).to_contain_text("does not answer")
        page.page.unroute("**/api/ask")
        page.part("question-list").get_by_text("0", exact=True).click()
        expect(page.part("notice")).to_be_hidden()
        page.wrong.clear()
