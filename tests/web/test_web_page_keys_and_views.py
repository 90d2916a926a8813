"""The page in a real browser, used by hand: keys, files, screens, models of other kinds, and what goes wrong."""

import base64
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_browser import Opened, expect, floats, opened, stage_pixels
from page_views import encoded, look, multiset, view
from PIL import Image
from web_models import LIVE, STORY, save_story_model, save_trained

import saccade
from saccade.web.page import offline_page
from tiny_models import save_tiny

pytestmark = [pytest.mark.web, pytest.mark.slow, pytest.mark.long]


def test_composing_by_keys(page: Opened, tmp_path: Path) -> None:
    def box() -> np.ndarray:
        mask = page.record(tmp_path)["evidence"]["mask_png"].partition(",")[2]
        rows, columns = np.nonzero(np.array(Image.open(io.BytesIO(base64.b64decode(mask))).convert("1")))
        return np.array([columns.min(), rows.min(), columns.max(), rows.max()])

    before = box()
    stage = page.page.locator(".stage").first
    stage.press("Shift+ArrowRight")
    stage.press("ArrowDown")
    page.settle()
    assert (box() - before).tolist() == [8, 2, 8, 2]
    stage.press("c")  # from red on to blue
    page.wait_for("blue")
    stage.press("Delete")
    expect(page.part("digit-list").locator("button")).to_have_count(4)
    expect(page.part("question-note")).to_contain_text("The scene has no 7")
    page.part("digit-list").get_by_label("Select the 3").press("Enter")
    page.settle()
    assert page.page.evaluate("document.activeElement.getAttribute('aria-label')") == "Select the 3"


@pytest.fixture
def asked(browser: Any, server: Any) -> Iterator[Opened]:
    """The page of a server with tiny models."""
    with opened(browser, f"http://127.0.0.1:{server.port}/") as watched:
        watched.settle()
        yield watched


def test_keys_move_the_brush_erase_and_paint(asked: Opened, tmp_path: Path) -> None:
    """The first arrow shows the brush on the peak; space erases there, shift and space paint, escape ends it."""
    own = floats(asked.record(tmp_path)["looks"][0])[0]
    asks = sum(url.endswith("/api/ask") for url in asked.asked)
    asked.lens().locator('[data-tool="erase"]').press("Enter")
    asked.frames()
    stage, spoken = asked.page.locator(".stage").first, asked.part("brush-spoken").first
    assert stage.get_attribute("role") == "application"
    stage.press("ArrowRight")
    row, column = np.unravel_index(own.argmax(), own.shape)
    expect(spoken).to_contain_text(f"column {column + 1} of {own.shape[1]}, row {row + 1} of {own.shape[0]}, weight")
    stage.press("Space")
    asked.settle()
    expect(spoken).to_contain_text("erased, ")
    assert floats(asked.record(tmp_path)["looks"][0])[0, row, column] == 0
    step = -1 if column else 1
    stage.press("ArrowLeft" if column else "ArrowRight")
    stage.press("Shift+Space")
    asked.settle()
    expect(spoken).to_contain_text("painted, ")
    painted = floats(asked.record(tmp_path)["looks"][0])[0]
    assert painted[row, column + step] == painted.max()
    stage.press("Escape")
    expect(asked.lens().locator('[data-tool="off"]')).to_have_attribute("aria-pressed", "true")
    assert sum(url.endswith("/api/ask") for url in asked.asked) == asks  # no digit was moved


def test_what_cannot_be_asked_and_a_server_that_has_gone_are_told(asked: Opened) -> None:
    asked.part("question-list").get_by_text("3", exact=True).click()
    asked.part("compare").select_option("words")
    refusal = "This model cannot be asked “3”. It can be asked: 0, 1, 2, north."
    expect(asked.lens(1).locator(".answer")).to_have_text(refusal)
    expect(asked.part("notice")).to_be_hidden()
    asked.lens(1).locator(".lens-head select").select_option("digits")
    expect(asked.lens(1).locator(".asked")).to_have_text("3 → ")
    asked.page.route("**/api/ask", lambda route: route.abort())
    asked.part("question-list").get_by_text("2", exact=True).click()
    expect(asked.part("notice-text")).to_contain_text("does not answer")
    asked.page.unroute("**/api/ask")
    asked.part("question-list").get_by_text("0", exact=True).click()
    expect(asked.part("notice")).to_be_hidden()
    asked.wrong.clear()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (800, "dark"), (1500, "light")])
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


