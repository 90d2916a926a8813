"""Non-finite numbers stop training, are named, and never reach the disk."""

from __future__ import annotations

import pytest
import torch
from engine_fakes import TinyTask, tiny_recipe
from torch import nn

from saccade.engine import TrainingStopped, fit
from saccade.engine.checkpoint import CheckpointStore
from saccade.engine.step import GradientWatch, origin

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


def test_state_on_disk_is_the_last_good_one(tmp_path):
    good = TinyTask()
    fit(good, tiny_recipe({"steps": 3, **_phase()}), tmp_path / "good", device="cpu", progress="quiet")
    with pytest.raises(TrainingStopped):
        fit(TinyTask(poison_at=8 * 4), RECIPE, tmp_path / "bad", device="cpu", progress="quiet")
    checkpoint, problems = CheckpointStore(tmp_path / "bad" / "checkpoints").load_newest()
    assert (checkpoint.step, problems) == (3, [])
    for name, value in good.model.state_dict().items():
        assert torch.equal(checkpoint.tensors[f"model/{name}"], value)


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


def test_watch_keeps_the_first_fault():
    watch = GradientWatch(torch.device("cpu"))
    names = ["a", "b", "c"]
    watch.observe(torch.ones(3, 2), torch.tensor(4))
    assert watch.fault(names) is None
    bad = torch.tensor([[1.0, 1.0], [1.0, float("inf")], [float("nan"), 1.0]])
    watch.observe(bad, torch.tensor(5))
    watch.observe(torch.full((3, 2), float("nan")), torch.tensor(6))
    fault = watch.fault(names)
    assert fault is not None
    assert (fault.step, fault.parameter, fault.replica) == (5, "b", 1)


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


def _phase():
    return {"optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9}, "clip_norm": 1.0}
