"""The brush on the served page: attention is erased and painted, the answer follows, and what was edited is told."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page_browser import Opened, expect, floats, opened

from saccade.config import to_dict
from saccade.models.folder import save_model
from saccade.models.hattnet import HAttNetModel
from tiny_models import save_tiny, tiny_config, tiny_facts, tiny_model

pytestmark = [pytest.mark.web, pytest.mark.slow]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One soft attention, and gates before one."""
    from live_server import serving

    folder = tmp_path_factory.mktemp("brush")
    queries = tuple(str(digit) for digit in range(4))
    save_tiny(folder / "soft", name="soft", queries=queries)
    torch.manual_seed(3)
    model = tiny_model(HAttNetModel)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)  # so that gates and answers differ from place to place
    facts = tiny_facts(architecture="hattnet", model=to_dict(tiny_config(HAttNetModel)), name="gates", queries=queries)
    save_model(model, folder / "gates", facts)
    with serving(folder / "soft", folder / "gates") as running:
        yield running


@pytest.fixture
def page(browser: Any, served: Any) -> Iterator[Opened]:
    with opened(browser, f"http://127.0.0.1:{served.port}/") as watched:
        watched.settle()
        yield watched


def edits(page: Opened) -> int:
    return sum(url.endswith("/api/edit") for url in page.asked)


def stroke(page: Opened, *points: tuple[float, float]) -> None:
    page.page.mouse.move(*page.stage_point(*points[0]))
    page.page.mouse.down()
    for point in points[1:]:
        page.page.mouse.move(*page.stage_point(*point), steps=4)
    page.page.mouse.up()
    page.settle()


def tool(page: Opened, name: str) -> None:
    page.lens().locator(f'[data-tool="{name}"]').click()
    page.frames()


def test_erased_attention_is_answered_told_saved_and_reset(page: Opened, tmp_path: Path) -> None:
    own = page.record(tmp_path)
    before = floats(own["looks"][0])[0]
    tool(page, "erase")
    stroke(page, (5, 5), (50, 5), (95, 5))  # the first row of cells
    assert edits(page) > 0
    expect(page.part("edited")).to_contain_text("Without the edit: " + own["answer"])
    edited = page.record(tmp_path)
    after = floats(edited["looks"][0])[0]
    assert bool((after[0] == 0).all())
    np.testing.assert_allclose(after[1:], before[1:] / before[1:].sum(), rtol=1e-4)  # a softmax keeps its sum
    name = own["looks"][0]["name"]
    assert edited["edited"]["looks"][name]["moved"] == pytest.approx(float(before[0].sum()), abs=1e-3)
    assert edited["edited"]["unedited"]["answer"] == own["answer"]
    assert edited["confidence"] != own["confidence"]
    page.part("brush-reset").click()
    page.settle()
    expect(page.part("edited")).to_be_hidden()
    again = page.record(tmp_path)
    assert (again["answer"], again["confidence"]) == (own["answer"], own["confidence"])
    np.testing.assert_array_equal(floats(again["looks"][0]), floats(own["looks"][0]))


def test_keys_move_the_brush_erase_and_paint(page: Opened, tmp_path: Path) -> None:
    """The first arrow shows the brush on the peak; space erases there, shift and space paint, escape ends it."""
    own = floats(page.record(tmp_path)["looks"][0])[0]
    scenes = [url for url in page.asked if url.endswith("/api/ask")]
    page.lens().locator('[data-tool="erase"]').focus()
    page.page.keyboard.press("Enter")
    page.frames()
    stage = page.page.locator(".stage").first
    assert stage.get_attribute("role") == "application"
    assert "arrow keys move the brush" in stage.get_attribute("aria-label")
    stage.focus()
    page.page.keyboard.press("ArrowRight")
    row, column = np.unravel_index(own.argmax(), own.shape)
    spoken = page.part("brush-spoken").first
    expect(spoken).to_contain_text(f"column {column + 1} of {own.shape[1]}, row {row + 1} of {own.shape[0]}, weight")
    page.page.keyboard.press("Space")
    page.settle()
    expect(spoken).to_contain_text("erased, ")
    assert floats(page.record(tmp_path)["looks"][0])[0, row, column] == 0
    step = -1 if column else 1
    stage.focus()
    page.page.keyboard.press("ArrowLeft" if column else "ArrowRight")
    expect(spoken).to_contain_text(f"column {column + step + 1} of")
    page.page.keyboard.press("Shift+Space")
    page.settle()
    expect(spoken).to_contain_text("painted, ")
    painted = floats(page.record(tmp_path)["looks"][0])[0]
    assert painted[row, column + step] == painted.max()
    stage.focus()
    page.page.keyboard.press("Escape")
    expect(page.lens().locator('[data-tool="off"]')).to_have_attribute("aria-pressed", "true")
    assert [url for url in page.asked if url.endswith("/api/ask")] == scenes  # no digit was moved


def test_a_saved_page_tells_what_was_edited_and_has_no_brush(page: Opened, browser: Any, tmp_path: Path) -> None:
    tool(page, "erase")
    stroke(page, (5, 5), (95, 5))
    told = page.part("edited").inner_text()
    saved = page.download("save-page", tmp_path)
    assert saved.stem.endswith("-edited")
    with opened(browser, saved.as_uri()) as alone:
        expect(alone.part("edited")).to_have_text(told)
        expect(alone.page.locator(".brush-row")).to_be_hidden()
