"""The story editor of the page, in a real browser: with a server behind it, and inside one file without any."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_browser import Opened, expect, opened
from story_models import QUESTION, STORY, save_story_model

import saccade
from saccade.models.facts import Preprocessing
from saccade.web.page import offline_page
from tiny_models import save_tiny

pytestmark = [pytest.mark.web, pytest.mark.slow]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model of pictures and two of stories."""
    place = tmp_path_factory.mktemp("models")
    return {
        "seer": save_tiny(place / "seer", name="seer", preprocessing=Preprocessing((34, 34))),
        "teller": save_story_model(place / "teller"),
        "masked": save_story_model(place / "masked", "masked", mask=True),
    }


@pytest.fixture(scope="module")
def gates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DMN, which a page cannot compute."""
    return save_story_model(tmp_path_factory.mktemp("gates") / "gates", "gates", "dmn")


@pytest.fixture(scope="module")
def page_file(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(offline_page([saccade.load(folder, "cpu") for folder in folders.values()]), encoding="utf-8")
    return path


@pytest.fixture
def page(browser: Any, page_file: Path) -> Iterator[Opened]:
    """The page without a server, with the editor open and the story of the tests in it."""
    with opened(browser, page_file.as_uri()) as watched:
        watched.settle()
        tell(watched)
        yield watched
        assert [url for url in watched.asked if url.startswith("http")] == []


def tell(page: Opened, story: list[str] = STORY, question: str = QUESTION) -> None:
    """Open the editor, and write ``story`` into it, line by line."""
    page.page.get_by_role("button", name="Story", exact=True).click()
    page.page.get_by_role("button", name="Clear").click()
    field(page, 1).fill(story[0])
    for number, text in enumerate(story[1:], start=2):
        field(page, number - 1).press("Enter")
        field(page, number).fill(text)
    page.page.get_by_role("textbox", name="Question").fill(question)


def field(page: Opened, number: int) -> Any:
    return page.page.get_by_role("textbox", name=f"sentence {number}", exact=True)


def sentences(page: Opened) -> list[str]:
    found: list[str] = page.page.locator(".story-editor tbody input").evaluate_all(
        "all => all.map((each) => each.value)"
    )
    return found


def weights_of(folder: Path, story: list[str], question: str = QUESTION) -> list[list[str]]:
    """The weights of every hop on each sentence as the editor writes them, from Python."""
    looks = saccade.load(folder, "cpu").look(story, question).trace.looks
    return [[f"{float(look.weights[0, slot]):.2f}" for look in looks] for slot in range(len(story))]  # type: ignore[index]


def expect_weights(page: Opened, wanted: list[list[str]]) -> None:
    expect(page.page.locator(".story-editor tbody .story-hop")).to_have_text([text for row in wanted for text in row])


def test_weights_follow_what_is_typed(page: Opened, folders: dict[str, Path]) -> None:
    expect_weights(page, weights_of(folders["teller"], STORY))
    changed = [*STORY[:2], "Sandra went to the kitchen."]
    field(page, 3).fill(changed[2])
    expect_weights(page, weights_of(folders["teller"], changed))
    page.page.get_by_role("textbox", name="Question").fill("Where is the garden?")
    expect_weights(page, weights_of(folders["teller"], changed, "Where is the garden?"))
    said = saccade.load(folders["teller"], "cpu").look(changed, "Where is the garden?")
    page.wait_for(said.answer)
    expect(page.lens().locator(".bar-list li")).to_have_count(5)
    expect(page.lens().locator("table.slots")).to_have_count(0)  # the editor shows them
    assert weights_of(folders["teller"], STORY) != weights_of(folders["teller"], changed)


def test_sentences_are_moved_by_buttons_and_by_keys(page: Opened, folders: dict[str, Path]) -> None:
    page.page.get_by_role("button", name="Move sentence 1 down").click()
    assert sentences(page) == [STORY[1], STORY[0], STORY[2]]
    expect_weights(page, weights_of(folders["teller"], [STORY[1], STORY[0], STORY[2]]))
    expect(page.page.get_by_role("button", name="Move sentence 2 down")).to_be_focused()  # it went along
    page.page.keyboard.press("Enter")
    assert sentences(page) == [STORY[1], STORY[2], STORY[0]]
    expect(page.page.get_by_role("button", name="Move sentence 3 up")).to_be_focused()  # there is no further down
    expect(page.page.locator(".story-spoken")).to_have_text("Moved to place 3 of 3.")
    field(page, 3).press("Alt+ArrowUp")
    field(page, 2).press("Alt+ArrowUp")
    assert sentences(page) == STORY
    expect(field(page, 1)).to_be_focused()
    field(page, 1).press("Alt+ArrowUp")  # nowhere to go
    field(page, 1).press("ArrowDown")
    expect(field(page, 2)).to_be_focused()
    assert sentences(page) == STORY


def test_a_sentence_is_dragged(page: Opened, folders: dict[str, Path]) -> None:
    grips = page.page.locator(".story-editor tbody .story-grip")
    first, last = (grips.nth(number).bounding_box() for number in (0, 2))
    mouse = page.page.mouse
    mouse.move(first["x"] + 8, first["y"] + 8)
    mouse.down()
    mouse.move(last["x"] + 8, last["y"] + last["height"] - 2, steps=5)
    assert sentences(page) == [STORY[1], STORY[2], STORY[0]]
    page.page.keyboard.press("Escape")
    assert sentences(page) == STORY
    mouse.up()
    mouse.move(first["x"] + 8, first["y"] + 8)
    mouse.down()
    mouse.move(last["x"] + 8, last["y"] + last["height"] - 2, steps=5)
    mouse.up()
    mouse.move(first["x"] + 8, first["y"] + 8)  # let go of: it stays
    assert sentences(page) == [STORY[1], STORY[2], STORY[0]]
    expect_weights(page, weights_of(folders["teller"], [STORY[1], STORY[2], STORY[0]]))


def test_what_was_watched_is_saved_and_opened_again(
    page: Opened, browser: Any, folders: dict[str, Path], tmp_path: Path
) -> None:
    expect_weights(page, weights_of(folders["teller"], STORY))
    page.settle()
    answer = page.answers()[0]
    saved = page.download("save-page", tmp_path)
    with opened(browser, saved.as_uri()) as alone:
        alone.wait_for(answer)
        expect(alone.page.locator("table.slots tbody th")).to_have_text([*STORY, "empty slots (2)"])
        expect(alone.page.locator(".story-editor")).to_have_count(0)


def test_the_server_answers_the_editor(browser: Any, folders: dict[str, Path], gates: Path) -> None:
    from live_server import serving

    with (
        serving(folders["teller"], gates) as server,
        opened(browser, f"http://127.0.0.1:{server.port}/", width=390, height=844) as page,
    ):
        expect(page.page.locator(".story-editor")).to_be_visible()  # there is nothing else to show
        expect(page.page.get_by_role("button", name="Compose")).to_be_hidden()
        tell(page)
        expect_weights(page, weights_of(folders["teller"], STORY))
        width = page.page.evaluate("document.documentElement.scrollWidth")
        assert width == 390  # nothing sticks out
        page.lens().locator(".lens-head select").select_option("gates")
        expect_weights(page, weights_of(gates, STORY))
        expect(page.page.locator(".story-editor tfoot th")).to_have_text("(end of passes)")  # a slot of its own
        page.page.get_by_role("button", name="Clear").click()
        expect(page.page.locator(".story-editor tbody tr")).to_have_count(1)
        expect(page.lens().locator(".answer")).to_have_text("Write a sentence.")
