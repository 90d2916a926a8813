"""The JSON that the page draws holds what the trace holds; the page as one file under a policy of its own."""

import base64
import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from page_browser import floats
from PIL import Image
from web_models import LIVE

import saccade
from saccade import geometry
from saccade.config import to_dict
from saccade.data.pictures.reading import Picture
from saccade.errors import ConfigError
from saccade.families import models
from saccade.families.page import matrix
from saccade.models.facts import Preprocessing
from saccade.predict import Predictor
from saccade.sighting import Sighting
from saccade.trace import Answer, AttentionTrace, Look
from saccade.web.page import STATIC, bundle, offline_page, page_model
from saccade.web.views import TOTAL_SIDE, view_of
from tiny_models import tiny_config, tiny_facts

EVEN = torch.full((1, 2, 6), 1 / 12)


def seen(*looks: Look, size: tuple[int, int] = (40, 60), **trace: Any) -> Sighting:
    of_picture = AttentionTrace(looks, image_size=torch.tensor([size]), **trace)
    answer = Answer("red", 0.75, alternatives=(("blue", 0.25),))
    return Sighting(answer, "7", Picture(Image.new("RGB", (size[1], size[0])), "a.png"), of_picture, "tiny")


def soft(weights: torch.Tensor = EVEN, frame: torch.Tensor | None = None, **more: Any) -> Look:
    frame = geometry.scale_shift((10.0, 20.0), (0.0, 0.0)) if frame is None else frame
    return Look("stage1", "soft", "multiplier", weights, norm="softmax", frame=frame, **more)


def test_weights_arrive_bit_for_bit_and_doubles_become_single() -> None:
    for kind, sent in ((torch.float32, "float32"), (torch.float16, "float16"), (torch.float64, "float32")):
        weights = torch.rand(1, 2, 6).softmax(-1).to(kind)
        look = view_of(seen(soft(weights)))["looks"][0]
        assert (look["grid"], look["steps"], look["dtype"]) == ([2, 6], 1, sent)
        assert floats(look).tobytes() == weights.to(getattr(torch, sent)).numpy().tobytes()


def test_frames_lead_to_pixels_of_the_original_picture() -> None:
    """Cells of 10 px in an input that was shrunk by two and moved by five: cells of 20 px from −10."""
    canvas = geometry.scale_shift((2.0, 2.0), (-10.0, 0.0))[None]
    frame = geometry.scale_shift((10.0, 10.0), (0.0, 3.0))
    look = view_of(seen(soft(torch.full((1, 2, 2), 0.25), frame), canvas=canvas))["looks"][0]
    assert look["frame"] == [[20.0, 0.0, -10.0], [0.0, 20.0, 6.0]]


