"""Pictures with one label: training, scoring and showing come with the task."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

from saccade import geometry
from saccade.data.pictures.labelled import DrawnPictures, LabelledBatch
from saccade.engine.recipe import Phase
from saccade.errors import ConfigError, DataError
from saccade.families import ModelSpec
from saccade.models.base import ImageOnlyModel
from saccade.tasks.label_task import CrossEntropy, LabelTask
from saccade.trace import Act, Look, ModelOutput


@dataclass(frozen=True)
class Sides(DrawnPictures):
    """A bright left or right half; two pictures of three are left."""

    name: str = "sides"
    side: int = 8
    shown: bool = True
    answers: ClassVar = ("left", "right")

    def draw(self, seed: int, numbers: Tensor) -> LabelledBatch:
        label = (numbers % 3 == 2).long()
        columns = torch.arange(self.side, device=numbers.device) >= self.side // 2  # (W,)
        half = (columns == label.bool()[:, None])[:, None].expand(-1, self.side, -1)  # (B,H,W)
        return LabelledBatch(half[:, None].repeat(1, 3, 1, 1).float(), label, half if self.shown else None)


@dataclass(frozen=True)
class Config:
    answers: int = 2


class Halves(ImageOnlyModel):
    """Looks at the brighter half, and says what ``say`` makes of the brightness (B,2) of both."""

    Config = Config

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.gain = nn.Parameter(torch.ones(()))
        self.say: Callable[[Tensor], Tensor] = lambda halves: halves

    def encode(self, images: Tensor) -> Tensor:
        return images.mean(1).unflatten(2, (2, -1)).mean((1, 3))  # (B,2)

    def answer(self, encoding: Tensor) -> ModelOutput:
        return ModelOutput(
            self.say(encoding * self.gain), {"half": Act(weights=encoding.softmax(-1)[:, None])}
        )  # (B,1,2)

    def looks(self, output: ModelOutput) -> tuple[Look, ...]:
        frame = geometry.scale_shift((4.0, 8.0), (0.0, 0.0))
        return (Look("half", "soft", "multiplier", output.acts["half"].weights, norm="softmax", frame=frame),)


class SidesTask(LabelTask):
    name = "sides"
    data_settings = Sides


@pytest.fixture(autouse=True)
def catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.tasks.task.model_spec", lambda name: ModelSpec(lambda: Halves, "", ""))


def new_task(**changes: Any) -> SidesTask:
    settings: dict[str, Any] = {"model": "halves", "model_config": {}, "data": {"name": "sides"}}
    return SidesTask(**{**settings, **changes})


def evaluated(
    say: Callable[[Tensor], Tensor] = lambda halves: halves, split: str = "test", **data: Any
) -> dict[str, Any]:
    model = Halves(Config()).eval()
    model.say = say
    return dict(SidesTask.evaluate(model, {"name": "sides", **data}, split, limit=90))


def test_the_answers_come_from_the_data_and_a_wrong_number_is_refused() -> None:
    task = new_task()
    assert task.answers == ("left", "right")
    assert task.model.config.answers == 2
    assert task.preprocessing.size == (8, 8)
    with pytest.raises(ConfigError, match=r"model\.config\.answers: found 3, but the data has 2"):
        new_task(model_config={"answers": 3})
    with pytest.raises(ConfigError, match="side"):
        new_task(data={"name": "sides", "side": 0})
    with pytest.raises(ConfigError, match="seed"):
        new_task(data={"name": "sides", "seed": -1})


def test_the_loss_falls_as_the_right_logit_grows() -> None:
    task = new_task()
    loss = task.phase_loss(Phase(steps=1))
    assert loss == CrossEntropy()
    (batch,) = itertools.islice(task.train_batches(0, batch_size=6), 1)
    found = task.loss(task.model.forward_raw(**task.inputs(batch)), batch, loss)
    assert found["accuracy"] == 1
    assert found["loss"].item() == pytest.approx(math.log1p(math.exp(-1)))
    with pytest.raises(ConfigError, match="features 'kept': the task 'sides' learns from more"):
        task.phase_loss(Phase(steps=1, features="kept"))


def test_scores_stand_beside_the_commonest_label_and_baselines_of_maps() -> None:
    found = evaluated()
    assert (found["data"], found["split"], found["n"]) == ("sides", "test", 90)
    assert found["metrics"] == {"accuracy": 1.0, "calibration_error": pytest.approx(1 - 0.7311, abs=1e-4)}
    assert found["baselines"]["commonest_label"]["accuracy"] == pytest.approx(2 / 3)
    assert found["attention"]["pointing"] == 1
    assert 0.5 < found["attention"]["true_positive_strength"] < 0.7311  # σ(1), less what smoothing spreads
    assert found["baselines"]["uniform"]["true_positive_strength"] == pytest.approx(0.5)
    assert found["counts"]["accuracy"] == 90
    assert evaluated(lambda halves: -halves)["metrics"]["accuracy"] == 0.0


def test_an_oracle_is_sure_and_rests_on_the_evidence() -> None:
    found = evaluated(lambda halves: 50 * halves)
    assert found["metrics"] == {"accuracy": 1.0, "calibration_error": pytest.approx(0, abs=1e-6)}
    assert found["against"]["answers"]["difference"] == pytest.approx(1 / 3)
    assert found["rests_on"]["accuracy"]["evidence_swapped"] == pytest.approx(2 / 3)


def test_who_always_says_the_commonest_beats_no_guess() -> None:
    found = evaluated(lambda halves: torch.tensor([1.0, 0.0]).repeat(len(halves), 1))
    assert found["metrics"]["accuracy"] == found["baselines"]["commonest_label"]["accuracy"] == pytest.approx(2 / 3)
    assert found["against"]["answers"]["difference"] == 0
    assert found["rests_on"]["accuracy"]["evidence_swapped"] == found["metrics"]["accuracy"]


def test_splits_are_opened_and_written(tmp_path: Path) -> None:
    examples, summary = SidesTask.show_split({"name": "sides"}, "test", 9_999)
    assert (len(examples), summary) == (2_000, "")
    assert [each.caption for each in examples[:3]] == ["left", "left", "right"]
    assert examples[2].masks[0].sum() == 32
    assert SidesTask.show_split({"name": "sides", "shown": False}, "test", 1)[0][0].masks == ()
    SidesTask.write_split({"name": "sides"}, "test", 2, tmp_path / "made", start=1)
    lines = (tmp_path / "made" / "scenes.jsonl").read_text("utf-8").splitlines()
    assert '"label": "left", "box": [0, 0, 4, 8], "seed": 0, "split": "test", "index": 1' in lines[0]
    assert '"label": "right", "box": [4, 0, 8, 8]' in lines[1]
    with pytest.raises(DataError, match=r"sides test has 2000 scenes, asked for 1999\.\.2000"):
        SidesTask.write_split({"name": "sides"}, "test", 2, tmp_path / "more", start=1_999)
