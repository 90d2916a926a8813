"""The engine of the page gives PyTorch's numbers: logits, every look, the total, and the hops of a story."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from page_browser import floats
from torch import nn
from web_models import QUESTION, STORY, save_story_model

import saccade
from saccade.config import to_dict
from saccade.errors import DataError
from saccade.families import model_spec
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.models.facts import Preprocessing
from saccade.predict import Predictor
from saccade.web.page import live_part, page_model
from saccade.web.views import view_of
from tiny_models import tiny_config, tiny_facts

Run = Callable[..., Any]

LOOK = """
const { model } = m.load(given.weights);
return given.asked.map(([pixels, question]) => m.look(Float32Array.from(pixels), question, model));
"""


def trained(name: str, **changes: Any) -> Predictor:
    """A small model whose norms have seen something, so that folding them wrongly would show."""
    config = tiny_config(name, **changes)
    model = model_spec(name).load()(config)
    for layer in model.modules():
        if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
            for values, low in ((layer.running_mean, -0.5), (layer.running_var, 0.5), (layer.weight, 0.5)):
                nn.init.uniform_(values, low, low + 1)
            nn.init.uniform_(layer.bias, -0.5, 0.5)
    model.requires_grad_(False).half().float()  # as a folder in half precision gives it back
    facts = tiny_facts(architecture=name, model=to_dict(config), preprocessing=Preprocessing((31, 34)))
    return Predictor(model, facts, name="tiny")


def looked(run: Run, predictor: Predictor, images: torch.Tensor, asked: list[int]) -> Any:
    """What the engine says about each image (B,3,H,W) and question."""
    pixels = images.permute(0, 2, 3, 1).flatten(1).tolist()  # (B, H·W·3)
    questions = [predictor.facts.queries[question] for question in asked]
    given = {"weights": page_model(predictor), "asked": list(zip(pixels, questions))}
    return run("engine/worker", LOOK, given)


def as_json(view: Any) -> Any:
    return json.loads(json.dumps(view))


def assert_agrees(run: Run, predictor: Predictor, images: torch.Tensor, asked: list[int], near: float) -> None:
    output = predictor.model(images, torch.tensor(asked))
    total = output.trace.image_map("total", predictor.facts.preprocessing.size)
    calibration = predictor.facts.calibration
    shares = torch.softmax(output.logits / (calibration.temperature if calibration else 1), -1)
    for row, view in enumerate(looked(run, predictor, images, asked)):
        said = dict([(view["answer"], view["confidence"]), *view["alternatives"]])
        assert [said[answer] for answer in predictor.facts.answers] == pytest.approx(shares[row].tolist(), abs=near)
        np.testing.assert_allclose(floats(view["total"]), total[row].numpy(), atol=near)
        for ours, theirs in zip(view["looks"], output.trace.looks, strict=True):
            np.testing.assert_allclose(floats(ours)[0], theirs.weights[row].numpy(), atol=near)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("soft", {}),
        ("hattnet", {"gated": ()}),
        ("hattnet-ctx", {"context": 5}),
        ("hattnet-ctx", {"context": 4}),
        ("hattnet-ctx", {"gated": ("stage2",)}),
        ("hattnet-ctx", {"norm_after_gates": False}),
    ],
    ids=str,
)
def test_every_variant_agrees_with_torch(run: Run, name: str, changes: dict[str, Any]) -> None:
    assert_agrees(run, trained(name, **changes), torch.rand(3, 3, 31, 34), [0, 3, 1], near=1e-5)


@pytest.mark.parametrize("name", ["soft-mref", "hattnet-ctx-mref"])
def test_the_shipped_models_agree_on_scenes(run: Run, name: str) -> None:
    data = SceneData(SceneDataConfig(glyphs="pack"), "test", allow_pack=True)
    batch = data.take(data.one_per_scene(6))
    asked = batch.query.tolist()
    assert_agrees(run, saccade.load(name, "cpu"), batch.images, asked, near=1e-3)


def test_the_view_is_that_of_the_server(run: Run) -> None:
    predictor = trained("hattnet-ctx")
    image = torch.randint(0, 256, (3, 31, 34)) / 255
    ours = looked(run, predictor, image[None], [3])[0]
    theirs = as_json(view_of(predictor.look(image, ask="north"), family="question"))
    assert ours.keys() == theirs.keys()
    assert ours["picture"].keys() == theirs["picture"].keys()
    alike = ("schema", "model", "family", "question", "answer", "kind", "labels", "words", "evidence", "scores")
    assert {key: ours[key] for key in alike} == {key: theirs[key] for key in alike}
    assert ours["confidence"] == pytest.approx(theirs["confidence"], abs=1e-5)
    assert [word for word, _ in ours["alternatives"]] == [word for word, _ in theirs["alternatives"]]
    for mine, other in zip([*ours["looks"], ours["total"]], [*theirs["looks"], theirs["total"]], strict=True):
        assert {**mine, "weights": None} == {**other, "weights": None}
        np.testing.assert_allclose(floats(mine), floats(other), atol=1e-5)


def test_cut_off_weights_are_refused(run: Run) -> None:
    predictor = trained("soft")
    given = page_model(predictor)
    matrix = given["stages"][0]["convolution"]["weight"]  # type: ignore[index]
    matrix["values"] = matrix["values"][:-8]
    body = "try { m.load(given); } catch (error) { return error.message; }"
    assert run("engine/worker", body, given) == "a matrix of 8×27 has 213 numbers"


def slots(look: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(look["weights"]), "<f4")


def told(run: Run, folder: Path, asked: list[tuple[list[str], str]]) -> list[Any]:
    """The views that the worker of a page gives for stories; a text where it refuses."""
    predictor = saccade.load(folder, "cpu")
    body = """
    const replies = [];
    self.postMessage = ({ result, error }) => replies.push(error ?? result);
    new Function(given.worker)();
    const say = (verb, ...given) => self.onmessage({ data: { verb, given } });
    say("load", given.weights);
    for (const [input, question] of given.asked) say("look", input, question, replies[0].model);
    return replies.slice(1);
    """
    weights = page_model(predictor)
    given = {"worker": json.loads(live_part([predictor]).data)["worker"], "weights": weights, "asked": asked}
    replies: list[Any] = run("views", body, given)
    return replies


ASKED = [
    (STORY, QUESTION),
    (STORY[:1], "Where is John?"),
    ([*STORY, *STORY], "where is JOHN, the office"),  # longer than the memory
    (["Sam walks.", *STORY[:2], "Xyz!", "Mary went."], "Where is Sam?"),  # sentences without a known word
    (["Where is Mary?", *STORY[:2]], QUESTION),  # a question is no fact
    (["Mary " * 20, "the “garden”, 'the' office ."], "Is Mary's garden the kitchen"),  # longer than any of training
]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tying": "layerwise", "mask": True},
        {"encoding": "position", "hops": 3, "mask": True},
        {"encoding": "bag", "tying": "layerwise", "times": 2},
    ],
    ids=str,
)
def test_a_page_reads_stories_as_python_does(run: Run, changes: dict[str, Any], tmp_path: Path) -> None:
    folder = save_story_model(tmp_path / "m", **changes)
    predictor, spread = saccade.load(folder, "cpu"), []
    for (story, question), ours in zip(ASKED, told(run, folder, ASKED), strict=True):
        seen = predictor.look(predictor.reads.from_json(story), question)
        theirs = as_json(view_of(seen, family="story"))
        assert ours.keys() == theirs.keys()
        alike = set(theirs) - {"looks", "confidence", "alternatives"}
        assert {key: ours[key] for key in alike} == {key: theirs[key] for key in alike}
        assert ours["confidence"] == pytest.approx(theirs["confidence"], abs=1e-5)
        assert dict(ours["alternatives"]) == pytest.approx(dict(theirs["alternatives"]), abs=1e-5)
        for mine, other in zip(ours["looks"], theirs["looks"], strict=True):
            assert {**mine, "weights": None} == {**other, "weights": None}
            np.testing.assert_allclose(slots(mine), slots(other), atol=1e-5)
            spread.append(float(slots(other).std()))
    assert max(spread) > 0.05  # or uniform weights would agree


def test_a_page_refuses_what_python_refuses(run: Run, tmp_path: Path) -> None:
    folder = save_story_model(tmp_path / "m")
    predictor = saccade.load(folder, "cpu")
    asked: list[tuple[list[str], str]] = [(STORY, "Why?"), (["Sam walks.", "Why?"], QUESTION)]
    for (story, question), message in zip(asked, told(run, folder, asked), strict=True):
        with pytest.raises(DataError) as refused:
            predictor.look(predictor.reads.from_json(story), question)
        assert message == str(refused.value)