def test_the_total_of_gates_is_their_product_and_that_of_a_large_picture_small() -> None:
    frame = geometry.scale_shift((30.0, 40.0), (0.0, 0.0))
    gates = [Look(f"stage{n}", "gate", "multiplier", torch.tensor([[[0.5, 0.25]]]), "sigmoid", frame) for n in (1, 2)]
    total = view_of(seen(*gates, total="product"))["total"]
    assert (total["grid"], total["frame"]) == ([40, 60], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert floats(total)[:, 0] == pytest.approx(0.25)  # left of the first centre its weight goes on
    assert floats(total)[:, 59] == pytest.approx(0.0625)
    large = view_of(seen(soft(), size=(300, 1200)))["total"]
    assert (large["grid"], large["frame"]) == ([32, TOTAL_SIDE], [[1200 / 128, 0.0, 0.0], [0.0, 300 / 32, 0.0]])


def test_steps_keep_what_belongs_to_each() -> None:
    look = soft(
        torch.rand(1, 3, 2, 2),
        gain=torch.tensor([[0.5, 1.0, math.nan]]),
        active=torch.tensor([[True, True, False]]),
        emits=torch.tensor([[4, 5, 0]]),
        choice=torch.tensor([[0, 3, 1]]),
    )
    entry = view_of(seen(look, total="mean"))["looks"][0]
    assert floats(entry).shape == (3, 2, 2)
    assert entry["active"] == [True, True, False]
    assert entry["gain"] == [0.5, 1.0, None]  # JSON has no word for not-a-number
    assert (entry["emits"], entry["choice"]) == ([4, 5, 0], [0, 3, 1])


def test_a_crop_has_the_upright_box_around_it_and_no_weights() -> None:
    straight = geometry.crop_frame(torch.tensor([10.0, 4.0, 50.0, 24.0]), (8, 8))
    quarter = torch.tensor([[0.0, -1.0, 30.0], [1.0, 0.0, 5.0]], dtype=torch.float64)  # (x, y) → (30 − y, 5 + x)
    for frame, grid, box in ((straight, (8, 8), [10.0, 4.0, 50.0, 24.0]), (quarter, (8, 6), [22.0, 5.0, 30.0, 11.0])):
        look = view_of(seen(Look("crop", "crop", "crop", frame=frame, grid=grid)))["looks"][0]
        assert (look["weights"], look["dtype"], look["grid"], look["box"]) == (None, None, list(grid), box)


def predictor(name: str, **changes: Any) -> Predictor:
    spec, config = models()[name], tiny_config(name, **changes)
    facts = tiny_facts(architecture=name, model=to_dict(config), preprocessing=Preprocessing((62, 68)))
    return Predictor(spec.load()(config), facts, name="tiny")


def restored(stored: dict[str, Any]) -> torch.Tensor:
    """The matrix as the engine reads it."""
    data = base64.b64decode(stored["values"])
    if stored["type"] == "float16":
        numbers = np.frombuffer(data, "<f2").astype(np.float64)
    else:
        scales = np.frombuffer(base64.b64decode(stored["scales"]), "<f4").astype(np.float64)
        numbers = np.frombuffer(data, "<i2") * scales.repeat(stored["columns"])
    return torch.from_numpy(numbers.copy()).reshape(stored["rows"], stored["columns"])


def test_half_precision_is_kept_bit_by_bit() -> None:
    numbers = torch.tensor([[1.0, -0.333251953125], [2.0**-24, 65504.0]])  # a third and the smallest that it has
    stored = matrix(numbers)
    assert stored["type"] == "float16"
    assert torch.equal(restored(stored), numbers.double())


@given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=3, max_size=3), min_size=1, max_size=4))
def test_no_number_is_off_by_more_than_half_a_step_of_its_row(rows: list[list[float]]) -> None:
    numbers = torch.tensor([*rows, [1 / 3, -1.0, 0.0]])
    stored = matrix(numbers)
    assert stored["type"] == "int16"
    step = numbers.double().abs().amax(1, keepdim=True) / 32767
    assert bool(((restored(stored) - numbers.double()).abs() <= step * 0.501 + 1e-37).all())


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("hard", {}, r"'tiny' \(hard\) does not run inside a page; soft and hattnet do.*saccade serve"),
        ("soft", {"backbone": "mobilenetv2", "through": "block7"}, "'tiny' has the backbone mobilenetv2"),
        ("hattnet", {"hidden": 6}, "'tiny' has 8 channels and 6 hidden units, no multiples of 4"),
    ],
)
def test_what_the_page_cannot_compute_is_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        page_model(predictor(name, **changes))


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="saccade-data">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


def write(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, encoding="utf-8")
    return folder / "main.js"


def test_what_cannot_be_bundled_is_refused(tmp_path: Path) -> None:
    for text in ('import one from "./one.js";', 'import { one } from "one";', "export default 3;",
                 'export { one } from "./one.js";', 'const text = "</script>";'):  # fmt: skip
        with pytest.raises(ConfigError, match=re.escape(text[-8:])):
            bundle(write(tmp_path, main=f"{text}\n", one="export const one = 1;\n"))


def test_no_module_makes_markup_or_code_of_text() -> None:
    unsafe = re.compile(r"innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?:|<html|<body")
    texts = {path.name: path.read_text("utf-8") for path in (STATIC / "js").rglob("*.js")}
    assert len(texts) > 20  # or they were looked for in the wrong place
    assert not [name for name, text in texts.items() if unsafe.search(text)]


def test_a_page_with_its_models_is_one_small_file_under_a_policy_of_its_own() -> None:
    carried = [saccade.load(name, "cpu") for name in LIVE]
    page = offline_page(carried)
    assert len(page.encode()) <= 600_000
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    style = re.search(r"<style[^>]*>(.*?)</style>", page, re.DOTALL)
    script = re.search(r'<script id="saccade-script">(.*?)</script>', page, re.DOTALL)
    assert policy
    assert style
    assert script
    digests = [base64.b64encode(hashlib.sha256(part[1].encode()).digest()).decode() for part in (style, script)]
    rules = dict(rule.split(" ", 1) for rule in policy[1].split("; "))
    assert [rules["style-src"], rules["script-src"]] == [f"'sha256-{digest}'" for digest in digests]
    assert (rules["default-src"], rules["worker-src"]) == ("'none'", "blob:")
    assert not re.search(r"https?://|<(link|iframe|object|img)\b", page)
    assert not re.search(r"\son\w+=", page.split('<script type="application/json"')[0])
    data = data_of(page)
    assert policy[0] in data["document"]  # that of the pages it saves
    assert [model["sha256"] for model in data["weights"]] == [predictor.facts.sha256 for predictor in carried]
    assert "onmessage" in data["worker"]


def test_a_page_without_models_is_a_viewer_that_carries_views() -> None:
    hostile = {"schema": "saccade.view/1", "model": "</script><script>alert(1)</script>"}
    page = offline_page(views=[hostile])
    data = data_of(page)
    assert (data["views"], data["weights"], data["worker"]) == ([hostile], [], None)
    assert page.count("</script>") == 2
    assert len(page.encode()) < 150_000
