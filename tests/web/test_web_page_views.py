"""Models of every kind, by their views alone: words, crops, choices, stories and looks that repeat label by label."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_browser import Opened, expect, opened, stage_pixels
from PIL import Image

from saccade.web.page import offline_page

pytestmark = [pytest.mark.web, pytest.mark.slow]


def encoded(*values: float) -> str:
    return base64.b64encode(np.array(values, dtype="<f4").tobytes()).decode()


def view(looks: list[dict[str, Any]], size: tuple[int, int] = (40, 20), **more: Any) -> dict[str, Any]:
    """A view on a grey picture of ``size`` (width, height)."""
    buffer = io.BytesIO()
    Image.new("RGB", size, (75, 75, 75)).save(buffer, "PNG")
    png = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    common = {"role": "multiplier", "norm": "softmax", "steps": 1, "dtype": "float32", "active": None, "gain": None,
              "choice": None, "emits": None, "box": None}  # fmt: skip
    return {
        "schema": "saccade.view/1", "model": "a model", "task": "caption", "question": None, "answer": "a dog",
        "confidence": 0.5, "alternatives": [], "labels": None, "words": None, "total": None, "evidence": None,
        "scores": None, "picture": {"width": size[0], "height": size[1], "png": png},
        "looks": [{**common, **x} for x in looks], **more,
    }  # fmt: skip


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


def grid(**more: Any) -> dict[str, Any]:
    return {"name": "word", "kind": "soft", "grid": [1, 2], "frame": [[20, 0, 0], [0, 20, 0]], **more}


def test_words_of_a_caption_light_their_map(show: Callable[..., Opened]) -> None:
    said = view([grid(steps=2, weights=encoded(1, 0, 0.25, 0.75), active=[True, True])], words=["a", "dog"])
    page = show(said)
    page.page.get_by_role("button", name="dog", exact=True).hover()
    expect(page.part("act-name")).to_have_text("word 2: dog (2 of 2)")
    expect(page.page.locator(".word[aria-current=true]")).to_have_text("dog")
    expect(page.page.get_by_role("button", name="word 1: a")).to_have_text("a")  # its thumbnail
    page.page.mouse.move(*page.stage_point(75, 50))
    expect(page.lens().locator(".readout")).to_have_text("word 2: dog · column 2, row 1 of 1×2 · weight 0.750")


def test_a_viewer_without_a_record_says_what_to_open(show: Callable[..., Opened], tmp_path: Path) -> None:
    saved = tmp_path / "look.json"
    saved.write_text(json.dumps(view([grid(weights=encoded(1, 0))])), encoding="utf-8")
    page = show(width=390)
    expect(page.page.get_by_role("heading", name="No record is open")).to_be_visible()
    expect(page.part("play")).to_be_hidden()
    with page.page.expect_file_chooser() as choosing:
        page.page.get_by_text("Open a record").click()
    choosing.value.set_files(saved)
    page.wait_for("a dog")
    expect(page.page.get_by_role("heading", name="No record is open")).to_be_hidden()
    expect(page.part("play")).to_be_visible()


def test_crops_choices_and_stories_are_drawn(show: Callable[..., Opened]) -> None:
    crop = {"name": "crop", "kind": "crop", "role": "crop", "grid": [4, 4], "weights": None, "box": [4, 4, 16, 16]}
    hard = grid(name="glimpse", kind="hard", weights=encoded(0.5, 0.5), choice=[1])
    story = {"name": "hop", "kind": "slots", "steps": 2, "slots": ["Mary went home.", "<i>John</i> left."],
             "weights": encoded(0.9, 0.1, 0.2, 0.8)}  # fmt: skip
    page = show(view([crop, hard, story]))
    page.part("act-slider").fill("0")
    expect(page.lens().locator(".readout")).to_contain_text("crop · crop crop")
    framed = stage_pixels(page)
    page.part("act-slider").fill("1")
    expect(page.lens().locator(".readout")).to_contain_text("glimpse")
    assert np.abs(framed - stage_pixels(page)).max() > 100
    cells = page.lens().locator("table.slots td").all_inner_texts()
    assert cells == ["0.900", "0.200", "0.100", "0.800"]
    expect(page.lens().locator("table.slots tbody th").nth(1)).to_have_text("<i>John</i> left.")


SIDE = 4  # cells each way, of 10 pixels


def look(name: str, steps: int, active: int, **more: Any) -> dict[str, Any]:
    """A look whose step t has all its weight on cell t."""
    weights = np.eye(SIDE * SIDE)[:steps].reshape(steps, SIDE, SIDE)
    return {
        "name": name, "kind": "soft", "role": "input", "norm": "none", "steps": steps, "grid": [SIDE, SIDE],
        "frame": [[10, 0, 0], [0, 10, 0]], "weights": encoded(*weights.flatten()), "dtype": "float32",
        "active": [step < active for step in range(steps)], "gain": None, "choice": None, "emits": None, "box": None,
        **more,
    }  # fmt: skip


def multiset() -> dict[str, Any]:
    """Three labels in four steps, two glimpses each; the last two glimpses fell on one cell."""
    return view(
        [
            look("saliency", 4, 3),
            look("covert", 4, 3, role="multiplier"),
            look("priority", 4, 3),
            look("glimpse", 8, 6, kind="hard", role="policy", choice=[0, 15, 5, 10, 6, 6, 0, 0]),
            look("inhibited", 4, 3),
        ],
        (40, 40),
        answer="{3, 3, 7}",
        total={"grid": [1, 1], "frame": [[40, 0, 0], [0, 40, 0]], "weights": encoded(1), "dtype": "float32"},
        labels=[["3", 0.9], ["7", 0.8], ["3", 0.7]],
    )


def acts(page: Any, given: dict[str, Any]) -> list[list[Any]]:
    script = (
        "async (given) => { const m = await import('/js/acts.js');"
        "return m.actsOf(given).map((act) => [act.title, act.place ?? null, act.path ?? null]); }"
    )
    return page.page.evaluate(script, given)


def test_acts_go_label_by_label_in_the_order_of_the_trace(run: Callable[..., Any]) -> None:
    script = "return m.actsOf(given).map((act) => [act.title, act.place ?? null, act.path ?? null])"
    found = run("acts", script, multiset())
    assert found[:6] == [
        ["3 · saliency before", "step 1 of 3", None],
        ["3 · covert mask", "step 1 of 3", None],
        ["3 · priority map", "step 1 of 3", None],
        ["3 · glimpse 1", "step 1 of 3", [0]],
        ["3 · glimpse 2", "step 1 of 3", [0, 15]],
        ["3 · saliency after", "step 1 of 3", None],
    ]
    assert [title for title, *_ in found[6:12]] == [title.replace("3 ·", "7 ·") for title, *_ in found[:6]]
    assert found[15:17] == [["3 · glimpse 1", "step 3 of 3", [6]], ["3 · glimpse 2", "step 3 of 3", [6, 6]]]
    assert found[18:] == [["total", None, None]]


def test_every_label_has_a_row_of_named_looks(show: Callable[..., Opened]) -> None:
    page = show(multiset())
    rows = page.page.locator(".beat")
    expect(rows).to_have_count(4)
    expect(page.page.locator(".beat h4 strong")).to_have_text(["3", "7", "3", "all"])
    expect(page.page.locator(".beat h4 span")).to_have_text(["90 %", "80 %", "70 %", ""])
    names = ["saliency before", "covert mask", "priority map", "glimpse 1", "glimpse 2", "saliency after"]
    expect(rows.nth(1).locator(".thumbnail span")).to_have_text(names)
    expect(rows.nth(3).locator(".thumbnail span")).to_have_text(["total"])
    expect(rows.nth(1)).to_have_attribute("aria-label", "7, step 2 of 3")


def test_glimpses_are_dots_in_order(show: Callable[..., Opened]) -> None:
    """The first fell on the cell at (5, 5), the second on that at (35, 35) of 40 × 40 pixels."""
    page = show(multiset())

    def bright(x: float, y: float) -> float:
        pixels = stage_pixels(page)
        height, width = pixels.shape[:2]
        at, reach = (round(y / 40 * height), round(x / 40 * width)), width // 60
        return float(pixels[at[0] - reach : at[0] + reach, at[1] - reach : at[1] + reach].max())

    row = page.page.locator(".beat").nth(0)
    row.get_by_text("glimpse 1").click()
    expect(page.part("act-name")).to_have_text("3 · glimpse 1 · step 1 of 3")
    assert bright(5, 5) > 250
    assert bright(35, 35) < 200
    row.get_by_text("glimpse 2").click()
    expect(page.part("act-name")).to_have_text("3 · glimpse 2 · step 1 of 3")
    assert bright(35, 35) > 250
    assert 120 < bright(5, 5) < 250  # the first is still there, paler
