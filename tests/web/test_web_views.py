"""The JSON that the page draws holds exactly what the trace holds, in the picture's own coordinates."""

from __future__ import annotations

import base64
import io
import json
import math

import numpy as np
import pytest
import torch
from PIL import Image

from saccade import geometry
from saccade.answer import Answer
from saccade.data.pictures.reading import Picture
from saccade.sighting import Sighting
from saccade.trace import AttentionTrace, Look
from saccade.web.views import TOTAL_SIDE, mask_url, picture_url, view_of


def sighting(*looks: Look, size: tuple[int, int] = (40, 60), canvas: torch.Tensor | None = None, **more) -> Sighting:
    trace_values = {key: more.pop(key) for key in ("total", "meta") if key in more}
    trace = AttentionTrace(looks, canvas=canvas, image_size=torch.tensor([size]), **trace_values)
    said = Answer("red", 0.75, alternatives=(("blue", 0.25),), **more)
    return Sighting(said, "7", Picture(Image.new("RGB", (size[1], size[0])), "a.png"), trace, "tiny")


def soft(weights: torch.Tensor, frame: torch.Tensor | None = None, **more) -> Look:
    frame = geometry.scale_shift((10.0, 20.0), (0.0, 0.0)) if frame is None else frame
    return Look("stage1", "soft", "multiplier", weights, norm="softmax", frame=frame, **more)


def floats(entry: dict) -> np.ndarray:
    return np.frombuffer(base64.b64decode(entry["weights"]), {"float32": "<f4", "float16": "<f2"}[entry["dtype"]])


def decoded(url: str) -> np.ndarray:
    head, _, data = url.partition(",")
    assert head == "data:image/png;base64"
    return np.array(Image.open(io.BytesIO(base64.b64decode(data)), formats=["PNG"]))


def test_an_answer_in_plain_values() -> None:
    view = view_of(sighting(soft(torch.full((1, 2, 6), 1 / 12))), family="question")
    assert view["schema"] == "saccade.view/1"
    assert (view["model"], view["family"], view["question"], view["answer"]) == ("tiny", "question", "7", "red")
    assert view["kind"] == "label"
    assert view["picture"] == {"name": "a.png", "width": 60, "height": 40, "png": None}
    assert view["confidence"] == 0.75
    assert view["alternatives"] == [["blue", 0.25]]
    assert view["labels"] is view["words"] is view["evidence"] is view["scores"] is None
    json.dumps(view, allow_nan=False)


def test_weights_arrive_bit_for_bit_and_doubles_become_single() -> None:
    for kind, sent in ((torch.float32, "float32"), (torch.float16, "float16"), (torch.float64, "float32")):
        weights = torch.rand(1, 2, 6).softmax(-1).to(kind)
        look = view_of(sighting(soft(weights)))["looks"][0]
        assert (look["grid"], look["steps"], look["dtype"]) == ([2, 6], 1, sent)
        assert floats(look).tobytes() == weights.to(getattr(torch, sent)).numpy().tobytes()


def test_frames_lead_to_pixels_of_the_original_picture() -> None:
    """Cells of 10 px in an input that was shrunk by two and moved by five: cells of 20 px from −10."""
    canvas = geometry.scale_shift((2.0, 2.0), (-10.0, 0.0))[None]
    frame = geometry.scale_shift((10.0, 10.0), (0.0, 3.0))
    look = view_of(sighting(soft(torch.full((1, 2, 2), 0.25), frame), canvas=canvas))["looks"][0]
    assert look["frame"] == [[20.0, 0.0, -10.0], [0.0, 20.0, 6.0]]


def test_the_total_of_gates_is_their_product_over_the_picture() -> None:
    frame = geometry.scale_shift((30.0, 40.0), (0.0, 0.0))
    gates = [Look(f"stage{n}", "gate", "multiplier", torch.tensor([[[0.5, 0.25]]]), "sigmoid", frame) for n in (1, 2)]
    total = view_of(sighting(*gates, total="product"))["total"]
    assert total["grid"] == [40, 60]
    assert total["frame"] == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    values = floats(total).reshape(40, 60)
    assert values[:, 0] == pytest.approx(0.25)  # left of the first centre its weight goes on
    assert values[:, 59] == pytest.approx(0.0625)


def test_the_total_of_a_large_picture_is_small() -> None:
    total = view_of(sighting(soft(torch.full((1, 2, 6), 1 / 12)), size=(300, 1200)))["total"]
    assert total["grid"] == [32, TOTAL_SIDE]
    assert total["frame"] == [[1200 / 128, 0.0, 0.0], [0.0, 300 / 32, 0.0]]


def test_steps_keep_what_belongs_to_each() -> None:
    look = soft(
        torch.rand(1, 3, 2, 2),
        gain=torch.tensor([[0.5, 1.0, math.nan]]),
        active=torch.tensor([[True, True, False]]),
        emits=torch.tensor([[4, 5, 0]]),
        choice=torch.tensor([[0, 3, 1]]),
    )
    entry = view_of(sighting(look, total="mean"))["looks"][0]
    assert entry["steps"] == 3
    assert floats(entry).size == 12
    assert entry["active"] == [True, True, False]
    assert entry["gain"] == [0.5, 1.0, None]  # JSON has no word for not-a-number
    assert entry["emits"] == [4, 5, 0]
    assert entry["choice"] == [0, 3, 1]


def test_a_crop_has_the_upright_box_around_it_and_no_weights() -> None:
    straight = geometry.crop_frame(torch.tensor([10.0, 4.0, 50.0, 24.0]), (8, 8))
    quarter = torch.tensor([[0.0, -1.0, 30.0], [1.0, 0.0, 5.0]], dtype=torch.float64)  # (x, y) → (30 − y, 5 + x)
    for frame, grid, box in ((straight, (8, 8), [10.0, 4.0, 50.0, 24.0]), (quarter, (8, 6), [22.0, 5.0, 30.0, 11.0])):
        look = view_of(sighting(Look("crop", "crop", "crop", frame=frame, grid=grid)))["looks"][0]
        assert (look["weights"], look["dtype"], look["grid"], look["box"]) == (None, None, list(grid), box)


def test_slots_have_texts_instead_of_a_grid() -> None:
    hop = Look("hop", "slots", "multiplier", torch.tensor([[[0.9, 0.1], [0.2, 0.8]]]), norm="softmax")
    view = view_of(sighting(hop, meta={"slots": ["Mary went home.", "<b>John</b> ate."]}))
    entry = view["looks"][0]
    assert entry["slots"] == ["Mary went home.", "<b>John</b> ate."]
    assert "grid" not in entry
    assert "frame" not in entry
    assert floats(entry).tolist() == pytest.approx([0.9, 0.1, 0.2, 0.8])
    assert view["total"] is None
    assert view_of(sighting(hop))["looks"][0]["slots"] == ["1", "2"]


def test_evidence_and_pictures_come_back_as_they_were() -> None:
    mask = torch.rand(7, 5) > 0.5
    view = view_of(sighting(soft(torch.full((1, 2, 6), 1 / 12))), evidence=mask, png="data:,")
    assert (decoded(view["evidence"]["mask_png"]) == mask.numpy()).all()
    assert view["picture"]["png"] == "data:,"
    assert mask_url(mask) == view["evidence"]["mask_png"]
    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
    assert (decoded(picture_url(Image.fromarray(pixels))) == pixels).all()
