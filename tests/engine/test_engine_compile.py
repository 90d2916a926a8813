"""``compile: true``: a model whose passes are generated code learns what the model itself learns."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
import torch._inductor.config
from engine_fakes import read_metrics, tiny_recipe

from saccade.engine import phases
from saccade.engine.loop import fit
from saccade.engine.step import Learner
from saccade.families.question.task import QuestionTask


def losses(out: Path, *, compiled: bool) -> list[float]:
    """The losses of two steps of a small SOFT."""
    torch.compiler.reset()
    config = {"channels": 8, "depth": 2, "hidden": 8, "dropout": 0.0}
    task = QuestionTask(model="soft", model_config=config, data={"name": "mref", "glyphs": "pack", "asks": 1})
    phase = {"steps": 2, "optimizer": {"name": "sgd", "lr": 0.1}}
    recipe = tiny_recipe(phase, batch_size=4, log_every=1, compile=compiled, precision="32-true")
    fit(task, recipe, out, device="cpu", progress="quiet")
    return [entry["values"]["loss"] for entry in read_metrics(out) if entry["kind"] == "train"]


@pytest.mark.long
def test_two_compiled_steps_on_a_cpu_have_the_losses_of_plain_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code is generated and compiled in earnest. Training compiles on CUDA alone, so here it is made to."""
    if not any(shutil.which(name) for name in ("g++", "clang++", "c++")):
        pytest.skip("torch's inductor needs a C++ compiler, and none is here")
    monkeypatch.setattr(QuestionTask, "validate", lambda task, model: {"accuracy": 0.0, "loss": 0.0})  # is not compiled
    plain = losses(tmp_path / "plain", compiled=False)

    def compiling(model: torch.nn.Module, *, compiled: bool) -> Learner:
        assert not compiled, "training compiles on a CPU now: this stand-in can go"
        return Learner(model, compiled=True)

    monkeypatch.setattr(phases, "Learner", compiling)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(torch._inductor.config, "compile_threads", 1)  # more are processes that load torch
    found = losses(tmp_path / "compiled", compiled=True)
    assert found == pytest.approx(plain, rel=1e-4)
    assert len(set(plain)) == 2
    assert list((tmp_path / "cache").rglob("*.so")), "inductor generated no code"
