"""Features that are kept: what the encoder answers, computed once; training on them is no different."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.data.tables.rows import Box
from saccade.engine.loop import fit
from saccade.engine.recipe import Phase, Recipe
from saccade.errors import ConfigError
from saccade.families import model_spec, models
from saccade.families.question.tables import TableData, TableDataConfig
from saccade.families.question.task import Default, QuestionTask
from saccade.models.base import ImageModel
from saccade.tasks.cached_features import CachedFeatures, is_frozen, with_features
from small_tables import SPLITS, write_table
from tiny_models import example_batch, tiny_model

COMPACT = {"backbone": "compact", "through": "layer2", "queries": 2, "answers": 3, "hidden": 4}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "features"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> TableData:
    table = write_table(tmp_path_factory.mktemp("pictures"))
    return TableData(TableDataConfig(f"csv:{table}", size=(48, 48)), "val")


def compact(seed: int = 0) -> ImageModel:
    """A model whose backbone has norms."""
    torch.manual_seed(seed)
    model = model_spec("soft").build(COMPACT)
    return model


def kept(data: TableData, model: ImageModel, limit_mb: int = 100) -> CachedFeatures:
    return CachedFeatures(data.pictures.paths, data.pictures.take, model, limit_mb=limit_mb)


def test_a_part_rests_when_nothing_of_it_changes() -> None:
    part = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1), nn.ReLU())
    part.requires_grad_(False)
    assert not is_frozen(part)  # its statistics move
    part[1].eval()
    assert is_frozen(part)
    assert part[0].training  # what has no statistics may be in any mode
    part[0].bias.requires_grad_()
    assert not is_frozen(part)


ENCODED_WHOLE = {
    "soft", "question-head", "hard", "cross", "vit", "blind", "sat-soft", "sat-hard", "sat-none", "resnet", "probe",
    "asked-probe", "multiset-counts",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(models()))
def test_a_model_says_whether_its_encoding_is_that_of_its_backbone(name: str) -> None:
    """And where it says so, it is: nothing else is run, and nothing that is learnt beside the backbone."""
    model = tiny_model(name).eval()
    if name not in ENCODED_WHOLE:
        assert getattr(model, "encoder", None) is None
        return
    assert model.encoder is model.backbone
    inputs, _ = example_batch(name, 2, 0)
    encoding, features = model.encode(inputs["images"]), model.backbone(inputs["images"])
    assert torch.equal(encoding.flatten().sort().values, features.flatten().sort().values)  # perhaps in another order


def test_what_is_kept_is_what_the_encoder_answers(pictures: TableData) -> None:
    """To half precision, without moving its statistics, and with every layer back in its mode."""
    model = compact().train()
    model.backbone.stages["layer1"].eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    modes = [module.training for module in model.modules()]
    numbers = torch.tensor([7, 2, 2, 0])
    taken = kept(pictures, model).take(numbers)
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    answered = model.eval().encode(pictures.pictures.take(numbers))
    assert taken.dtype == torch.float32
    assert not taken.requires_grad
    torch.testing.assert_close(taken, answered, rtol=1e-3, atol=1e-4)
    assert torch.equal(taken[1], taken[2])


def test_each_picture_is_encoded_once_by_whoever_comes_first(pictures: TableData, home: Path) -> None:
    seen: list[int] = []

    def images(numbers: Tensor) -> Tensor:
        seen.extend(numbers.tolist())
        return pictures.pictures.take(numbers)

    def first_and_all(model: ImageModel) -> Tensor:
        seen.clear()
        features = CachedFeatures(pictures.pictures.paths, images, model, limit_mb=100)
        return features.take(torch.arange(9))

    one = first_and_all(compact())
    assert seen == [0, *range(len(SPLITS["val"]))]  # the first tells the shape
    again = first_and_all(compact())
    assert seen == [0]
    assert torch.equal(one, again)
    assert len(list(home.iterdir())) == 1
    other = first_and_all(compact(seed=1))
    assert len(seen) == 10
    assert not torch.equal(one, other)


def test_another_part_of_a_picture_has_other_features(pictures: TableData) -> None:
    def first(crop: Box | None) -> Tensor:
        rows = tuple(replace(row, crop=crop) for row in pictures.table.rows)
        data = TableData(pictures.config, "val", replace(pictures.table, rows=rows, as_found=rows))
        return with_features(data, compact()).features.take(torch.tensor([0]))

    whole, part, other = (first(crop) for crop in (None, (0.0, 0.0, 20.0, 20.0), (10.0, 10.0, 40.0, 40.0)))
    assert not torch.equal(whole, part)
    assert not torch.equal(part, other)


HEAD = {"backbone": "compact", "through": "layer2", "hidden": 4, "dropout": 0.1}
FROZEN = ["backbone.*"]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("one"))


def new_task(path: Path, model: str = "soft", config: dict[str, Any] = HEAD, **data: Any) -> QuestionTask:
    settings = {"name": f"csv:{path}", "size": [48, 48], "augment": None, **data}
    return QuestionTask(model=model, model_config=config, data=settings)


def freeze(task: QuestionTask) -> None:
    """What a phase that freezes the backbone does to the model before it asks for batches."""
    task.model.train()
    backbone: torch.nn.Module = task.model.backbone  # type: ignore[assignment]
    backbone.requires_grad_(False).eval()


def first_batch(task: QuestionTask, size: int = 8, features: str = "auto") -> dict[str, Any]:
    (batch,) = itertools.islice(task.train_batches(0, batch_size=size, features=features), 1)
    return batch


def test_moving_statistics_are_not_kept(table: Path) -> None:
    task = new_task(table)
    freeze(task)
    task.model.backbone.train()  # type: ignore[operator]
    assert "images" in first_batch(task)
    with pytest.raises(ConfigError, match="features 'kept': the weights or statistics of the encoder change"):
        first_batch(task, features="kept")


def test_keeping_features_of_what_learns_is_refused_before_training(table: Path) -> None:
    names = [name for name, _ in new_task(table).model.named_parameters()]
    head = [name for name in names if not name.startswith("backbone.")]
    kept = Phase(steps=1, features="kept")
    assert new_task(table).phase_loss(kept, head) == Default()
    with pytest.raises(ConfigError, match=r"features 'kept': .* but backbone\..* learns; freeze it, as in freeze"):
        new_task(table).phase_loss(kept, names)
    gated = new_task(table, "hattnet", {"channels": 4, "depth": 2, "hidden": 4})
    with pytest.raises(ConfigError, match="the model 'hattnet' has no encoder that sees the picture alone"):
        gated.phase_loss(kept, [])


def test_features_of_a_backbone_that_has_learnt_since_are_not_used(table: Path, home: Path) -> None:
    """Frozen, tuned, then frozen again: what is validated and learnt from is each time of the backbone there is."""
    task = new_task(table)
    freeze(task)
    before = first_batch(task)["encoding"]
    task.validate(task.model.eval())
    task.model.train().requires_grad_()
    assert "images" in first_batch(task)
    with torch.no_grad():
        for parameter in task.model.backbone.parameters():  # type: ignore[union-attr]
            parameter.mul_(1.1)
    tuned = task.validate(task.model.eval())
    plain = new_task(table, features_mb=0)
    plain.model.load_state_dict(task.model.state_dict())
    assert tuned == plain.validate(plain.model.eval())
    freeze(task)
    after = first_batch(task)["encoding"]
    assert not torch.allclose(before, after, rtol=1e-2)
    assert task.validate(task.model.eval())["loss"] == pytest.approx(tuned["loss"], rel=1e-3)
    assert len(list(home.iterdir())) == 4  # train and val of both


def recipe(replicas: int = 1) -> Recipe:
    phase = {
        "name": "main", "freeze": FROZEN, "epochs": 3, "validate_every": 1, "select": {"metric": "score"},
        "optimizer": {"lr": 0.01},
    }  # fmt: skip
    values = {"name": "head", "family": "question", "model": {"name": "soft"}, "phases": [phase], "batch_size": 12}
    return from_dict(Recipe, {**values, "replicas": replicas, "log_every": 1})


def course(task: QuestionTask, out: Path, **settings: Any) -> list[dict[str, Any]]:
    """Everything that a run wrote down, step by step, without its clock."""
    fit(task, recipe(**settings), out, device="cpu", progress="quiet")
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{key: line[key] for key in ("step", "kind", "values")} for line in lines]


def test_a_run_learns_the_same_to_the_last_bit_where_half_precision_is_exact(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every eighth pixel as a byte in the place of features: half precision holds it, whatever it is computed with."""

    def bytes_of(self: ImageModel, images: torch.Tensor) -> torch.Tensor:
        seen = images[:, :, ::8, ::8].mul(255).round()  # (B,3,h,w)
        return seen.repeat(1, self.channels, 1, 1)[:, : self.channels].contiguous()

    monkeypatch.setattr(ImageModel, "encode", bytes_of)
    tasks = new_task(table), new_task(table, features_mb=0)
    one, other = (course(task, tmp_path / f"run{number}") for number, task in enumerate(tasks))
    for mine, theirs in zip(one, other, strict=True):
        if mine["kind"] == "train":
            assert mine == theirs
        else:  # as many questions at once as the one or the other takes
            assert mine["values"] == pytest.approx(theirs["values"], rel=1e-5)
