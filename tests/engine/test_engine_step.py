"""One step: clipped by parameter and replica, compiled, captured on a GPU, stopped by numbers that are not finite."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch._inductor.config
from engine_fakes import DeviceTask, TinyTask, read_metrics, tiny_recipe
from torch import Tensor, nn

from saccade.engine import phases
from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.cuda_graph import clone_tensors, copy_tensors
from saccade.engine.loop import fit
from saccade.engine.step import Learner, origin
from saccade.errors import DataError, TrainingStopped
from saccade.families.question.task import QuestionTask


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


@dataclass(frozen=True)
class Inner:
    box: Tensor


@dataclass(frozen=True)
class Batch:
    image: Tensor
    inner: Inner
    pair: Pair
    name: str
    more: dict[str, list[Tensor]]


def make(value: float, name: str = "x") -> Batch:
    filled = torch.full((2,), value)
    return Batch(filled, Inner(filled + 1), Pair(filled + 2, filled + 3), name, {"a": [filled + 4]})


def test_copy_reaches_every_tensor_and_keeps_the_buffers():
    static = clone_tensors(make(1.0))
    pointer = static.inner.box.data_ptr()
    copy_tensors(static, make(10.0))
    assert static.image.tolist() == [10, 10]
    assert static.inner.box.tolist() == [11, 11]
    assert static.pair.right.tolist() == [13, 13]
    assert static.more["a"][0].tolist() == [14, 14]
    assert static.inner.box.data_ptr() == pointer


@pytest.mark.parametrize(
    ("target", "source", "words"),
    [
        ({"a": torch.ones(2)}, {"a": torch.ones(3)}, r"\(2,\)"),
        ({"a": torch.ones(2)}, {"b": torch.ones(2)}, "'b'"),
        (make(1.0), make(1.0, "y"), "'x'"),
    ],
)
def test_a_batch_of_another_make_is_refused(target, source, words):
    with pytest.raises(DataError, match=words):
        copy_tensors(target, source)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("optimizer", ["adamw", "adam", "rmsprop", "sgd"])
@pytest.mark.parametrize("replicas", [1, 2])
def test_captured_step_equals_the_eager_one(tmp_path, optimizer, replicas):
    final = []
    # A bias before a BatchNorm has no gradient but rounding noise; a small eps would make whole steps of that noise.
    extra = {"momentum": 0.9} if optimizer == "sgd" else {"eps": 1e-3}
    for graph in (False, True):
        phase = {
            "steps": 20,
            "optimizer": {"name": optimizer, "lr": 0.02, **extra},
            "schedule": {"name": "cosine", "warmup": 5},
            "clip_norm": 0.5,
        }
        recipe = tiny_recipe(phase, graph=graph, accumulate=2, replicas=replicas, ema=0.9)
        out = tmp_path / str(graph)
        fit(DeviceTask(), recipe, out, device="cuda", progress="quiet")
        final.append([entry["values"] for entry in read_metrics(out)])
    for eager, captured in zip(*final, strict=True):
        assert captured == pytest.approx(eager, rel=1e-3, abs=1e-5)


class Slopes(nn.Module):
    """Its output is times · (3 a₁ + 4 a₂ + ½ b): the gradient of a has norm 5 · times, that of b ½ · times."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
        self.register_buffer("times", torch.tensor(times))

    def forward_raw(self, features: Tensor, more: float = 0.0) -> dict[str, Tensor]:
        return {"out": self.times * (self.a @ torch.tensor([3.0, 4.0]) + 0.5 * self.b.sum()) + more}


class SlopeTask(TinyTask):
    """One step down these slopes; the model of seed s is 1 + 3 s times as steep."""

    def new_model(self, seed: int) -> nn.Module:
        return Slopes(1.0 + 3.0 * seed)

    def loss(self, raw: dict[str, Tensor], batch: Any, loss: Any) -> dict[str, Tensor]:
        return {"loss": raw["out"]}

    def validate(self, model: nn.Module) -> dict[str, float]:
        return {"accuracy": 0.0, "loss": 0.0}