def test_pictures_are_dropped_and_pasted_and_saved_looks_open(page: Opened, tmp_path: Path) -> None:
    script = """([kind, data]) => {
      const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
      const carried = new DataTransfer();
      carried.items.add(new File([bytes], "mine.png", { type: "image/png" }));
      const [stage, root] = [document.querySelector(".stage"), document.getElementById("saccade")];
      const send = (event) => stage.dispatchEvent(event);
      if (kind === "paste") return send(new ClipboardEvent("paste", { clipboardData: carried, bubbles: true }));
      const options = { dataTransfer: carried, bubbles: true, cancelable: true };
      send(new DragEvent("dragover", options));
      if (!root.hasAttribute("data-dropping")) throw new Error("nothing shows that it can be dropped here");
      send(new DragEvent("drop", options));
      if (root.hasAttribute("data-dropping")) throw new Error("it still waits for a drop");
    }"""
    for kind, size, width in (("drop", (120, 60), "640"), ("paste", (60, 120), "320")):
        buffer = io.BytesIO()
        Image.new("RGB", size, (16, 98, 192)).save(buffer, "PNG")
        page.page.evaluate(script, [kind, base64.b64encode(buffer.getvalue()).decode()])
        expect(page.page.locator(".stage").first).to_have_attribute("width", width)
        expect(page.part("digit-list")).to_be_hidden()
    page.settle()
    assert page.answers()[1] == "blue"  # as torch says; before it said red
    seen = saccade.load(LIVE[0], "cpu").look(Image.new("RGB", (120, 80), (16, 98, 192)), ask=4)
    record = next(path for path in seen.save(tmp_path / "saved", "mine") if path.suffix == ".json")
    page.part("record-file").set_input_files(record)
    expect(page.part("notice-text")).to_contain_text("together with mine.safetensors")
    page.part("record-file").set_input_files([record, record.with_suffix(".safetensors")])
    expect(page.page.locator(".lens")).to_have_count(1)
    page.wait_for(seen.answer)
    expect(page.lens().locator(".thumbnail")).to_have_count(5)


def test_models_open_with_what_they_were_trained_on(browser: Any, tmp_path: Path) -> None:
    """A shipped picture or a fitting scene, until somebody opens a picture: that stays."""
    from live_server import serving

    kinds = {"asked": "mref", "captioned": "scenes", "reads": "mnist-multiset", "outside": "mbg"}
    folders = [save_trained(tmp_path / name, data, name, ("0", "1", "2", "3")) for name, data in kinds.items()]
    things = save_tiny(tmp_path / "vg", name="things", queries=("back", "crown", "nape", "wing"), data={"name": "vg"})
    with serving(things, *folders) as served, opened(browser, f"http://127.0.0.1:{served.port}/") as page:
        root, model = page.page.locator("#saccade"), page.lens().locator(".lens-head select")
        page.settle()
        expect(root).to_have_attribute("data-mode", "picture")
        assert sum(url.endswith("/api/examples/cat") for url in page.asked) == 1
        for name, example in (("asked", "Five digits"), ("captioned", "Two digits"), ("reads", "A multiset"),
                              ("outside", "On a photograph")):  # fmt: skip
            model.select_option(name)
            expect(page.part("example")).to_have_value(example)
            expect(page.lens().locator(".advice")).to_be_hidden()
            page.settle()
        Image.new("RGB", (60, 40), (10, 200, 30)).save(tmp_path / "mine.png")
        page.part("picture-file").set_input_files(tmp_path / "mine.png")
        expect(page.page.locator(".stage").first).to_have_attribute("height", "427")
        model.select_option("asked")
        page.settle()
        expect(root).to_have_attribute("data-mode", "picture")


