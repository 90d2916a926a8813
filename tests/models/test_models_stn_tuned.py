"""The tuned STN: sizes, a query that only moves the window, and a helper that is there for training alone."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.errors import SaccadeError
from saccade.families.question.losses import Default
from saccade.families.question.task import QuestionTask
from saccade.models.stn import StnTunedConfig, StnTunedModel
from saccade.trace import QuestionOutput


def built(**settings: object) -> StnTunedModel:
    torch.manual_seed(0)
    return StnTunedModel(from_dict(StnTunedConfig, settings)).eval()


def pictures(count: int = 2) -> Tensor:
    images = torch.zeros(count, 3, 100, 100)
    images[:, :, 10:40, 60:90] = torch.rand(count, 3, 30, 30)
    return images


def test_one_window_of_less_than_half_the_picture() -> None:
    output = built()(pictures(), torch.tensor([0, 9]))
    (look,) = output.trace.validate().looks
    assert (look.name, look.kind, look.grid) == ("crop", "crop", (50, 50))
    assert output.trace.image_map().mean().item() == pytest.approx(0.3**2, abs=0.005)  # the middle of 0.1 .. 0.5


def test_the_number_of_parameters() -> None:
    """By hand: two stacks of 28,640; a scorer of 32·32 + 32 + 10·32 + 33 = 1,409; 42 + 1 for the extent; two heads of
    2·32 + 32·5 + 5 = 229."""
    assert sum(parameter.numel() for parameter in built().parameters()) == 2 * 28_640 + 1_409 + 43 + 2 * 229


def test_the_reader_sees_the_crop_and_nothing_else() -> None:
    model = built()
    raw = model.forward_raw(pictures(), torch.tensor([3, 7]))
    torch.testing.assert_close(model.head(model.read(raw.acts["crop"].context)), raw.logits)


def test_the_query_answers_only_by_moving_the_window() -> None:
    model = built()
    nn.init.normal_(model.transformer.attention.scorer.from_query.weight, std=20.0)

    def answers() -> Tensor:
        return model(pictures(1).expand(10, -1, -1, -1), torch.arange(10)).logits

    assert answers().std(0).max() > 1e-4
    nn.init.zeros_(model.transformer.attention.scorer.from_query.weight)  # every query now means the same place
    assert answers().std(0).max() < 1e-6


def test_the_helper_answers_in_training_alone_and_from_what_was_attended() -> None:
    model = built(dropout=0.0)
    asked = torch.tensor([3, 7])
    assert model.forward_raw(pictures(), asked).helper_logits is None
    raw = model.train().forward_raw(pictures(), asked)
    assert raw.helper_logits.shape == raw.logits.shape
    (weight,) = torch.autograd.grad(
        raw.helper_logits.square().sum(), model.transformer.attention.scorer.to_score.weight, retain_graph=True
    )
    assert weight.abs().sum() > 0
    reader = next(model.reader.parameters())
    assert torch.autograd.grad(raw.helper_logits.sum(), reader, allow_unused=True) == (None,)


def test_the_task_teaches_the_helper_the_same_answer() -> None:
    """Even logits over five answers cost ln 5 each."""
    task = QuestionTask(model="stn-tuned", model_config={}, data={"name": "mref"})
    label = torch.tensor([0, 4, 2])
    even = QuestionOutput(torch.zeros(3, 5), helper_logits=torch.zeros(3, 5))
    found = task.loss(even, {"label": label}, Default())
    assert found["loss"].item() == pytest.approx(2 * torch.tensor(5.0).log().item())
    assert found["helper_loss"].item() == pytest.approx(torch.tensor(5.0).log().item())
    without = task.loss(QuestionOutput(torch.zeros(3, 5)), {"label": label}, Default())
    assert "helper_loss" not in without


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"largest": 0.05}, "0 < smallest < largest"),
        ({"crop": [8, 8]}, "too small"),
        ({"backbone": "resnet18"}, "flattens the last map of the small stack"),
        ({"pace": 0.1}, "pace"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], said: str) -> None:
    with pytest.raises(SaccadeError, match=said):
        StnTunedModel(from_dict(StnTunedConfig, settings, where="model"))
