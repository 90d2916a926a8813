"""The page as the server gives it: asked over HTTP, under the server's own policy."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
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


def test_behind_the_digits_lies_what_the_server_draws(page: Opened, tmp_path: Path) -> None:
    names = page.part("background").locator("option").evaluate_all("options => options.map(({ value }) => value)")
    photo = next(name for name in names if name.startswith("photo:"))
    page.part("background").select_option(photo)
    page.settle()
    shown = page.part("stage").first.screenshot()
    pixels = np.array(Image.open(io.BytesIO(shown)).convert("L"))
    assert (pixels > 20).mean() > 0.5  # a photograph, where there was black


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


def test_a_page_opens_with_the_model_that_was_named_first(browser: Any, tmp_path: Path) -> None:
    from live_server import live_server

    from saccade.web.service import Service

    for name in ("mine", "soft-other"):
        save_tiny(tmp_path / name, name=name)
    service = Service([tmp_path / "mine", tmp_path / "soft-other"], "cpu")
    with live_server(service) as served, opened(browser, f"http://127.0.0.1:{served.port}/") as page:
        expect(page.page.locator(".lens")).to_have_count(1)
        expect(page.lens().locator(".lens-head select")).to_have_value("mine")


def test_a_model_that_cannot_be_loaded_has_no_answer(browser: Any, tmp_path: Path) -> None:
    from live_server import live_server

    from saccade.web.service import Service

    save_tiny(tmp_path / "broken", name="broken")
    service = Service([tmp_path / "broken"], "cpu")
    (tmp_path / "broken" / "model.safetensors").write_bytes(b"not weights")
    with live_server(service) as broken, opened(browser, f"http://127.0.0.1:{broken.port}/") as page:
        expect(page.lens().locator(".answer")).to_have_text("no answer")
        expect(page.part("notice-text")).to_contain_text("cannot be loaded")
        page.wrong[:] = [line for line in page.wrong if "Failed to load resource" not in line]  # the 4xx itself


def test_a_model_of_something_else_asks_for_a_picture_of_it(browser: Any, tmp_path: Path) -> None:
    from live_server import live_server

    from saccade.web.service import Service

    save_tiny(tmp_path / "birds", name="birds", queries=("back", "crown", "nape", "wing"))
    service = Service([tmp_path / "birds"], "cpu")
    with live_server(service) as birds, opened(browser, f"http://127.0.0.1:{birds.port}/") as page:
        page.settle()
        expect(page.part("question-note")).to_contain_text("was not trained on digits")
        expect(page.part("question-list").locator(".absent")).to_have_count(0)


def test_a_model_of_photographs_starts_with_a_photograph(browser: Any, tmp_path: Path) -> None:
    """It stays until another model is chosen; a picture that somebody opened stays even then."""
    from live_server import live_server

    from saccade.web.service import Service

    save_tiny(tmp_path / "things", name="things", queries=("back", "crown", "nape", "wing"), data={"name": "vg"})
    save_tiny(tmp_path / "digits", name="digits", queries=("0", "1", "2", "3"), data={"name": "mref"})
    service = Service([tmp_path / "things", tmp_path / "digits"], "cpu")
    with live_server(service) as served, opened(browser, f"http://127.0.0.1:{served.port}/") as page:
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


def test_a_picture_is_sent_once_and_asked_many_times(page: Opened, tmp_path: Path) -> None:
    path = tmp_path / "mine.png"
    Image.new("RGB", (60, 40), (10, 200, 30)).save(path)
    page.part("picture-file").set_input_files(path)
    expect(page.page.locator(".stage").first).to_have_attribute("height", "427")
    page.settle()
    for question in ("0", "1", "3"):
        page.part("question-list").get_by_text(question, exact=True).click()
        expect(page.lens().locator(".asked")).to_have_text(f"{question} → ")
    assert sum(url.endswith("/api/encode") for url in page.asked) == 1


def test_a_refusal_is_shown_in_the_servers_words(browser: Any, server: Any) -> None:
    with opened(browser, f"http://127.0.0.1:{server.port}/") as page:
        page.settle()
        told = {"error": {"code": "invalid", "message": "no question <b>'3'</b> here"}}
        page.page.route("**/api/ask", lambda route: route.fulfill(status=422, json=told))
        page.part("question-list").get_by_text("3", exact=True).click()
        expect(page.part("notice-text")).to_have_text("No question <b>'3'</b> here")
        expect(page.part("notice")).to_be_visible()
        page.wrong[:] = [line for line in page.wrong if "Failed to load resource" not in line]  # the 4xx itself


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


def test_what_the_server_answered_can_be_taken_along(page: Opened, browser: Any, tmp_path: Path) -> None:
    answer = page.answers()[0]
    saved = page.download("save-page", tmp_path)
    view = json.loads(page.download("save-record", tmp_path).read_text(encoding="utf-8"))
    assert view["answer"] == answer
    assert view["picture"]["png"].startswith("data:image/png")
    with opened(browser, saved.as_uri()) as alone:
        alone.wait_for(answer)
        expect(alone.page.get_by_role("button", name="Compose")).to_be_hidden()
