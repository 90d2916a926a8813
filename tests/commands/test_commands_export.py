"""``saccade export``: a file that other programs run, with torch's numbers, and a sidecar that says what they mean."""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from saccade.adapters import onnx as onnx_export
from saccade.adapters.onnx import AnswerAndLooks, check, example_inputs
from saccade.commands.export import export
from saccade.config import to_dict
from saccade.errors import CheckpointError, MissingExtraError, OutputError
from saccade.families import family_of_model
from saccade.models.caption_decoding import allowed
from saccade.models.facts import Score
from saccade.models.folder import load_model, save_model
from saccade.predict import load
from saccade.trace import Output
from tiny_models import example_batch, save_tiny, tiny_facts, tiny_model

onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra 'export'")
pytest.importorskip("onnxscript", reason="needs the extra 'export'")
pytestmark = pytest.mark.usefixtures("one_onnx_registry")

SCORE = Score("mref", "test", 10_000, seed=0, protocol="unlimited", metrics={"accuracy": 0.9})


def saved(folder: Path, name: str, prepare: Callable[[Any], None] = lambda model: None, **changes: Any) -> Path:
    """A small model of the catalog, its norms moved from their start, in a folder; ``prepare`` may change it."""
    model = tiny_model(name, 0, **changes)
    with torch.no_grad():
        prepare(model)
    inputs, _ = example_batch(name, 8, 0)
    model.train()(**inputs)
    asked = {} if "query" in inputs else {"queries": ()}
    facts = {"architecture": name, "family": family_of_model(name).name, "model": to_dict(model.config), **asked}
    save_model(model, folder, tiny_facts(**facts, scores=(SCORE,)))
    return folder


def session_of(folder: Path) -> Any:
    return onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """HAttNet-CTX, exported once; not to be changed."""
    home = tmp_path_factory.mktemp("export")
    model = saved(home / "model", "hattnet-ctx")
    return SimpleNamespace(model=model, out=home / "out", sidecar=export(model, home / "out"))


@torch.no_grad()
def uneven_masks(model: Any) -> None:
    """Untrained masks are nearly flat: make them differ from cell to cell."""
    for module in model.attention.values():
        for layer in module.mask.modules():
            if isinstance(layer, torch.nn.Conv2d):
                layer.weight.mul_(1.5)


def proposals_that_move(model: Any) -> None:
    """Untrained proposals are in the middle of every picture: make them follow what is seen."""
    for proposal in model.proposals.values():
        torch.nn.init.normal_(proposal.propose.weight, std=2)


UNITS = {"widths": (8, 8, 8, 8), "modules": (1, 0, 0), "pools": (1, 1, 1)}
ZOOMS = [f"{scale}.{part}" for scale in ("scale2", "scale3") for part in ("emits", "frame")]


@pytest.mark.parametrize(
    ("name", "options", "looks"),
    [
        ("soft", {}, ["stage2.weights"]),
        pytest.param("stn", {}, ["crop.frame"], marks=pytest.mark.long),
        pytest.param("ran", {"prepare": uneven_masks, **UNITS}, ["stage1.weights"], marks=pytest.mark.long),
        ("racnn", {"prepare": proposals_that_move, "through": "layer1"}, ZOOMS),
    ],
)
def test_answer_and_looks_are_torchs(name: str, options: dict[str, Any], looks: list[str], tmp_path: Path) -> None:
    folder = saved(tmp_path / "model", name, **options)
    sidecar = export(folder, tmp_path / "out")
    assert list(sidecar["outputs"]) == ["answer", "probabilities", "logits", *looks]
    assert sidecar["check"]["largest_difference"] <= 1e-4
    expected = assert_same_as_torch(folder, tmp_path / "out")
    for look, told in zip(expected.trace.looks, sidecar["looks"], strict=True):
        assert (told["kind"], told["role"], told.get("base", 0.0)) == (look.kind, look.role, look.base)
        if name == "ran":  # equal masks would hide a difference of places
            assert look.weights.flatten(1).std(1).min() > 1e-2
        if name == "racnn":  # pixels: crops of six pictures lie apart
            assert look.frame.flatten(1).std(0).max() > 0.1


def assert_same_as_torch(folder: Path, out: Path) -> Output:
    """On a number of pictures that was not tried at export."""
    model, _ = load_model(folder)
    inputs = example_inputs(load(folder, "cpu"), 6, 9)
    expected = model(*inputs.values())
    session = session_of(out)
    arrays = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
    named = {output.name: torch.from_numpy(array) for output, array in zip(session.get_outputs(), arrays)}
    assert torch.equal(named["answer"], expected.trace.answer)
    wanted = {"logits": expected.logits, "probabilities": expected.logits.softmax(-1)}
    for look in expected.trace.looks:
        wanted |= (
            {f"{look.name}.weights": look.weights} if look.weights is not None else {f"{look.name}.frame": look.frame}
        )
        wanted |= {} if look.emits is None else {f"{look.name}.emits": look.emits}
    for name, tensor in wanted.items():
        torch.testing.assert_close(named[name].double(), tensor.double(), atol=1e-4, rtol=0)
    return expected