def after_one_step(tmp_path, replicas: int = 1, **clip: float) -> dict[str, Tensor]:
    phase = {"steps": 1, "optimizer": {"name": "sgd", "lr": 1.0, "momentum": 0.0}, **clip}
    fit(SlopeTask(), tiny_recipe(phase, replicas=replicas), tmp_path / "run", device="cpu", progress="quiet")
    tensors = CheckpointStore(tmp_path / "run" / "checkpoints").load_newest()[0].tensors
    return {name: -tensors[f"model/{name}"] for name in ("a", "b")}


@pytest.mark.parametrize(
    ("clip", "a", "b"),
    [
        ({}, [3.0, 4.0], [0.5]),
        ({"clip_each": 1.0}, [0.6, 0.8], [0.5]),  # 5 → 1; ½ is below it
        ({"clip_norm": 1.0}, [3 / 25.25**0.5, 4 / 25.25**0.5], [0.5 / 25.25**0.5]),  # all by one factor
        ({"clip_each": 1.0, "clip_norm": 2.0}, [0.6, 0.8], [0.5]),
    ],
)
def test_each_parameter_is_clipped_by_its_own_norm(tmp_path, clip: dict[str, float], a: list, b: list) -> None:
    moved = after_one_step(tmp_path, **clip)
    torch.testing.assert_close(moved["a"], torch.tensor(a), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(moved["b"], torch.tensor(b), rtol=1e-5, atol=1e-6)


def test_each_replica_is_clipped_by_its_own_norms(tmp_path) -> None:
    """The second is four times as steep, norms 20 and 2: at most 1.5, its b is clipped and that of the first is not."""
    moved = after_one_step(tmp_path, replicas=2, clip_each=1.5)
    torch.testing.assert_close(moved["a"], torch.tensor([[0.9, 1.2], [0.9, 1.2]]), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(moved["b"], torch.tensor([[0.5], [1.5]]), rtol=1e-5, atol=1e-6)


RECIPE = tiny_recipe(checkpoint_every=3)


def test_nan_in_the_data_is_named_with_step_and_input(tmp_path):
    task = TinyTask(poison_at=8 * 4 + 2)  # the fifth batch of eight
    with pytest.raises(TrainingStopped, match=r"step 5 \(phase 'main'\).*batch itself.*'features'.*step-00000003"):
        fit(task, RECIPE, tmp_path / "run", device="cpu", progress="quiet")
    assert "training stopped at step 5" in (tmp_path / "run" / "log.txt").read_text()


def test_what_is_learnt_from_is_said_once_when_a_run_begins(tmp_path, capsys):
    task = TinyTask(epoch_samples=8)
    task.told = "t.csv: 8 rows"
    fit(task, RECIPE, tmp_path / "run", device="cpu", progress="plain")
    assert capsys.readouterr().err.startswith("t.csv: 8 rows; an epoch is 1 step\n")
    fit(task, RECIPE, tmp_path / "run", resume=True, device="cpu", progress="plain")
    assert "t.csv" not in capsys.readouterr().err
    assert (tmp_path / "run" / "log.txt").read_text().count("t.csv: 8 rows") == 1


def test_faulty_replica_is_named(tmp_path):
    class OneBad(TinyTask):
        def new_model(self, seed: int) -> nn.Module:
            model = super().new_model(seed)
            if seed == 1:
                with torch.no_grad():
                    model.head.weight[0, 0] = float("inf")
            return model

    with pytest.raises(TrainingStopped, match=r"step 1 .*of replica 1 is not finite.*parameter 'head\.weight'"):
        fit(OneBad(), tiny_recipe(replicas=2), tmp_path / "run", device="cpu", progress="quiet")


class Chain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.log, self.b = nn.Identity(), Log(), nn.Identity()

    def forward_raw(self, x):
        return {"y": self.b(self.log(self.a(x)))}


class Log(nn.Module):
    def forward(self, x):
        return x.log()


def test_origin_is_the_first_layer_in_order_of_execution():
    model = Chain().train()
    assert origin(model, {"x": torch.tensor([1.0, 2.0])}) is None
    assert "layer 'log'" in origin(model, {"x": torch.tensor([1.0, -2.0])})
    assert "batch itself" in origin(model, {"x": torch.tensor([float("nan")])})
    assert model.training
    assert not model.a._forward_hooks


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
