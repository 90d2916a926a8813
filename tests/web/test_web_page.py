"""The page in a real browser from end to end: digits behind a server, the story editor, and pages without a server."""

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_browser import Opened, expect, floats, opened
from PIL import Image
from web_models import LIVE, QUESTION, STORY, save_story_model

import saccade
from saccade.models.facts import Preprocessing
from saccade.show.report import Report, Section
from saccade.web.page import live_part, offline_page
from tiny_models import save_tiny

pytestmark = [pytest.mark.web, pytest.mark.slow]


def evidence(view: dict[str, Any]) -> np.ndarray:
    data = base64.b64decode(view["evidence"]["mask_png"].partition(",")[2])
    return np.array(Image.open(io.BytesIO(data)).convert("1"))


def peak(view: dict[str, Any]) -> tuple[int, int]:
    total = floats(view["total"])
    y, x = np.unravel_index(total.argmax(), total.shape)
    return int(x), int(y)


def test_digits_are_asked_dragged_recoloured_and_brushed(browser: Any, tmp_path: Path) -> None:
    from live_server import serving

    folders = [saccade.zoo.folders.resolve(name) for name in ("hattnet-ctx-mref", "soft-mref")]
    with serving(*folders) as server, opened(browser, f"http://127.0.0.1:{server.port}/") as page:
        page.wait_for("red", 0)
        page.wait_for("red", 1)
        expect(page.part("where")).to_contain_text("server")
        before = page.record(tmp_path)
        page.part("question-list").get_by_text("3", exact=True).click()  # attention jumps
        page.wait_for("blue", 0)
        page.wait_for("blue", 1)
        after = page.record(tmp_path)
        assert (before["question"], after["question"]) == ("7", "3")
        assert peak(before)[0] < 50 < peak(after)[0]  # the 7 is on the left, the 3 on the right
        page.part("question-list").get_by_text("7", exact=True).click()
        page.drag((23, 25), (67, 78))  # attention follows; the 7 lies in front of the 9 there
        page.settle()
        view = page.record(tmp_path)
        assert np.nonzero(evidence(view).any(0))[0].min() > 50
        assert np.hypot(*np.subtract(peak(view), (67, 78))) < 25
        assert view["answer"] == "red"
        page.part("colour-list").get_by_label("blue").click()  # the answer flips
        page.wait_for("blue")
        page.part("act-slider").fill("0")
        expect(page.lens().locator(".readout")).to_contain_text("stage1 · gate multiplier")
        expect(page.lens(1).locator(".readout")).to_have_text("soft-mref has no look of this name")
        page.lens(1).get_by_label("Close this model").click()
        expect(page.page.locator(".lens")).to_have_count(1)
        page.part("compare").select_option("soft-mref")
        expect(page.page.locator(".lens")).to_have_count(2)
        page.settle()
        own = page.record(tmp_path, lens=1)
        page.lens(1).locator('[data-tool="erase"]').click()
        page.drag((5, 10), (95, 10), number=1)  # the first row of cells
        page.settle()
        told = page.lens(1).locator('[data-part="edited"]')
        expect(told).to_contain_text(f"Without the edit: {own['answer']}")
        edited = page.record(tmp_path, lens=1)
        was, now = (floats(view["looks"][0])[0] for view in (own, edited))
        assert bool((now[0] == 0).all())
        np.testing.assert_allclose(now[1:], was[1:] / was[1:].sum(), rtol=1e-4, atol=1e-6)  # a softmax keeps its sum
        assert edited["edited"]["looks"]["stage4"]["moved"] == pytest.approx(float(was[0].sum()), abs=1e-3)
        saved = page.download("save-page", tmp_path)
        words = told.inner_text()
        page.lens(1).locator('[data-part="brush-reset"]').click()
        page.settle()
        expect(told).to_be_hidden()
        np.testing.assert_array_equal(floats(page.record(tmp_path, lens=1)["looks"][0])[0], was)
    with opened(browser, saved.as_uri()) as alone:
        expect(alone.lens(1).locator('[data-part="edited"]')).to_have_text(words)
        expect(alone.lens(1).locator(".brush-row")).to_be_hidden()


def field(page: Opened, number: int) -> Any:
    return page.page.get_by_role("textbox", name=f"sentence {number}", exact=True)


def tell(page: Opened) -> None:
    """Open the editor, and write the story into it, line by line."""
    page.page.get_by_role("button", name="Story", exact=True).click()
    page.page.get_by_role("button", name="Clear").click()
    field(page, 1).fill(STORY[0])
    for number, text in enumerate(STORY[1:], start=2):
        field(page, number - 1).press("Enter")
        field(page, number).fill(text)
    page.page.get_by_role("textbox", name="Question").fill(QUESTION)