def test_the_sidecar_says_what_the_numbers_mean(context: SimpleNamespace) -> None:
    told = json.loads((context.out / "model.json").read_text())
    assert told == json.loads(json.dumps(context.sidecar))
    assert (told["schema"], told["model"], told["architecture"]) == ("saccade.onnx/1", "tiny", "hattnet-ctx")
    assert told["inputs"] == {
        "images": {"type": "float32", "shape": ["batch", 3, 31, 34]},
        "query": {"type": "int64", "shape": ["batch"]},
    }
    assert told["outputs"]["answer"] == {"type": "int64", "shape": ["batch"]}
    assert told["queries"] == ["0", "1", "2", "north"]
    assert told["answers"] == ["red", "green", "blue"]
    assert told["multi_label"] is False
    assert told["preprocessing"]["size"] == [31, 34]
    assert told["looks"][1] == {
        "name": "stage2",
        "kind": "gate",
        "role": "multiplier",
        "norm": "sigmoid",
        "grid": [6, 7],  # 31×34 pixels: 14×16 cells, then 6×7
        "steps": 1,
        "frame": [[4.0, 0.0, 3.0], [0.0, 4.0, 3.0]],
        "outputs": {"weights": "stage2.weights"},
    }
    assert told["total"] == "product"
    assert told["scores"][0]["metrics"] == {"accuracy": 0.9}


def test_another_model_is_found_out(context: SimpleNamespace) -> None:
    other = AnswerAndLooks(tiny_model("hattnet-ctx", 1))
    with pytest.raises(CheckpointError, match=r"onnxruntime and torch differ by .* in .*; nothing was written"):
        check((context.out / "model.onnx").read_bytes(), other, partial(example_inputs, load(context.model, "cpu")))


def test_an_earlier_export_is_replaced_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = save_tiny(tmp_path / "model")
    with pytest.raises(OutputError, match="export"):
        export(model, model)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="file"):
        export(model, tmp_path / "file")
    monkeypatch.setattr(onnx_export, "_opset", lambda _: 20)
    monkeypatch.setattr(onnx_export, "check", lambda *_: {})
    for data in (b"first", b"second"):
        monkeypatch.setattr(onnx_export, "onnx_bytes", lambda *_, data=data: data)
        export(model, tmp_path / "out")
        assert (tmp_path / "out" / "model.onnx").read_bytes() == data


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_extra_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} does not load.*pip install 'saccade-attention\[export\]'"):
        export(save_tiny(tmp_path / "model"), tmp_path / "out")


def test_a_captioner_is_two_graphs_and_the_search_is_the_callers(tmp_path: Path) -> None:
    """Greedy search in a few lines of Python over onnxruntime finds the captions of torch."""
    model = tiny_model("sat-soft", 0).eval()
    with torch.no_grad():
        model.decoder.words.weight.mul_(30)  # so that words differ
    facts = {"architecture": "sat-soft", "family": family_of_model("sat-soft").name, "model": to_dict(model.config)}
    words = ("", "(unknown)", "red", "green", "blue")
    save_model(model, tmp_path / "model", tiny_facts(**facts, queries=(), answers=words, sentences=True))
    sidecar = export(tmp_path / "model", tmp_path / "out")
    assert sorted(each.name for each in (tmp_path / "out").iterdir()) == ["begin.onnx", "model.json", "step.onnx"]
    assert sidecar["check"]["largest_difference"] <= 1e-4

    images = torch.rand(5, 3, 31, 34, generator=torch.Generator().manual_seed(3))
    expected = model.caption(model.encode(images))
    first, step = (
        onnxruntime.InferenceSession(tmp_path / "out" / name, providers=["CPUExecutionProvider"])
        for name in ("begin.onnx", "step.onnx")
    )
    held = dict(zip([each.name for each in first.get_outputs()], first.run(None, {"images": images.numpy()})))
    before = np.full(5, sidecar["search"]["start"])
    for number in range(sidecar["search"]["longest"]):
        found = dict(zip([each.name for each in step.get_outputs()], step.run(None, {**held, "before": before})))
        held |= {"hidden": found["next_hidden"], "cell": found["next_cell"]}
        said = allowed(torch.from_numpy(found["logits"])[:, None], first=number == 0)[:, 0].argmax(-1)
        going = expected.words[:, 0, number] >= 0
        assert torch.equal(said[going], expected.words[going, 0, number])
        weights = torch.from_numpy(found["word.weights"])
        torch.testing.assert_close(weights[going], expected.weights[going, 0, number], atol=1e-4, rtol=0)
        before = said.numpy()
