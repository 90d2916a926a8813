"""The recipes that tune the encoder, in a few steps: from kept features, from pictures, from captions of their own."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import saccade
from caption_stubs import captioned_files
from saccade.engine.loop import RunResult
from saccade.engine.stop import StopRequest

SIZES = "embed: 4, hidden: 8, attention: 4, dropout: 0.3, longest: 7"
TINY = (
    "data.size=[40, 48]",
    "data.at_least=1",
    f"model.config={{backbone: compact, through: layer2, pretrained: false, {SIZES}}}",
    "batch_size=4",
    "log_every=1",
    *(f"phases.{number}.{setting}" for number in range(3) for setting in ("epochs=1", "schedule.warmup=0")),
)
STEPS = 5
"""Of an epoch: 20 training captions in batches of four."""


@pytest.fixture(autouse=True, scope="module")
def _home(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SACCADE_HOME", str(tmp_path_factory.mktemp("home")))
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"csv:{captioned_files(tmp_path_factory.mktemp('files'), 16)}"


def train(out: Path, table: str, recipe: str, *more: str) -> RunResult:
    return saccade.train(recipe, data=table, out=out, overrides=[*TINY, *more], device="cpu", quiet=True)


def tensors(out: Path, step: int | None = None) -> dict[str, torch.Tensor]:
    """What a checkpoint holds; the last one if not said."""
    folders = sorted((out / "checkpoints").iterdir())
    folder = folders[-1] if step is None else out / "checkpoints" / f"step-{step:08d}"
    return load_file(next(folder.glob("*.safetensors")))


@pytest.fixture(scope="module", params=["soft", "hard"])
def whole(request: pytest.FixtureRequest, table: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """A recipe and its run without interruption; not to be changed."""
    recipe = f"sat-{request.param}-tuned"
    return recipe, train(tmp_path_factory.mktemp("runs") / "whole", table, recipe, "keep_checkpoints=9").out


def test_each_phase_trains_what_it_says(whole: tuple[str, Path]) -> None:
    recipe, out = whole
    states = [tensors(out, step) for step in (0, STEPS, 2 * STEPS, 3 * STEPS)]

    def changed(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> set[str]:
        """What is other than the phase began with: the averaged weights of the one before it."""
        names = [name.removeprefix("model/") for name in one if name.startswith("model/")]
        began = {name: one.get(f"ema/{name}", one[f"model/{name}"]) for name in names}
        return {name for name in names if not torch.equal(began[name], other[f"model/{name}"])}

    first, second, third = (changed(*pair) for pair in itertools.pairwise(states))
    baseline = {"baseline"} if "hard" in recipe else set()
    assert {name.split(".")[0] for name in first} == {"decoder"} | baseline
    assert {name.split(".")[0] for name in second} == {"decoder", "backbone"} | baseline
    assert not any("running_" in name for name in second)  # statistics stay those of the pretraining
    assert {name.split(".")[0] for name in third} == {"decoder"}


def test_every_phase_is_chosen_by_bleu_and_says_what_it_earns(whole: tuple[str, Path]) -> None:
    rows = [json.loads(line) for line in (whole[1] / "metrics.jsonl").read_text().splitlines()]
    validations = [row for row in rows if row["kind"] == "validation"]
    assert [row["phase"] for row in validations] == ["decoder", "whole", "self_critical"]
    assert all("bleu_4" in row["values"] for row in validations)
    last = [row["values"] for row in rows if row["phase"] == "self_critical" and row["kind"] == "train"]
    assert len(last) == STEPS
    assert all({"loss", "reward", "best_reward", "words"} <= set(values) for values in last)


@pytest.mark.parametrize("stop", [2, STEPS, STEPS + 2, 2 * STEPS + 2], ids=["decoder", "between", "whole", "critical"])
def test_resuming_is_exact_in_any_phase(
    stop: int, whole: tuple[str, Path], table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, out = whole
    steps = iter(range(1, 100))
    monkeypatch.setattr(StopRequest, "reason", lambda self: "time" if next(steps) >= stop else None)
    assert train(tmp_path / "parts", table, recipe, "keep_checkpoints=9").step == stop
    monkeypatch.undo()
    torch.rand(5)
    again = saccade.train(out=tmp_path / "parts", resume=True, device="cpu", quiet=True)
    assert (again.stopped, again.step) == ("finished", 3 * STEPS)
    one, other = tensors(out), tensors(tmp_path / "parts")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