def expect_story(page: Opened, folder: Path, story: list[str]) -> None:
    """These sentences, each with the weight of every hop as Python computes it."""
    looks = saccade.load(folder, "cpu").look(story, QUESTION).trace.looks
    weights = [f"{float(look.weights[0, slot]):.2f}" for slot in range(len(story)) for look in looks]  # type: ignore[index]
    expect(page.page.locator(".story-editor tbody .story-hop")).to_have_text(weights)
    inputs = page.page.locator(".story-editor tbody input")
    assert inputs.evaluate_all("all => all.map((each) => each.value)") == story


def test_a_story_is_typed_moved_dragged_and_saved_without_a_server(browser: Any, tmp_path: Path) -> None:
    folder = save_story_model(tmp_path / "teller")
    seer = save_tiny(tmp_path / "seer", name="seer", preprocessing=Preprocessing((34, 34)))
    path = tmp_path / "page.html"
    path.write_text(offline_page([saccade.load(place, "cpu") for place in (seer, folder)]), encoding="utf-8")
    one, two, three = STORY
    with opened(browser, path.as_uri()) as page:
        page.settle()
        tell(page)
        expect_story(page, folder, STORY)
        field(page, 3).fill("Sandra went to the Zoo.")
        expect(page.page.locator(".story-editor u")).to_have_text("Zoo.")
        expect_story(page, folder, [one, two, "Sandra went to the Zoo."])
        field(page, 3).fill(three)
        page.page.get_by_role("button", name="Move sentence 1 down").click()
        expect_story(page, folder, [two, one, three])
        expect(page.page.get_by_role("button", name="Move sentence 2 down")).to_be_focused()  # it went along
        expect(page.page.locator(".story-spoken")).to_have_text("Moved to place 2 of 3.")
        field(page, 2).press("Alt+ArrowUp")
        expect(field(page, 1)).to_be_focused()
        expect_story(page, folder, STORY)
        grips = page.page.locator(".story-editor tbody .story-grip")
        first, last = (grips.nth(number).bounding_box() for number in (0, 2))
        page.page.mouse.move(first["x"] + 8, first["y"] + 8)
        page.page.mouse.down()
        page.page.mouse.move(last["x"] + 8, last["y"] + last["height"] - 2, steps=5)
        page.page.mouse.up()
        expect_story(page, folder, [two, three, one])
        page.settle()
        answer, saved = page.answers()[0], page.download("save-page", tmp_path)
    with opened(browser, saved.as_uri()) as alone:
        alone.wait_for(answer)
        expect(alone.page.locator("table.slots tbody th")).to_have_text([two, three, one, "empty slots (2)"])
        expect(alone.page.locator(".story-editor")).to_have_count(0)


def test_a_report_is_alive_as_a_file_and_what_it_saves_stands_alone(browser: Any, tmp_path: Path) -> None:
    live = live_part([saccade.load(name, "cpu") for name in LIVE])
    path = Report("Where the models looked", sections=[Section("One", "text")], live=live).save(tmp_path / "r.html")
    with opened(browser, path.as_uri(), width=1400) as page:
        page.wait_for("red", 0)
        page.wait_for("red", 1)
        expect(page.part("where")).to_have_text("Models run in this page")
        page.part("question-list").get_by_text("3", exact=True).click()
        page.wait_for("blue")
        page.drag((72, 25), (76, 30))
        page.settle()
        strip = Image.open(page.download("save-png", tmp_path))
        assert strip.width > 6 * 240  # the picture and five acts
        assert len(strip.convert("RGB").getcolors(1 << 20) or []) > 500
        record = page.download("save-record", tmp_path)
        saved = page.download("save-page", tmp_path)
        assert saved.name == "saccade-comparison-ask-3.html"
        page.part("question-list").get_by_text("7", exact=True).click()
        page.wait_for("red")
        page.part("record-file").set_input_files(record)
        page.wait_for("blue")
        expect(page.part("ask")).to_be_hidden()
        page.page.get_by_role("button", name="Compose").click()
        page.wait_for("red")
    with opened(browser, saved.as_uri()) as alone:
        alone.wait_for("blue", 0)
        alone.wait_for("blue", 1)
        expect(alone.page.locator("h1")).to_have_count(0)
        expect(alone.part("ask")).to_be_hidden()
        alone.part("act-slider").fill("1")
        expect(alone.lens().locator(".readout")).to_contain_text("stage2")
        again = alone.download("save-page", tmp_path / "again")
    assert again.read_text(encoding="utf-8").count("saccade-script") == saved.read_text("utf-8").count("saccade-script")
    with opened(browser, again.as_uri()) as third:
        third.wait_for("blue", 1)
