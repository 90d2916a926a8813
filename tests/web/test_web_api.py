"""The API as a script uses it: models, pictures, questions, scenes, and answers fetched again."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from live_server import LiveServer, png, serving
from PIL import Image
from tiny_trained import save_trained

import saccade
from saccade.predict import load
from saccade.web.page import offline_page
from saccade.web.views import view_of
from tiny_models import ANSWERS, QUERIES, save_tiny


def pixels(url: str) -> np.ndarray:
    return np.array(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))


SCENE = {
    "digits": [
        {"digit": 3, "x": 5, "y": 6, "size": 30, "colour": "red"},
        {"digit": 2, "x": 60, "y": 40, "size": 30, "colour": "blue"},
    ]
}


def test_models_say_what_they_can_be_asked(server: LiveServer) -> None:
    reply = server.get("/api/models")
    assert reply.status == 200
    assert reply.json["schema"] == "saccade.models/1"
    digits, words = reply.json["models"]
    assert (digits["name"], words["name"]) == ("digits", "words")
    assert words["queries"] == list(QUERIES)
    assert words["answers"] == list(ANSWERS)
    assert words["size"] == [31, 34]
    assert words["score"] is None
    assert "soft attention" in words["summary"]


def test_pictures_that_ship_can_be_had_by_name_and_no_other_file(server: LiveServer) -> None:
    reply = server.get("/api/examples/cat")
    assert (reply.status, reply.headers["content-type"]) == (200, "image/jpeg")
    assert reply.body == saccade.example("cat").read_bytes()
    for name in ("cat.jpg", "..%2F__init__.py", "dog"):
        reply = server.get(f"/api/examples/{name}")
        assert reply.status == 404
    assert (
        reply.json["error"]["message"] == "no example 'dog': choose from cat, clutter, coffee, digits, rocket, stripes"
    )


def test_a_picture_is_sent_once_and_asked_often(server: LiveServer, tiny_folder: Path) -> None:
    data = png()
    sent = server.upload(data, "bird.png", model="words")
    assert sent.status == 200
    assert sent.json["schema"] == "saccade.encoding/1"
    assert (sent.json["picture"]["width"], sent.json["picture"]["height"]) == (34, 31)
    assert sent.json["picture"]["name"] == "bird.png"
    assert (pixels(sent.json["picture"]["png"]) == np.array(Image.open(io.BytesIO(data)))).all()
    expected = load(tiny_folder / "words", "cpu")
    for question in QUERIES:
        view = server.post("/api/ask", {"model": "words", "encoding": sent.json["encoding"], "question": question}).json
        wanted = view_of(expected.look(data, ask=question), family="question")
        assert view["answer"] == wanted["answer"]
        assert view["confidence"] == pytest.approx(wanted["confidence"], abs=1e-6)
        assert view["looks"] == wanted["looks"]
        assert view["total"] == wanted["total"]
        assert view["question"] == question


def test_all_questions_at_once_are_the_questions_one_by_one(server: LiveServer) -> None:
    encoding = server.upload(png(seed=3)).json["encoding"]
    together = server.post("/api/ask_all", {"model": "words", "encoding": encoding})
    assert together.json["schema"] == "saccade.views/1"
    assert [view["question"] for view in together.json["views"]] == list(QUERIES)
    for view in together.json["views"]:
        alone = server.post("/api/ask", {"model": "words", "encoding": encoding, "question": view["question"]}).json
        assert view["answer"] == alone["answer"]
        assert view["confidence"] == pytest.approx(alone["confidence"], abs=1e-5)
        assert [look["name"] for look in view["looks"]] == [look["name"] for look in alone["looks"]]
        assert view["picture"]["png"] is view["total"] is None


@pytest.mark.parametrize(
    ("change", "status", "code", "said"),
    [
        ({"model": "wrods"}, 404, "unknown_model", "did you mean 'words'"),
        ({"encoding": "p0"}, 404, "unknown_encoding", "send or ask again"),
        ({"encoding": None}, 422, "invalid", "an encoding or about a scene"),
        ({"scene": SCENE}, 422, "invalid", "one of the two"),
        ({"question": "nroth"}, 422, "invalid", "did you mean 'north'"),
        ({"question": None}, 422, "invalid", "needs a question"),
        ({"question": 1.5}, 422, "invalid", "question"),
        ({"question": "x" * 201}, 422, "invalid", "question"),
        ({"qestion": 1}, 422, "invalid", "qestion: Extra inputs"),
        ({"encoding": "../../etc"}, 422, "invalid", "encoding"),
    ],
)
def test_what_cannot_be_asked_is_told_why(server: LiveServer, change: dict, status: int, code: str, said: str) -> None:
    good = {"model": "words", "encoding": server.upload(png()).json["encoding"], "question": "north"}
    reply = server.post("/api/ask", {**good, **change})
    assert (reply.status, reply.code) == (status, code)
    assert said in reply.message


def test_a_scene_comes_with_its_truth(server: LiveServer) -> None:
    reply = server.post("/api/scene", SCENE).json
    assert reply["schema"] == "saccade.scene/1"
    image = pixels(reply["picture"]["png"])
    assert image.shape == (100, 100, 3)
    three, two = reply["truth"]
    assert (three["digit"], three["colour"], three["box"]) == (3, "red", [5, 6, 35, 36])
    masks = pixels(three["mask_png"]) | pixels(two["mask_png"])
    assert (image.any(-1) <= masks).all()
    assert reply["scene"]["digits"][1]["glyph"] == 0


def test_a_scene_may_be_asked_about_at_once_or_by_its_encoding(server: LiveServer) -> None:
    encoding = server.post("/api/scene", SCENE).json["encoding"]
    by_name = server.post("/api/ask", {"model": "digits", "encoding": encoding, "question": 3}).json
    at_once = server.post("/api/ask", {"model": "digits", "scene": SCENE, "question": 3}).json
    assert {**by_name, "record": ""} == {**at_once, "record": ""}


def test_an_answer_about_a_scene_is_scored_beside_baselines(server: LiveServer) -> None:
    view = server.post("/api/ask", {"model": "digits", "scene": SCENE, "question": "3"}).json
    mask = pixels(view["evidence"]["mask_png"])
    scores = view["scores"]
    assert scores["baselines"]["uniform"]["true_positive_strength"] == pytest.approx(mask.mean(), abs=1e-6)
    assert set(scores["attention"]) == {"true_positive_strength", "pointing", "iou", "selectivity"}
    assert scores["baselines"]["all_objects_exact"]["iou"] == scores["baselines"]["all_objects_exact"]["selectivity"]
    absent = server.post("/api/ask", {"model": "digits", "scene": SCENE, "question": "1"}).json
    assert absent["evidence"] is absent["scores"] is None


def test_a_model_that_needs_no_question_says_what_it_sees(tmp_path: Path) -> None:
    with serving(save_trained(tmp_path / "m", "mnist-multiset", "reader")) as reader:
        reply = reader.post("/api/ask", {"model": "reader", "scene": SCENE})
        view = reply.json
        assert reply.status == 200, view
        assert view["question"] is None
        assert view["answer"].startswith("{")
        assert isinstance(view["labels"], list)
        assert pixels(view["evidence"]["mask_png"]).sum() > 100  # without a question, every digit is evidence
        for look in view["looks"]:
            assert len(look["active"]) == look["steps"]
        assert reader.post("/api/ask", {"model": "reader", "scene": SCENE, "question": 1}).code == "invalid"
        assert reader.post("/api/ask_all", {"model": "reader", "scene": SCENE}).code == "invalid"
        assert reader.get(f"/api/records/{view['record']}/strip.png").status == 200


def test_an_answer_can_be_fetched_again_in_every_form(server: LiveServer) -> None:
    view = server.post("/api/ask", {"model": "digits", "scene": SCENE, "question": "3"}).json
    record = f"/api/records/{view['record']}"
    assert server.get(record).json == view
    file = server.get(f"{record}/view.json")
    assert file.json == view
    assert file.headers["content-disposition"] == 'attachment; filename="digits-3.json"'
    strip = server.get(f"{record}/strip.png")
    assert Image.open(io.BytesIO(strip.body), formats=["PNG"]).width > 400
    page = server.get(f"{record}/page.html")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["content-disposition"].startswith("attachment")
    assert b'http-equiv="Content-Security-Policy"' in page.body
    assert page.body.decode() == offline_page(views=[view])  # what the page itself would save


def test_the_api_describes_itself(server: LiveServer) -> None:
    described = server.get("/api/openapi.json").json
    assert {"/api/models", "/api/encode", "/api/ask", "/api/ask_all", "/api/scene", "/api/records/{record}"} <= set(
        described["paths"]
    )
    asked = described["components"]["schemas"]["Question"]
    assert asked["additionalProperties"] is False
    assert set(asked["properties"]) == {"model", "encoding", "scene", "input", "question", "picture"}
    assert server.get("/docs").status == 404  # its pages would load scripts from elsewhere


def test_a_model_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    save_tiny(tmp_path / "m", name="tiny")
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with serving(tmp_path / "m") as broken:
        reply = broken.post("/api/ask", {"model": "tiny", "scene": SCENE, "question": "1"})
        assert (reply.status, reply.code) == (409, "model_unavailable")
        assert reply.message == broken.get("/api/models").json["models"][0]["problem"]
        assert str(tmp_path) not in reply.message  # where it lies is nobody's business
