"""What a visitor takes along from the page and brings to it: strips, records, saved pages, pictures of their own."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from carried_models import LIVE
from page_browser import Opened, expect, opened
from PIL import Image

import saccade

pytestmark = [pytest.mark.web, pytest.mark.slow]
CTX, *_ = LIVE


def test_the_strip_is_a_picture_of_every_look(page: Opened, tmp_path: Path) -> None:
    path = page.download("save-png", tmp_path)
    assert path.name == "saccade-comparison-ask-7.png"
    strip = Image.open(path)
    assert strip.width > 6 * 240  # the picture and five acts
    assert len(strip.convert("RGB").getcolors(1 << 20) or []) > 500


def test_a_record_opens_again(page: Opened, tmp_path: Path) -> None:
    page.page.keyboard.press("9")
    page.wait_for("white")
    path = page.download("save-record", tmp_path)
    page.page.keyboard.press("3")
    page.wait_for("blue")
    page.part("record-file").set_input_files(path)
    page.wait_for("white")
    expect(page.part("ask")).to_be_hidden()
    page.page.get_by_role("button", name="Compose").click()
    page.wait_for("blue")
    expect(page.part("ask")).to_be_visible()


def test_what_saccade_look_saved_opens_in_the_page(page: Opened, tmp_path: Path) -> None:
    picture = Image.new("RGB", (120, 80), (16, 98, 192))
    seen = saccade.load(CTX, "cpu").look(picture, ask=4)
    files = seen.save(tmp_path / "saved", "mine")
    alone = next(path for path in files if path.suffix == ".json")
    page.part("record-file").set_input_files(alone)
    expect(page.part("notice-text")).to_contain_text("together with mine.safetensors")
    page.part("record-file").set_input_files([alone, alone.with_suffix(".safetensors")])
    expect(page.page.locator(".lens")).to_have_count(1)
    page.wait_for(seen.answer)
    expect(page.lens().locator(".asked")).to_have_text("4 → ")
    expect(page.lens().locator(".thumbnail")).to_have_count(5)


def test_a_saved_page_stands_alone(page: Opened, browser: Any, tmp_path: Path) -> None:
    page.page.keyboard.press("3")
    page.wait_for("blue")
    page.settle()
    path = page.download("save-page", tmp_path)
    with opened(browser, path.as_uri()) as saved:
        saved.wait_for("blue", 0)
        saved.wait_for("blue", 1)
        expect(saved.part("ask")).to_be_hidden()
        saved.part("act-slider").fill("1")
        expect(saved.lens().locator(".readout")).to_contain_text("stage2")
        again = saved.download("save-page", tmp_path / "again")
        saved.part("record-file").set_input_files(saved.download("save-record", tmp_path))
        saved.wait_for("blue", 0)
    assert len(again.read_text(encoding="utf-8")) == pytest.approx(path.stat().st_size, rel=0.1)


@pytest.mark.parametrize("kind", ["paste", "drop"])
def test_a_picture_is_pasted_or_dropped(page: Opened, kind: str) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (60, 120), (16, 98, 192)).save(buffer, "PNG")
    page.page.evaluate(
        """([kind, data]) => {
          const bytes = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
          const carried = new DataTransfer();
          carried.items.add(new File([bytes], "mine.png", { type: "image/png" }));
          const stage = document.querySelector(".stage");
          const root = document.getElementById("saccade");
          const send = (event) => stage.dispatchEvent(event);
          if (kind === "paste") return send(new ClipboardEvent("paste", { clipboardData: carried, bubbles: true }));
          const options = { dataTransfer: carried, bubbles: true, cancelable: true };
          send(new DragEvent("dragover", options));
          if (!root.hasAttribute("data-dropping")) throw new Error("nothing shows that it can be dropped here");
          send(new DragEvent("drop", options));
          if (root.hasAttribute("data-dropping")) throw new Error("it still waits for a drop");
        }""",
        [kind, base64.b64encode(buffer.getvalue()).decode()],
    )
    expect(page.page.locator(".stage").first).to_have_attribute("width", "320")  # upright, as the picture is
    expect(page.part("digit-list")).to_be_hidden()
    page.settle()
    assert page.answers()[1] == "blue"  # as torch says; before it said red
