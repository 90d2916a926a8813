"""STN of Seo et al. (2016) and the tuned one: sizes, a query that only moves the window, a helper for training."""

import pytest
import torch
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.errors import DataError
from saccade.families.question.task import Default, QuestionTask
from saccade.models.stn import StnConfig, StnModel, StnTunedConfig, StnTunedModel
from saccade.trace import QuestionOutput


def published(**settings: object) -> StnModel:
    """With the published sizes; its window already depends on picture and query."""
    model = StnModel(from_dict(StnConfig, settings)).eval()
    nn.init.normal_(model.transformer.to_theta.weight, std=1.0)
    return model


def tuned(**settings: object) -> StnTunedModel:
    torch.manual_seed(0)
    return StnTunedModel(from_dict(StnTunedConfig, settings)).eval()


def pictures(count: int = 2) -> Tensor:
    images = torch.zeros(count, 3, 100, 100)
    images[:, :, 10:40, 60:90] = torch.rand(count, 3, 30, 30)
    return images


def test_the_reader_sees_the_crop_and_nothing_else() -> None:
    for model in (published(), tuned()):
        raw = model.forward_raw(pictures(), torch.tensor([3, 7]))
        feature = model.reader(raw.acts["crop"].context).mean((2, 3))
        torch.testing.assert_close(model.head(feature), raw.logits)


def answers(model: StnModel) -> Tensor:
    return model(pictures(1).expand(10, -1, -1, -1), torch.arange(10)).logits


def alike(logits: Tensor) -> bool:
    return torch.allclose(logits, logits[:1].expand_as(logits), atol=1e-6)


def test_the_query_answers_only_by_moving_the_window() -> None:
    model = published()
    assert not alike(answers(model))
    nn.init.zeros_(model.transformer.to_theta.weight)  # the window stays where it started
    assert alike(answers(model))


def test_the_other_row_lets_the_classifier_see_the_query() -> None:
    model = published(query_to_classifier=True)
    nn.init.zeros_(model.transformer.to_theta.weight)
    assert not alike(answers(model))


def test_the_window_follows_picture_and_query_together() -> None:
    """A query must be able to mean another place in another picture: the effects do not simply add up."""
    model = published()
    images = torch.rand(2, 3, 100, 100).repeat_interleave(2, 0)
    images[:2] *= 0.2
    theta = model.forward_raw(images, torch.tensor([0, 5, 0, 5])).acts["crop"].theta  # picture a, a, b, b
    assert not torch.allclose(theta[1] - theta[0], theta[3] - theta[2], atol=1e-4)


def test_pictures_of_another_size_are_refused() -> None:
    with pytest.raises(DataError, match=r"100×100 pixels only, found 64×80; set picture to \[64, 80\]"):
        published().check_input((64, 80))
    model = published(picture=[64, 80], crop=[50, 50])
    output = model(torch.rand(2, 3, 64, 80), torch.tensor([0, 1]))
    assert output.trace.validate().image_map().shape == (2, 64, 80)
    assert output.aux.acts["crop"].context.shape == (2, 3, 50, 50)


def test_the_helper_answers_in_training_alone_and_from_what_was_attended() -> None:
    model = tuned(dropout=0.0)
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
    result = task.loss(even, {"label": label}, Default())
    assert result["loss"].item() == pytest.approx(2 * torch.tensor(5.0).log().item())
    assert result["helper_loss"].item() == pytest.approx(torch.tensor(5.0).log().item())
    without = task.loss(QuestionOutput(torch.zeros(3, 5)), {"label": label}, Default())
    assert "helper_loss" not in without
