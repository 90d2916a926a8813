"""``saccade export`` of models of stories: torch's numbers for stories and questions of any length."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from story_folders import TOLD, WORDS, save_story_model

import saccade
from saccade.adapters.onnx import example_inputs
from saccade.commands.export import export

onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra 'export'")
pytest.importorskip("onnxscript", reason="needs the extra 'export'")
pytestmark = pytest.mark.usefixtures("one_onnx_registry")


def exported(folder: Path, architecture: str, **config: Any) -> tuple[dict[str, Any], Any]:
    """The sidecar, and outputs by name as a function of story and question."""
    sidecar = export(save_story_model(folder / "model", architecture, **config), folder / "out")
    session = onnxruntime.InferenceSession(folder / "out" / "model.onnx", providers=["CPUExecutionProvider"])

    def run(**inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        found = session.run(None, {name: tensor.numpy() for name, tensor in inputs.items()})
        return {output.name: torch.from_numpy(array) for output, array in zip(session.get_outputs(), found)}

    return sidecar, run


def assert_same_as_torch(folder: Path, run: Any) -> None:
    """For made-up inputs of sizes that the check did not try, and for a story that was read."""
    model = saccade.load(folder / "model", "cpu")
    (story,) = model.reads.prepare([model.reads.read(TOLD)], model.facts).inputs
    own = {"story": story, "query": model.responder.as_tensor([model.question("Where is Mary?")])}
    for inputs in (example_inputs(model, 5, 9), own):
        found, expected = run(**inputs), model.model(*inputs.values())
        assert torch.equal(found["answer"], expected.trace.answer)
        torch.testing.assert_close(found["logits"], expected.logits, atol=1e-4, rtol=0)
        for look in expected.trace.looks:
            torch.testing.assert_close(found[f"{look.name}.weights"], look.weights, atol=1e-5, rtol=0)


def test_a_memory_network_runs_elsewhere(tmp_path: Path) -> None:
    sidecar, run = exported(tmp_path, "memn2n", hops=2)
    assert sidecar["inputs"]["story"] == {"type": "int64", "shape": ["batch", 6, "words"]}
    assert list(sidecar["outputs"]) == ["answer", "probabilities", "logits", "hop1.weights", "hop2.weights"]
    assert sidecar["answers"] == list(WORDS)
    assert_same_as_torch(tmp_path, run)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("facts", "episode", "memory"),
    [("words", "gru", 2), pytest.param("sentences", "sum", 3, marks=pytest.mark.long)],  # as the paper, as dmn-babi
)
def test_a_dynamic_memory_network_runs_elsewhere(tmp_path: Path, facts: str, episode: str, memory: int) -> None:
    config = {"size": 8, "embedding": 8, "passes": 2, "gate": "softmax", "stops": True, "answer_words": 2}
    sidecar, run = exported(tmp_path, "dmn", **config, facts=facts, episode=episode, memory=memory)
    assert list(sidecar["outputs"])[3:] == ["pass1.weights", "pass1.active", "pass2.weights", "pass2.active"]
    assert_same_as_torch(tmp_path, run)
