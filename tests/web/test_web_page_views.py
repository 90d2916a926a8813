"""Models of every kind, by their views alone: words, crops, choices and stories, in a viewer that has no model."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_browser import expect, opened, stage_pixels
from PIL import Image

from saccade.web.page import offline_page

pytestmark = [pytest.mark.web, pytest.mark.slow]


def encoded(*values: float) -> str:
    return base64.b64encode(np.array(values, dtype="<f4").tobytes()).decode()


def view(looks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A view on a picture of 40 × 20 pixels."""
    buffer = io.BytesIO()
    Image.new("RGB", (40, 20), (90, 90, 90)).save(buffer, "PNG")
    png = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    common = {"role": "multiplier", "norm": "softmax", "steps": 1, "dtype": "float32", "active": None, "gain": None,
              "choice": None, "emits": None, "box": None}  # fmt: skip
    return {
        "schema": "saccade.view/1", "model": "a model", "task": "caption", "question": None, "answer": "a dog",
        "confidence": 0.5, "alternatives": [], "labels": None, "words": None, "total": None, "evidence": None,
        "scores": None, "picture": {"width": 40, "height": 20, "png": png}, "looks": [{**common, **x} for x in looks],
        **more,
    }  # fmt: skip


def grid(**more: Any) -> dict[str, Any]:
    return {"name": "word", "kind": "soft", "grid": [1, 2], "frame": [[20, 0, 0], [0, 20, 0]], **more}


def test_words_of_a_caption_light_their_map(browser: Any, tmp_path: Path) -> None:
    said = view([grid(steps=2, weights=encoded(1, 0, 0.25, 0.75), active=[True, True])], words=["a", "dog"])
    path = tmp_path / "caption.html"
    path.write_text(offline_page(views=[said]), encoding="utf-8")
    with opened(browser, path.as_uri()) as page:
        page.wait_for("a dog")
        page.page.get_by_role("button", name="dog", exact=True).hover()
        expect(page.part("act-name")).to_have_text("word 2: dog (2 of 2)")
        expect(page.page.locator(".word[aria-current=true]")).to_have_text("dog")
        expect(page.page.get_by_role("button", name="word 1: a")).to_have_text("a")  # its thumbnail
        page.page.mouse.move(*page.stage_point(75, 50))
        expect(page.lens().locator(".readout")).to_have_text("word 2: dog · column 2, row 1 of 1×2 · weight 0.750")


def test_a_viewer_without_a_record_says_what_to_open(browser: Any, tmp_path: Path) -> None:
    path, saved = tmp_path / "viewer.html", tmp_path / "look.json"
    path.write_text(offline_page(), encoding="utf-8")
    saved.write_text(json.dumps(view([grid(weights=encoded(1, 0))])), encoding="utf-8")
    with opened(browser, path.as_uri(), width=390) as page:
        expect(page.page.get_by_role("heading", name="No record is open")).to_be_visible()
        expect(page.part("play")).to_be_hidden()
        with page.page.expect_file_chooser() as choosing:
            page.page.get_by_text("Open a record").click()
        choosing.value.set_files(saved)
        page.wait_for("a dog")
        expect(page.page.get_by_role("heading", name="No record is open")).to_be_hidden()
        expect(page.part("play")).to_be_visible()


def test_crops_choices_and_stories_are_drawn(browser: Any, tmp_path: Path) -> None:
    crop = {"name": "crop", "kind": "crop", "role": "crop", "grid": [4, 4], "weights": None, "box": [4, 4, 16, 16]}
    hard = grid(name="glimpse", kind="hard", weights=encoded(0.5, 0.5), choice=[1])
    story = {"name": "hop", "kind": "slots", "steps": 2, "slots": ["Mary went home.", "<i>John</i> left."],
             "weights": encoded(0.9, 0.1, 0.2, 0.8)}  # fmt: skip
    path = tmp_path / "viewer.html"
    path.write_text(offline_page(views=[view([crop, hard, story])]), encoding="utf-8")
    with opened(browser, path.as_uri()) as page:
        page.wait_for("a dog")
        page.part("act-slider").fill("0")
        expect(page.lens().locator(".readout")).to_contain_text("crop · crop crop")
        framed = stage_pixels(page)
        page.part("act-slider").fill("1")
        expect(page.lens().locator(".readout")).to_contain_text("glimpse")
        assert np.abs(framed - stage_pixels(page)).max() > 100
        cells = page.lens().locator("table.slots td").all_inner_texts()
        assert cells == ["0.900", "0.200", "0.100", "0.800"]
        expect(page.lens().locator("table.slots tbody th").nth(1)).to_have_text("<i>John</i> left.")
