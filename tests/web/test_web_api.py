"""The API as a script uses it: models, pictures, questions, scenes, stories, edits, and answers fetched again."""

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from live_server import LiveServer, png, serving
from PIL import Image
from web_models import QUESTION, STORY, save_foreign, save_story_model, save_trained

import saccade
from saccade.errors import ConfigError
from saccade.predict import load
from saccade.web.page import offline_page, page_entry
from saccade.web.views import view_of
from tiny_models import ANSWERS, QUERIES, save_tiny, tiny_facts

RED = {"digit": 3, "x": 5, "y": 6, "size": 30, "colour": "red"}
SCENE = {"digits": [RED, {"digit": 2, "x": 60, "y": 40, "size": 30, "colour": "blue"}]}
ASKED: dict[str, Any] = {"model": "digits", "scene": SCENE, "question": 3}


def pixels(url: str) -> np.ndarray:
    return np.array(Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))))


def weights_of(look: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(look["weights"]), dtype="<f4").astype(float)


def as_json(view: Any) -> Any:
    return json.loads(json.dumps(view))


def test_models_say_what_they_can_be_asked(server: LiveServer) -> None:
    reply = server.get("/api/models").json
    assert reply["schema"] == "saccade.models/1"
    digits, words = reply["models"]
    assert (digits["name"], words["name"]) == ("digits", "words")
    assert (words["queries"], words["answers"]) == (list(QUERIES), list(ANSWERS))
    assert (words["reads"], words["takes"], words["asks"], words["size"]) == ("picture", "picture", "choice", [31, 34])
    assert "soft attention" in words["summary"]
    assert page_entry(saccade.load("soft-mref", "cpu").facts).prompt == "What colour is the …"
    with pytest.raises(ConfigError, match="no family 'gone'"):
        page_entry(tiny_facts(family="gone", architecture="gone-1"))


def test_pictures_that_ship_can_be_had_by_name_and_no_other_file(server: LiveServer) -> None:
    reply = server.get("/api/examples/cat")
    assert (reply.status, reply.headers["content-type"]) == (200, "image/jpeg")
    assert reply.body == saccade.example("cat").read_bytes()
    for name in ("cat.jpg", "..%2F__init__.py", "dog"):
        assert server.get(f"/api/examples/{name}").status == 404


def test_a_picture_is_sent_once_and_asked_often(server: LiveServer, tiny_folder: Path) -> None:
    data = png()
    sent = server.upload(data, "bird.png", model="words").json
    assert sent["schema"] == "saccade.encoding/1"
    assert [sent["picture"][key] for key in ("name", "width", "height")] == ["bird.png", 34, 31]
    assert (pixels(sent["picture"]["png"]) == np.array(Image.open(io.BytesIO(data)))).all()
    expected = load(tiny_folder / "words", "cpu")
    together = server.post("/api/ask_all", {"model": "words", "encoding": sent["encoding"]}).json
    assert together["schema"] == "saccade.views/1"
    for question, brief in zip(QUERIES, together["views"], strict=True):
        view = server.post("/api/ask", {"model": "words", "encoding": sent["encoding"], "question": question}).json
        wanted = view_of(expected.look(data, ask=question), family="question")
        assert {key: view[key] for key in ("question", "answer", "looks", "total")} == {
            key: wanted[key] for key in ("question", "answer", "looks", "total")
        }  # fmt: skip
        assert view["confidence"] == pytest.approx(wanted["confidence"], abs=1e-6)
        assert (brief["question"], brief["answer"]) == (question, view["answer"])
        assert brief["confidence"] == pytest.approx(view["confidence"], abs=1e-5)
        assert brief["picture"]["png"] is brief["total"] is None


@pytest.mark.parametrize(
    ("change", "status", "code", "said"),
    [
        ({"model": "wrods"}, 404, "unknown_model", "did you mean 'words'"),
        ({"encoding": "p0"}, 404, "unknown_encoding", "send or ask again"),
        ({"scene": SCENE}, 422, "invalid", "one of the two"),
        ({"input": ["a"]}, 422, "invalid", "'words' reads pictures"),
        ({"question": "nroth"}, 422, "invalid", "did you mean 'north'"),
        ({"qestion": 1}, 422, "invalid", "qestion: Extra inputs"),
    ],
)
def test_what_cannot_be_asked_is_told_why(server: LiveServer, change: dict, status: int, code: str, said: str) -> None:
    good = {"model": "words", "encoding": server.upload(png()).json["encoding"], "question": "north"}
    reply = server.post("/api/ask", {**good, **change})
    assert (reply.status, reply.code) == (status, code)
    assert said in reply.message


