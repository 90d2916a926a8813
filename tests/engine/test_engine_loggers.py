"""Curves go to loggers: by name (stand-ins of wandb and MLflow, TensorBoard itself), and to objects of the user."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from engine_fakes import TinyTask, tiny_recipe

from saccade.engine.loggers import TensorBoard
from saccade.engine.loop import RunResult, fit
from saccade.errors import ConfigError, MissingExtraError

RECIPE = tiny_recipe({"steps": 4, "validate_every": 2}, log_every=1, checkpoint_every=2)


class Kept:
    """A user's own logger."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}
        self.rows: list[tuple[int, list[str]]] = []
        self.is_open = False

    def start(self, folder: Path, settings: dict[str, Any]) -> None:
        assert (folder / "config.yaml").is_file()
        self.settings, self.is_open = dict(settings), True
        torch.rand(3)  # a package may draw numbers

    def log(self, values: dict[str, float], step: int) -> None:
        assert self.is_open
        self.rows.append((step, sorted(values)))

    def close(self) -> None:
        self.is_open = False


class Breaks(TinyTask):
    """It fails in the third step."""

    steps = 0

    def loss(self, *parts: Any, **options: Any) -> Any:
        self.steps += 1
        if self.steps == 3:
            raise RuntimeError("out of memory")
        return super().loss(*parts, **options)


def train(out: Path, *loggers: Any, **options: Any) -> RunResult:
    return fit(TinyTask(), RECIPE, out, device="cpu", progress="quiet", loggers=loggers, **options)


def weights(out: Path) -> dict[str, torch.Tensor]:
    task = TinyTask()
    fit(task, RECIPE, out, device="cpu", progress="quiet", resume=True)
    return task.model.state_dict()


def test_an_object_gets_every_line_and_changes_nothing(tmp_path: Path) -> None:
    kept = Kept()
    train(tmp_path / "logged", kept)
    train(tmp_path / "plain")
    assert kept.settings["name"] == RECIPE.name
    assert not kept.is_open
    assert [step for step, names in kept.rows if "train/loss" in names] == [1, 2, 3, 4]
    assert [step for step, names in kept.rows if names[0].startswith("validation/")] == [2, 4]
    for name, tensor in weights(tmp_path / "plain").items():
        assert torch.equal(tensor, weights(tmp_path / "logged")[name])


def test_one_that_fails_on_the_way_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Failing(Kept):
        def log(self, values: dict[str, float], step: int) -> None:
            super().log(values, step)
            raise ConnectionError("no answer\nfrom the service")

    failing, kept = Failing(), Kept()
    result = fit(TinyTask(), RECIPE, tmp_path / "run", device="cpu", progress="plain", loggers=(failing, kept))
    assert (result.stopped, len(failing.rows), len(kept.rows)) == ("finished", 1, 6)
    assert not failing.is_open
    assert capsys.readouterr().err.count("the logger Failing failed (ConnectionError: no answer from the service)") == 1


def test_one_that_cannot_start_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    class Closed(Kept):
        def start(self, folder: Path, settings: dict[str, Any]) -> None:
            raise PermissionError("log in first")

    with pytest.raises(ConfigError, match=r"logger Closed failed \(PermissionError: log in first\)"):
        train(tmp_path / "run", Closed())
    assert not (tmp_path / "run").exists() or not (tmp_path / "run" / "config.yaml").exists()
    train(tmp_path / "run")  # the folder is free


def test_names_and_objects_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="did you mean 'wandb'"):
        train(tmp_path / "run", "wandbs")
    with pytest.raises(ConfigError, match="loggers: object has no start, log, close"):
        train(tmp_path / "run", object())
    for name in ("wandb", "mlflow", "tensorboard"):
        monkeypatch.setattr("saccade.engine.loggers.find_spec", lambda name: None)
        with pytest.raises(MissingExtraError, match=rf"pip install 'saccade-attention\[{name}\]'"):
            train(tmp_path / "run", name)
    assert not (tmp_path / "run").exists()


def install(monkeypatch: pytest.MonkeyPatch, name: str, **parts: Any) -> None:
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    for part, value in parts.items():
        setattr(module, part, value)
    monkeypatch.setitem(sys.modules, name, module)


def test_wandb_gets_settings_and_curves_and_goes_on_with_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[dict[str, Any]] = []
    rows: list[tuple[int, float | None]] = []
    codes: list[int] = []

    def init(**options: Any) -> SimpleNamespace:
        begun.append(options)
        log = lambda values, step: rows.append((step, values.get("train/loss")))  # noqa: E731
        return SimpleNamespace(id="abc", log=log, finish=lambda exit_code: codes.append(exit_code))

    install(monkeypatch, "wandb", init=init)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    train(tmp_path / "run", "wandb")
    assert {name: begun[0][name] for name in ("project", "name", "id")} == {
        "project": "saccade",
        "name": "run",
        "id": None,
    }
    assert begun[0]["config"]["batch_size"] == RECIPE.batch_size
    assert [step for step, loss in rows if loss is not None] == [1, 2, 3, 4]
    assert codes == [0]
    train(tmp_path / "run", "wandb", resume=True)
    assert (begun[1]["id"], begun[1]["resume"]) == ("abc", "allow")
    with pytest.raises(RuntimeError, match="out of memory"):
        fit(Breaks(), RECIPE, tmp_path / "broken", device="cpu", progress="quiet", loggers=["wandb"])
    assert codes == [0, 0, 1]


def test_mlflow_gets_parameters_and_metrics_and_goes_on_with_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []
    parameters: dict[str, str] = {}
    rows: list[tuple[int, str, dict[str, float]]] = []

    def log_params(part: dict[str, str]) -> None:
        assert len(part) <= 100
        parameters.update(part)

    def start_run(**options: Any) -> SimpleNamespace:
        begun.append(options)
        return SimpleNamespace(info=SimpleNamespace(run_id="m1"))

    install(
        monkeypatch,
        "mlflow",
        start_run=start_run,
        log_params=log_params,
        log_metrics=lambda values, step, run_id: rows.append((step, run_id, values)),
        end_run=lambda status: begun.append(status),
    )
    train(tmp_path / "run", "mlflow")
    assert begun == [{"run_id": None, "run_name": "run", "nested": True}, "FINISHED"]
    assert parameters["phases.0.optimizer.lr"] == str(RECIPE.phases[0].optimizer.lr)
    assert [(step, run) for step, run, values in rows if "train/loss" in values] == [(n, "m1") for n in (1, 2, 3, 4)]
    train(tmp_path / "run", "mlflow", resume=True)
    assert begun[2]["run_id"] == "m1"
    with pytest.raises(RuntimeError, match="out of memory"):
        fit(Breaks(), RECIPE, tmp_path / "broken", device="cpu", progress="quiet", loggers=["mlflow"])
    assert begun[-1] == "FAILED"


def test_tensorboard_has_the_curves(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(tmp_path / "run", "tensorboard")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("train/loss")] == [1, 2, 3, 4]
    assert not (tmp_path / "run" / "loggers.json").exists()
    again = TensorBoard()  # as after a stop, from a checkpoint of step 2
    again.start(tmp_path / "run", {})
    for step in (3, 4, 5):
        again.log({"train/loss": 0.0}, step)
    again.close()
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert [event.step for event in events.Scalars("train/loss")] == [1, 2, 3, 4, 5]
