"""Measurements features: what may be kept, that it is what the encoder answers, and that it is computed once."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from question_tables import SPLITS, write_table
from saccade.families import model_spec, models
from saccade.families.question.tables import TableData, TableDataConfig
from saccade.models.base import ImageModel
from saccade.tasks.cached_features import CachedFeatures, is_frozen
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
    assert isinstance(model, ImageModel)
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