def test_a_scene_comes_with_its_truth_and_its_answers_with_scores(server: LiveServer) -> None:
    reply = server.post("/api/scene", SCENE).json
    assert reply["schema"] == "saccade.scene/1"
    image = pixels(reply["picture"]["png"])
    three, two = reply["truth"]
    assert (three["digit"], three["colour"], three["box"]) == (3, "red", [5, 6, 35, 36])
    assert (image.any(-1) <= (pixels(three["mask_png"]) | pixels(two["mask_png"]))).all()
    by_name = server.post("/api/ask", {"model": "digits", "encoding": reply["encoding"], "question": 3}).json
    view = server.post("/api/ask", ASKED).json
    assert {**by_name, "record": ""} == {**view, "record": ""}
    mask, scores = pixels(view["evidence"]["mask_png"]), view["scores"]
    assert scores["baselines"]["uniform"]["true_positive_strength"] == pytest.approx(mask.mean(), abs=1e-6)
    assert set(scores["attention"]) == {"true_positive_strength", "pointing", "iou", "selectivity"}
    assert scores["baselines"]["all_objects_exact"]["iou"] == scores["baselines"]["all_objects_exact"]["selectivity"]
    absent = server.post("/api/ask", {**ASKED, "question": "1"}).json
    assert absent["evidence"] is absent["scores"] is None


def test_a_model_that_needs_no_question_says_what_it_sees_and_what_it_learned_from(tmp_path: Path) -> None:
    with serving(save_trained(tmp_path / "m", "mnist-set", "reader")) as reader:
        assert reader.get("/api/models").json["models"][0]["scenes"] == {
            "digits": [1, 4], "sizes": [[20, 50]], "background": "clutter", "colours": ["white"], "repeats": False
        }  # fmt: skip
        view = reader.post("/api/ask", {"model": "reader", "scene": SCENE}).json
        assert view["question"] is None
        assert view["answer"].startswith("{")
        assert isinstance(view["labels"], list)
        assert pixels(view["evidence"]["mask_png"]).sum() > 100  # without a question, every digit is evidence
        assert reader.post("/api/ask", {"model": "reader", "scene": SCENE, "question": 1}).code == "invalid"
        assert reader.post("/api/ask_all", {"model": "reader", "scene": SCENE}).code == "invalid"
        assert reader.get(f"/api/records/{view['record']}/strip.png").status == 200


def test_an_answer_can_be_fetched_again_in_every_form(server: LiveServer) -> None:
    view = server.post("/api/ask", ASKED).json
    record = f"/api/records/{view['record']}"
    assert server.get(record).json == view
    file = server.get(f"{record}/view.json")
    assert file.json == view
    assert file.headers["content-disposition"] == 'attachment; filename="digits-3.json"'
    assert Image.open(io.BytesIO(server.get(f"{record}/strip.png").body), formats=["PNG"]).width > 400
    page = server.get(f"{record}/page.html")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.body.decode() == offline_page(views=[view])  # what the page itself would save


def test_a_model_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    save_tiny(tmp_path / "m", name="tiny")
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with serving(tmp_path / "m") as broken:
        reply = broken.post("/api/ask", {"model": "tiny", "scene": SCENE, "question": "1"})
        assert (reply.status, reply.code) == (409, "model_unavailable")
        assert reply.message == broken.get("/api/models").json["models"][0]["problem"]
        assert str(tmp_path) not in reply.message  # where it lies is nobody's business


@pytest.fixture(scope="module")
def teller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_story_model(tmp_path_factory.mktemp("story") / "teller")


@pytest.fixture(scope="module")
def stories(teller: Path) -> Iterator[LiveServer]:
    with serving(teller) as running:
        yield running


def test_a_story_is_asked_about(stories: LiveServer, teller: Path) -> None:
    (entry,) = stories.get("/api/models").json["models"]
    assert (entry["reads"], entry["takes"], entry["asks"], entry["size"]) == ("story", "json", "text", None)
    assert (entry["panel_facts"]["sentences"], entry["panel_facts"]["characters"]) == (1000, 400)
    view = stories.post("/api/ask", {"model": "teller", "input": STORY, "question": QUESTION}).json
    record = f"/api/records/{view.pop('record')}"
    assert view == as_json(view_of(saccade.load(teller, "cpu").look(STORY, QUESTION), family="story"))
    assert [look["slots"] for look in view["looks"]] == [[*STORY, "", ""]] * 2
    assert stories.get(f"{record}/strip.png").body.startswith(b"\x89PNG")
    assert b"Mary moved to the kitchen." in stories.get(f"{record}/page.html").body


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("ask", {"input": None}, 422, "'teller' reads a story: send it as 'input'"),
        ("ask", {"input": ["a"] * 1001}, 422, "at most 1,000 texts"),
        ("ask", {"input": ["a " * 201]}, 422, "at most 400 characters"),
        ("ask", {"input": ["a " * 190] * 1000}, 413, "send a smaller one"),
        ("encode", {"picture": "data:image/png;base64,AAAA"}, 422, "send that as 'input' of /api/ask"),
        ("ask_all", {"scene": {"seed": 1}}, 422, "send that as 'input' of /api/ask"),
    ],
)
def test_what_is_no_story_is_refused(stories: LiveServer, path: str, body: dict, status: int, said: str) -> None:
    good = {"question": QUESTION, "input": STORY} if path == "ask" else {}
    reply = stories.post(f"/api/{path}", {"model": "teller", **good, **body})
    assert reply.status == status
    assert said in reply.message


