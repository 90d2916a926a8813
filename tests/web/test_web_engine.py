"""The engine of the page gives PyTorch's numbers: logits, every look, the total; and fast enough to follow a finger."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import page_engine
import pytest
import torch
from torch import nn

import saccade
from saccade.config import to_dict
from saccade.families import families, models
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.models.facts import Preprocessing
from saccade.predict import Predictor
from saccade.web.views import view_of
from tiny_models import tiny_config, tiny_facts

pytestmark = pytest.mark.skipif(not page_engine.RUNTIMES, reason="neither node nor Chromium is there to run the engine")
FIRST = page_engine.RUNTIMES[0] if page_engine.RUNTIMES else ""

LOOK = """
const { model, queries } = load(given.weights);
const known = loaded.get(model);
return given.asked.map(([pixels, question]) => {
  const floats = Float32Array.from(pixels);
  const result = known.network.ask(encodingOf(known, floats), queries.indexOf(question));
  const view = look(floats, question, model);
  return { logits: [...result.logits], weights: result.weights.map((each) => [...each]), view };
});
"""


def trained(name: str, size: tuple[int, int] = (31, 34), **changes: Any) -> Predictor:
    """A small model whose norms have seen something, so that folding them wrongly would show."""
    spec = models()[name]
    config = tiny_config(name, **changes)
    model = spec.load()(config)
    for layer in model.modules():
        if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)):
            for values, low in ((layer.running_mean, -0.5), (layer.running_var, 0.5), (layer.weight, 0.5)):
                nn.init.uniform_(values, low, low + 1)
            nn.init.uniform_(layer.bias, -0.5, 0.5)
    model.requires_grad_(False).half().float()  # as a folder in half precision gives it back
    facts = tiny_facts(architecture=name, model=to_dict(config), preprocessing=Preprocessing(size))
    return Predictor(model, facts, name="tiny")


def looked(predictor: Predictor, images: torch.Tensor, asked: list[int], folder: Path, runtime: str) -> list[Any]:
    """What the engine says about each image (B,3,H,W) and question."""
    pixels = images.permute(0, 2, 3, 1).flatten(1).tolist()  # (B, H·W·3)
    questions = [predictor.facts.queries[question] for question in asked]
    given = {"weights": predictor.family.page_model(predictor), "asked": list(zip(pixels, questions))}
    return page_engine.computed(LOOK, given, folder, runtime=runtime)


def assert_agrees(predictor: Predictor, images: torch.Tensor, asked: list[int], found: list[Any], near: float) -> None:
    output = predictor.model(images, torch.tensor(asked))
    total = output.trace.image_map("total", predictor.facts.preprocessing.size)
    for row, said in enumerate(found):
        torch.testing.assert_close(
            torch.tensor(said["logits"], dtype=torch.float32), output.logits[row], atol=near, rtol=0
        )
        assert len(said["weights"]) == len(output.trace.looks)
        for weights, look in zip(said["weights"], output.trace.looks):
            torch.testing.assert_close(
                torch.tensor(weights, dtype=torch.float32), look.weights[row].flatten(), atol=near, rtol=0
            )
        torch.testing.assert_close(_floats(said["view"]["total"]), total[row].flatten(), atol=near, rtol=0)


def _floats(entry: dict[str, Any]) -> torch.Tensor:
    assert entry["dtype"] == "float32"
    return torch.from_numpy(np.frombuffer(base64.b64decode(entry["weights"]), "<f4").copy())


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("soft", {}),
        ("hattnet", {}),
        ("hattnet-ctx", {}),
        ("hattnet-ctx", {"context": 5}),
        ("hattnet-ctx", {"context": 4}),
        ("hattnet-ctx", {"gated": ("stage2",)}),
        ("hattnet", {"gated": ()}),
        ("hattnet-ctx", {"norm_after_gates": False}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value)) or "plain",
)
def test_every_variant_agrees_with_torch(name: str, changes: dict[str, Any], tmp_path: Path) -> None:
    predictor = trained(name, **changes)
    images = torch.rand(3, 3, 31, 34)
    found = looked(predictor, images, [0, 3, 1], tmp_path, FIRST)
    assert_agrees(predictor, images, [0, 3, 1], found, near=1e-5)


@pytest.mark.parametrize("runtime", page_engine.RUNTIMES)
@pytest.mark.parametrize("name", ["soft-mref", "hattnet-ctx-mref"])
def test_the_shipped_models_agree_on_scenes(name: str, runtime: str, tmp_path: Path) -> None:
    predictor = saccade.load(name, "cpu")
    data = SceneData(SceneDataConfig(glyphs="pack"), "test", allow_pack=True)
    batch = data.take(data.one_per_scene(6))
    asked = batch.query.tolist()
    assert_agrees(predictor, batch.images, asked, looked(predictor, batch.images, asked, tmp_path, runtime), near=1e-3)


def test_the_view_is_that_of_the_server(tmp_path: Path) -> None:
    predictor = trained("hattnet-ctx")
    image = torch.randint(0, 256, (3, 31, 34)) / 255
    ours = looked(predictor, image[None], [3], tmp_path, FIRST)[0]["view"]
    theirs = json.loads(json.dumps(view_of(predictor.look(image, ask="north"), family="question")))
    assert ours.keys() == theirs.keys()
    assert ours["picture"].keys() == theirs["picture"].keys()
    alike = ("schema", "model", "family", "question", "answer", "kind", "labels", "words", "evidence", "scores")
    assert {key: ours[key] for key in alike} == {key: theirs[key] for key in alike}
    assert ours["confidence"] == pytest.approx(theirs["confidence"], abs=1e-5)
    assert [word for word, _ in ours["alternatives"]] == [word for word, _ in theirs["alternatives"]]
    for mine, other in zip([*ours["looks"], ours["total"]], [*theirs["looks"], theirs["total"]], strict=True):
        assert mine.keys() == other.keys()
        assert {**mine, "weights": None} == {**other, "weights": None}
        torch.testing.assert_close(_floats(mine), _floats(other), atol=1e-5, rtol=0)


def test_cut_off_weights_are_refused(tmp_path: Path) -> None:
    given = families()["question"].page_model(trained("soft"))
    matrix = given["stages"][0]["convolution"]["weight"]
    matrix["values"] = matrix["values"][:-8]
    body = "try { load(given); } catch (error) { return error.message; }"
    assert page_engine.computed(body, given, tmp_path, runtime=FIRST) == "a matrix of 8×27 has 213 numbers"


def test_the_worker_answers_messages_and_reports_errors(tmp_path: Path) -> None:
    body = """
    const replies = [];
    const say = (verb, ...given) => { self.onmessage({ data: { verb, given } }); };
    self.postMessage = (reply) => replies.push(reply);
    say("load", given);
    say("look", new Float32Array(31 * 34 * 3), "1", "tiny");
    say("look", new Float32Array(3), "1", "nobody");
    return replies.map(({ result, error }) => [result?.model, result?.schema, error !== undefined]);
    """
    given = families()["question"].page_model(trained("soft"))
    found = page_engine.computed(body, given, tmp_path, runtime=FIRST)
    assert found == [["tiny", "saccade.page-weights/1", False], ["tiny", "saccade.view/1", False], [None, None, True]]