def test_the_server_answers_the_story_editor_on_a_narrow_screen(browser: Any, tmp_path: Path) -> None:
    from live_server import serving

    folders = [save_story_model(tmp_path / "a", "teller"), save_story_model(tmp_path / "b", "gates", "dmn")]
    with (
        serving(*folders) as server,
        opened(browser, f"http://127.0.0.1:{server.port}/", width=390, height=844) as page,
    ):
        expect(page.page.locator(".story-editor")).to_be_visible()  # there is nothing else to show
        expect(page.page.get_by_role("button", name="Compose")).to_be_hidden()
        page.settle()
        assert page.page.evaluate("document.documentElement.scrollWidth") == 390  # nothing sticks out
        page.lens().locator(".lens-head select").select_option("gates")
        expect(page.page.locator(".story-editor tfoot th")).to_have_text("(end of passes)")  # a slot of its own
        page.page.get_by_role("button", name="Clear").click()
        expect(page.page.locator(".story-editor tbody tr")).to_have_count(1)
        expect(page.lens().locator(".answer")).to_have_text("Write a sentence.")


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens a page without models that carries these views."""
    with ExitStack() as stack:

        def shown(*views: dict[str, Any], **options: Any) -> Opened:
            path = tmp_path / "viewer.html"
            path.write_text(offline_page(views=views), encoding="utf-8")
            page = stack.enter_context(opened(browser, path.as_uri(), **options))
            if views:
                page.wait_for(views[0]["answer"])
            return page

        yield shown


def test_a_viewer_says_what_to_open_and_words_light_their_maps(show: Callable[..., Opened], tmp_path: Path) -> None:
    words = look("word", steps=2, weights=encoded(1, 0, 0.25, 0.75), active=[True, True])
    saved = tmp_path / "look.json"
    saved.write_text(json.dumps(view([words], kind="sentence", words=["a", "dog"])), encoding="utf-8")
    page = show(width=390)
    expect(page.page.get_by_role("heading", name="No record is open")).to_be_visible()
    expect(page.part("play")).to_be_hidden()
    with page.page.expect_file_chooser() as choosing:
        page.page.get_by_text("Open a record").click()
    choosing.value.set_files(saved)
    page.wait_for("a dog")
    page.page.get_by_role("button", name="dog", exact=True).hover()
    expect(page.part("act-name")).to_have_text("word 2: dog (2 of 2)")
    expect(page.page.locator(".word[aria-current=true]")).to_have_text("dog")
    page.page.mouse.move(*page.stage_point(75, 50))
    expect(page.lens().locator(".readout")).to_have_text("word 2: dog · column 2, row 1 of 1×2 · weight 0.750")


def test_crops_choices_and_stories_are_drawn(show: Callable[..., Opened]) -> None:
    crop = look("crop", kind="crop", role="crop", grid=[4, 4], weights=None, box=[4, 4, 16, 16])
    hard = look("glimpse", kind="hard", weights=encoded(0.5, 0.5), choice=[1])
    story = look("hop", kind="slots", steps=2, grid=None, slots=[STORY[0], "<i>John</i> left."],
                 weights=encoded(0.9, 0.1, 0.2, 0.8))  # fmt: skip
    page = show(view([crop, hard, story]))
    page.part("act-slider").fill("0")
    expect(page.lens().locator(".readout")).to_contain_text("crop · crop crop")
    framed = stage_pixels(page)
    page.part("act-slider").fill("1")
    expect(page.lens().locator(".readout")).to_contain_text("glimpse")
    assert np.abs(framed - stage_pixels(page)).max() > 100
    assert page.lens().locator("table.slots td").all_inner_texts() == ["0.900", "0.200", "0.100", "0.800"]
    expect(page.lens().locator("table.slots tbody th").nth(1)).to_have_text("<i>John</i> left.")


def test_every_label_has_a_row_of_looks_and_glimpses_are_dots_in_order(show: Callable[..., Opened]) -> None:
    """The first glimpse fell on the cell at (5, 5), the second on that at (35, 35) of 40 × 40 pixels."""
    page = show(multiset())
    rows = page.page.locator(".beat")
    expect(page.page.locator(".beat h4 strong")).to_have_text(["3", "7", "3", "all"])
    expect(page.page.locator(".beat h4 span")).to_have_text(["90 %", "80 %", "70 %", ""])
    names = ["saliency before", "covert mask", "priority map", "glimpse 1", "glimpse 2", "saliency after"]
    expect(rows.nth(1).locator(".thumbnail span")).to_have_text(names)
    expect(rows.nth(1)).to_have_attribute("aria-label", "7, step 2 of 3")

    def bright(x: float, y: float) -> float:
        pixels = stage_pixels(page)
        height, width = pixels.shape[:2]
        at, reach = (round(y / 40 * height), round(x / 40 * width)), width // 60
        return float(pixels[at[0] - reach : at[0] + reach, at[1] - reach : at[1] + reach].max())

    rows.nth(0).get_by_text("glimpse 1").click()
    expect(page.part("act-name")).to_have_text("3 · glimpse 1 · step 1 of 3")
    assert bright(5, 5) > 250
    assert bright(35, 35) < 200
    rows.nth(0).get_by_text("glimpse 2").click()
    expect(page.part("act-name")).to_have_text("3 · glimpse 2 · step 1 of 3")
    assert bright(35, 35) > 250
    assert 120 < bright(5, 5) < 250  # the first is still there, paler
