"""The brush behind the page: edited weights sent to a model, what it answers, and what is refused."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from live_server import LiveServer
from PIL import Image

from saccade.errors import CheckpointError
from saccade.predict import Predictor, load
from saccade.trace import AttentionTrace, Look
from saccade.web.service import editable_looks

SCENE = {"digits": [{"digit": 3, "x": 5, "y": 6, "size": 30, "colour": "red"}], "seed": 0}
ASKED: dict[str, Any] = {"model": "digits", "scene": SCENE, "question": 3}


def weights_of(look: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(look["weights"]), dtype="<f4").astype(float)


@pytest.fixture(scope="module")
def own(server: LiveServer) -> dict[str, Any]:
    """The unedited view."""
    view: dict[str, Any] = server.post("/api/ask", ASKED).json
    return view


def edit(server: LiveServer, attention: Any, **changes: Any) -> Any:
    return server.post("/api/edit", {**ASKED, **changes, "attention": attention})


def test_a_view_says_which_looks_can_be_edited(own: dict[str, Any]) -> None:
    assert own["editable"] == [look["name"] for look in own["looks"]]
    assert own.get("edited") is None


def test_its_own_weights_give_its_own_answer_and_count_as_frozen(server: LiveServer, own: dict[str, Any]) -> None:
    look = own["looks"][0]
    view = edit(server, {look["name"]: weights_of(look).tolist()}).json
    assert (view["answer"], view["confidence"]) == (own["answer"], pytest.approx(own["confidence"], abs=1e-5))
    assert view["edited"]["looks"] == {}
    assert view["edited"]["frozen"] == [look["name"]]


def test_edited_weights_are_what_the_model_runs_on(server: LiveServer, own: dict[str, Any], tiny_folder: Path) -> None:
    """All weight on the first cell: as many cells change as were not 0, and the answer is the predictor's own."""
    look = own["looks"][0]
    before = weights_of(look)
    after = np.zeros_like(before)
    after[0] = 1.0
    view = edit(server, {look["name"]: after.tolist()}).json
    assert weights_of(view["looks"][0]).tolist() == after.tolist()
    assert view["looks"][0]["norm"] == "none"
    assert view["edited"]["unedited"] == {
        "answer": own["answer"], "confidence": pytest.approx(own["confidence"], abs=1e-6)
    }  # fmt: skip
    told = view["edited"]["looks"][look["name"]]
    assert told["of"] == len(before)
    assert told["cells"] == int((np.abs(after - before) > 1e-4 * before.max()).sum())
    assert told["moved"] == pytest.approx(1 - before[0] / before.sum(), abs=1e-3)
    assert any("were given, not computed" in note for note in view["notes"])
    predictor = load(tiny_folder / "digits", "cpu")
    picture = server.post("/api/scene", SCENE).json["picture"]["png"]
    image = Image.open(io.BytesIO(base64.b64decode(picture.partition(",")[2])))
    grid = torch.tensor(after, dtype=torch.float32).reshape(1, *look["grid"])
    seen = predictor.look(image, ask=3, attention={look["name"]: grid})
    assert (view["answer"], view["confidence"]) == (seen.answer, pytest.approx(seen.confidence, abs=1e-5))


def test_what_was_edited_is_in_the_record_that_is_fetched_again(server: LiveServer, own: dict[str, Any]) -> None:
    look = own["looks"][0]
    view = edit(server, {look["name"]: (weights_of(look) * 0).tolist()}).json
    kept = server.get(f"/api/records/{view['record']}/view.json").json
    assert kept["edited"] == view["edited"]
    assert kept["edited"]["looks"][look["name"]]["moved"] == 1.0


@pytest.mark.parametrize(
    ("attention", "status", "said"),
    [
        ({}, 422, "attention"),
        (None, 422, "attention"),
        ({"nothing": [1.0]}, 422, "look 'nothing' cannot be edited"),
        ({"LOOK": [1.0]}, 422, "weights, found 1"),
        ({"LOOK": []}, 422, "attention.LOOK"),
        ({"LOOK": [-1.0]}, 422, "greater than or equal to 0"),
        ({"LOOK": [1e9]}, 422, "less than or equal"),
        ({"LOOK": ["1"]}, 422, "valid number"),
        ({"LOOK": [None]}, 422, "valid number"),
        ({"LOOK": 1.0}, 422, "valid list"),
        ({"LOOK": [0.5] * 16_385}, 422, "at most 16384"),
        ({f"look{number}": [1.0] for number in range(17)}, 422, "at most 16"),
        ({"x" * 61: [1.0]}, 422, "at most 60"),
    ],
)
def test_what_is_no_attention_is_refused(
    server: LiveServer, own: dict[str, Any], attention: Any, status: int, said: str
) -> None:
    name = own["looks"][0]["name"]
    sent = None if attention is None else {name if key == "LOOK" else key: each for key, each in attention.items()}
    reply = edit(server, sent)
    assert reply.status == status
    assert said.replace("LOOK", name) in reply.json["error"]["message"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_is_no_number_is_refused(server: LiveServer, own: dict[str, Any], number: str) -> None:
    name = own["looks"][0]["name"]
    body = f'{{"model": "digits", "question": 3, "scene": {{"digits": []}}, "attention": {{"{name}": [{number}]}}}}'
    reply = server.send("POST", "/api/edit", body.encode(), {"Content-Type": "application/json"})
    assert reply.status == 422


def test_looks_with_steps_crops_masks_and_slots_are_not_for_a_brush() -> None:
    grid = torch.full((1, 2, 2), 0.25)
    looks = (
        Look("cells", "soft", "multiplier", grid),
        Look("unknown", "soft", "multiplier", grid),
        Look("word", "soft", "multiplier", grid[None]),
        Look("mask", "gate", "multiplier", grid, full=grid[None]),
        Look("crop", "crop", "crop", frame=torch.eye(2, 3)[None], grid=(2, 2)),
        Look("hop", "slots", "multiplier", grid[0]),
    )
    names = ("cells", "word", "mask", "crop", "hop")
    assert editable_looks(AttentionTrace(looks), names) == {"cells": (2, 2)}


def test_an_answer_that_is_no_number_is_the_edits_fault(
    server: LiveServer, own: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, attention: Any = None, **__: Any) -> Any:
        if attention is not None:
            raise CheckpointError("its weights give an answer that is not a number")
        return asked(*_, **__)

    asked = Predictor.ask
    monkeypatch.setattr(Predictor, "ask", broken)
    look = own["looks"][0]
    reply = edit(server, {look["name"]: weights_of(look).tolist()})
    assert (reply.status, reply.code) == (422, "no_answer")