def test_the_server_gives_declared_panels_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = save_foreign(tmp_path, monkeypatch)
    (tmp_path / "secret.js").write_text("// export function panel(place) {}", encoding="utf-8")
    (tmp_path / "panel.css").write_text(".mine {}", encoding="utf-8")
    with serving(folder) as server:
        assert server.get("/api/models").json["models"][0]["panel"] == "families/lines/panel.js"
        reply = server.get("/families/lines/panel.js")
        assert reply.body == (tmp_path / "panel.js").read_bytes()
        assert reply.headers["content-type"] == "text/javascript; charset=utf-8"
        sheet = server.get(f"/{server.get('/api/models').json['models'][0]['panel_style']}")
        assert (sheet.body, sheet.headers["content-type"]) == (b".mine {}", "text/css; charset=utf-8")
        for path in ("question/panel.js", "nobody/panel.js", "lines/secret.js", "lines/../lines/secret.js", "lines/",
                     "lines/m/config.json", "..%2Flines/panel.js", "lines/panel.js/..%2f..%2fsecret.js",
                     "%00/panel.js"):  # fmt: skip
            assert server.get(f"/families/{path}").status == 404, path


@pytest.fixture(scope="module")
def own(server: LiveServer) -> dict[str, Any]:
    """The unedited view."""
    view: dict[str, Any] = server.post("/api/ask", ASKED).json
    return view


def edit(server: LiveServer, attention: Any) -> Any:
    return server.post("/api/edit", {**ASKED, "attention": attention})


def test_own_weights_give_the_own_answer_and_count_as_frozen(server: LiveServer, own: dict[str, Any]) -> None:
    assert own["editable"] == [look["name"] for look in own["looks"]]
    look = own["looks"][0]
    view = edit(server, {look["name"]: weights_of(look).tolist()}).json
    assert (view["answer"], view["confidence"]) == (own["answer"], pytest.approx(own["confidence"], abs=1e-5))
    assert (view["edited"]["looks"], view["edited"]["frozen"]) == ({}, [look["name"]])


def test_edited_weights_are_what_the_model_runs_on(server: LiveServer, own: dict[str, Any], tiny_folder: Path) -> None:
    """All weight on the first cell: as many cells change as were not 0, and the answer is the predictor's own."""
    look = own["looks"][0]
    before = weights_of(look)
    after = np.eye(len(before))[0]
    view = edit(server, {look["name"]: after.tolist()}).json
    assert weights_of(view["looks"][0]).tolist() == after.tolist()
    assert view["edited"]["unedited"] == {
        "answer": own["answer"], "confidence": pytest.approx(own["confidence"], abs=1e-6)
    }  # fmt: skip
    cells = int((np.abs(after - before) > 1e-4 * before.max()).sum())
    moved = pytest.approx(1 - before[0] / before.sum(), abs=1e-3)
    assert view["edited"]["looks"][look["name"]] == {"cells": cells, "of": len(before), "moved": moved}
    assert any("were given, not computed" in note for note in view["notes"])
    image = Image.fromarray(pixels(server.post("/api/scene", SCENE).json["picture"]["png"]))
    grid = torch.tensor(after, dtype=torch.float32).reshape(1, *look["grid"])
    seen = load(tiny_folder / "digits", "cpu").look(image, ask=3, attention={look["name"]: grid})
    assert (view["answer"], view["confidence"]) == (seen.answer, pytest.approx(seen.confidence, abs=1e-5))
    assert server.get(f"/api/records/{view['record']}/view.json").json["edited"] == view["edited"]


def test_what_is_no_attention_is_refused(server: LiveServer, own: dict[str, Any]) -> None:
    name = own["looks"][0]["name"]
    for attention, said in (
        ({}, "attention"),
        ({"nothing": [1.0]}, "look 'nothing' cannot be edited"),
        ({name: [-1.0]}, "greater than or equal to 0"),
        ({name: [0.5] * 16_385}, "at most 16384"),
        ({f"look{number}": [1.0] for number in range(17)}, "at most 16"),
    ):
        reply = edit(server, attention)
        assert reply.status == 422
        assert said in reply.message
    for number in ("NaN", "Infinity", "1e999"):
        body = json.dumps({**ASKED, "attention": {name: [0]}}).replace("[0]", f"[{number}]").encode()
        assert server.send("POST", "/api/edit", body, {"Content-Type": "application/json"}).status == 422
