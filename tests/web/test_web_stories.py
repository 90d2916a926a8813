"""Stories over the API and inside a page: sent as JSON under limits, and computed in a browser as in Python."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import page_engine
import pytest
import torch
from story_models import QUESTION, STORY, save_story_model

import saccade
from saccade.errors import DataError
from saccade.families.story.reading import STORIES
from saccade.web.page import live_part
from saccade.web.views import view_of
from tiny_models import save_tiny

pytestmark = pytest.mark.web


@pytest.mark.parametrize(
    "value",
    ["Mary left.", {"sentences": []}, ["Mary left.", 7], [["Mary left."]], ["a"] * 1001, ["Mary left.", "a " * 201]],
)
def test_what_is_no_story_is_refused(value: Any) -> None:
    with pytest.raises(DataError, match="a story is a list of at most 1,000 texts of at most 400 characters"):
        STORIES.from_json(value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_story_model(tmp_path_factory.mktemp("story") / "teller")


@pytest.fixture(scope="module")
def server(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from live_server import serving

    pictures = save_tiny(tmp_path_factory.mktemp("picture") / "m", name="seer")
    with serving(folder, pictures) as running:
        yield running


def test_a_story_is_asked_about_over_the_api(server: Any, folder: Path) -> None:
    entry = next(each for each in server.get("/api/models").json["models"] if each["name"] == "teller")
    assert (entry["reads"], entry["takes"], entry["asks"], entry["size"]) == ("story", "json", "text", None)
    assert (entry["told"]["sentences"], entry["told"]["characters"]) == (1000, 400)
    assert {"title", "sentences", "question"} == set(entry["told"]["examples"][0])
    view = server.post("/api/ask", {"model": "teller", "input": STORY, "question": QUESTION}).json
    record = view.pop("record")
    sighting = saccade.load(folder, "cpu").look(STORY, QUESTION)
    assert view == json.loads(json.dumps(view_of(sighting, family="story")))
    assert view["picture"] is None
    assert [look["slots"] for look in view["looks"]] == [[*STORY, "", ""]] * 2
    assert server.get(f"/api/records/{record}").json == {**view, "record": record}
    assert server.get(f"/api/records/{record}/view.json").json["answer"] == sighting.answer
    assert server.get(f"/api/records/{record}/strip.png").body.startswith(b"\x89PNG")
    assert b"Mary moved to the kitchen." in server.get(f"/api/records/{record}/page.html").body


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"question": QUESTION}, "invalid", "'teller' reads a story: send it as 'input'"),
        ({"question": QUESTION, "scene": {"seed": 1}}, "invalid", "send it as 'input'"),
        ({"question": QUESTION, "scene": {"seed": 1}, "input": STORY}, "invalid", "send it as 'input'"),
        ({"question": QUESTION, "input": {"a": 1}}, "invalid", "a story is a list of at most 1,000 texts"),
        ({"question": QUESTION, "input": ["a"] * 1001}, "invalid", "at most 1,000 texts"),
        ({"question": "a" * 201, "input": STORY}, "invalid", "200 characters"),
        ({"question": "Why?", "input": STORY}, "invalid", "knows none of the words of the question 'Why?'"),
        ({"question": QUESTION, "input": []}, "invalid", "no sentences"),
        ({"question": None, "input": STORY}, "invalid", "needs a question"),
        ({"model": "seer", "question": "1", "input": STORY}, "invalid", "'seer' reads pictures"),
    ],
)
def test_requests_that_cannot_be_answered(server: Any, body: dict[str, Any], code: str, said: str) -> None:
    reply = server.post("/api/ask", {"model": "teller", **body})
    assert (reply.status, reply.code) == (422, code)
    assert said in reply.message


def test_pictures_are_not_sent_to_a_model_of_stories(server: Any) -> None:
    for path, body in (("encode", {"picture": "data:image/png;base64,AAAA"}), ("ask_all", {"scene": {"seed": 1}})):
        reply = server.post(f"/api/{path}", {"model": "teller", **body})
        assert (reply.status, reply.code) == (422, "reads_no_pictures")
        assert "send that as 'input' of /api/ask" in reply.message


def test_a_body_that_is_too_large_is_refused(server: Any) -> None:
    reply = server.post("/api/ask", {"model": "teller", "question": QUESTION, "input": ["a " * 190] * 1000})
    assert (reply.status, reply.code) == (413, "too_large")


def computed(folder: Path, asked: list[tuple[list[str], str]], tmp_path: Path, runtime: str) -> list[Any]:
    """The views that the worker of a page gives; a text where it refuses."""
    predictor = saccade.load(folder, "cpu")
    body = """
    const replies = [];
    self.postMessage = ({ result, error }) => replies.push(error ?? result);
    new Function(given.worker)();
    self.onmessage({ data: { verb: "load", given: [given.weights] } });
    const { model } = replies[0];
    for (const [input, question] of given.asked) {
      self.onmessage({ data: { verb: "look", given: [input, question, model] } });
    }
    return replies.slice(1);
    """
    given = {
        "worker": json.loads(live_part([predictor]).data)["worker"],
        "weights": predictor.family.page_model(predictor),
        "asked": asked,
    }
    found: list[Any] = page_engine.computed(body, given, tmp_path, runtime=runtime, modules=())
    return found


ASKED = [
    (STORY, QUESTION),
    (STORY[:1], "Where is John?"),
    ([*STORY, *STORY], "where is JOHN, the office"),  # longer than the memory
    (["Sam walks.", *STORY[:2], "Xyz!", "Mary went."], "Where is Sam?"),  # sentences without a known word
    (["Where is Mary?", *STORY[:2]], QUESTION),  # a question is no fact
    (["Mary " * 20, "the “garden”, 'the' office ."], "Is Mary's garden the kitchen"),  # longer than any of training
]


def assert_agrees(folder: Path, views: list[Any]) -> None:
    predictor = saccade.load(folder, "cpu")
    spread = []
    for (story, question), ours in zip(ASKED, views, strict=True):
        theirs = json.loads(
            json.dumps(view_of(predictor.look(predictor.reads.from_json(story), question), family="story"))
        )
        assert ours.keys() == theirs.keys()
        alike = set(theirs) - {"looks", "confidence", "alternatives"}
        assert {key: ours[key] for key in alike} == {key: theirs[key] for key in alike}
        assert ours["confidence"] == pytest.approx(theirs["confidence"], abs=1e-5)
        assert dict(ours["alternatives"]) == pytest.approx(dict(theirs["alternatives"]), abs=1e-5)
        for mine, other in zip(ours["looks"], theirs["looks"], strict=True):
            assert {**mine, "weights": None} == {**other, "weights": None}
            torch.testing.assert_close(_weights(mine), _weights(other), atol=1e-5, rtol=0)
            spread.append(float(_weights(other).std()))
    assert max(spread) > 0.05  # or uniform weights would agree


def _weights(look: dict[str, Any]) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(base64.b64decode(look["weights"]), "<f4").copy())


@pytest.mark.skipif(not page_engine.RUNTIMES, reason="needs node or Chromium")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tying": "layerwise", "mask": True},
        {"encoding": "position", "hops": 3, "mask": True},
        {"encoding": "bag", "tying": "layerwise", "times": 2},
    ],
    ids=lambda changes: "-".join(map(str, changes.values())) or "plain",
)
def test_a_page_computes_what_python_does(changes: dict[str, Any], tmp_path: Path) -> None:
    folder = save_story_model(tmp_path / "m", **changes)
    assert_agrees(folder, computed(folder, ASKED, tmp_path, page_engine.RUNTIMES[0]))


@pytest.mark.skipif("chromium" not in page_engine.RUNTIMES, reason="needs Chromium and playwright")
def test_a_browser_computes_it_too(folder: Path, tmp_path: Path) -> None:
    assert_agrees(folder, computed(folder, ASKED, tmp_path, "chromium"))


@pytest.mark.skipif(not page_engine.RUNTIMES, reason="needs node or Chromium")
def test_a_page_refuses_what_python_refuses(folder: Path, tmp_path: Path) -> None:
    predictor = saccade.load(folder, "cpu")
    asked: list[tuple[list[str], str]] = [(STORY, "Why?"), (["Sam walks.", "Why?"], QUESTION), ([" "], QUESTION)]
    found = computed(folder, asked, tmp_path, page_engine.RUNTIMES[0])
    for (story, question), said in zip(asked, found, strict=True):
        with pytest.raises(DataError) as refused:
            predictor.look(predictor.reads.from_json(story), question)
        assert said[:20] in str(refused.value)
        assert said == str(refused.value) or not story[0].strip()
