"""Rivals of Seo et al. (2016): HARD as marginal and sampled twin; STN and the tuned one, moved by the query alone."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.config import from_dict
from saccade.errors import DataError
from saccade.families.question.task import Default, QuestionTask
from saccade.models.soft import HardConfig, HardModel
from saccade.models.stn import StnConfig, StnModel, StnTunedConfig, StnTunedModel
from saccade.trace import QuestionOutput
from tiny_models import example_batch, tiny_model


@pytest.fixture
def published() -> HardModel:
    return HardModel(HardConfig()).eval()


def twin(**sizes: object) -> HardModel:
    """A small model that samples."""
    torch.manual_seed(0)
    return tiny_model(HardModel, estimator="reinforce", **sizes)


def scenes(count: int = 2) -> tuple[Tensor, Tensor]:
    """Pictures whose cells differ, and queries."""
    torch.manual_seed(0)
    return torch.rand(count, 3, 100, 100), torch.arange(count) % 10


def test_cross_entropy_on_the_logits_is_the_marginal_loss(published: HardModel) -> None:
    """−log Σ_ij α_ij p(y|f_ij), written out cell by cell."""
    images, query = scenes(3)
    label = torch.tensor([4, 0, 2])
    raw = published.forward_raw(images, query)
    features = published.encode(images)
    expected = []
    for b in range(3):
        total = torch.zeros(())
        for i in range(4):
            for j in range(4):
                answer = published.head(features[b, :, i, j][None]).softmax(-1)[0, label[b]]
                total = total + raw.acts["stage4"].weights[b, i, j] * answer
        expected.append(-total.log())
    torch.testing.assert_close(F.cross_entropy(raw.logits, label), torch.stack(expected).mean())
    torch.testing.assert_close(raw.logits.logsumexp(-1), torch.zeros(3), rtol=0, atol=1e-5)


def test_the_head_in_training_normalises_over_all_cells() -> None:
    model = HardModel(HardConfig(dropout=0.0)).train()
    images, _ = scenes()
    features = model.encode(images)
    cells = features.permute(0, 2, 3, 1).reshape(-1, 32)
    normed = F.batch_norm(cells, None, None, training=True)
    expected = model.head.classify(normed).log_softmax(-1).reshape(2, 4, 4, 5).permute(0, 3, 1, 2)
    torch.testing.assert_close(model.cell_answers(features, torch.zeros(2, 10)), expected, rtol=1e-4, atol=1e-5)


def test_the_likeliest_location_speaks_for_itself(published: HardModel) -> None:
    nn.init.normal_(published.attention.scorer.from_query.weight, std=3)
    raw = published.forward_raw(*scenes(4))
    for b in range(4):
        row, column = divmod(int(raw.acts["stage4"].weights[b].argmax()), 4)
        torch.testing.assert_close(raw.argmax_logits[b].exp(), raw.acts["stage4"].values[b, :, row, column])
    assert not torch.allclose(raw.argmax_logits, raw.logits, atol=1e-4)


def labelled(**sizes: object) -> HardModel:
    """A small model whose labels do not exclude each other."""
    torch.manual_seed(0)
    return tiny_model(HardModel, multi_label=True, **sizes).eval()


def told(model: HardModel, weights: list[float], cells: list[list[float]]) -> dict[str, Tensor]:
    """What the model makes of a prior over a row of cells and their log-odds, one list for each label."""
    prior = torch.tensor(weights).reshape(1, 1, -1)  # (1,1,W)
    answers = torch.tensor(cells).unsqueeze(1)[None]  # (1,K,1,W)
    return model._summed(prior, answers)


def test_a_mixture_of_labels_by_hand() -> None:
    """Cells 1/4 and 3/4 likely; label 0 has odds 3 and 1/3 there: p = 1/4·3/4 + 3/4·1/4 = 3/8, odds 3/5. Label 1 has
    odds 1 and 9: p = 1/8 + 27/40 = 4/5, odds 4. The likeliest cell is the second."""
    log = math.log
    raw = told(labelled(), [0.25, 0.75], [[log(3), -log(3)], [0.0, log(9)]])
    torch.testing.assert_close(raw.logits, torch.tensor([[log(3 / 5), log(4)]]))
    torch.testing.assert_close(raw.argmax_logits, torch.tensor([[-log(3), log(9)]]))


def test_labels_nearly_certain_keep_their_digits() -> None:
    """Far beyond where p or 1 − p is 0 in float32: two cells of one mind, and two that differ."""
    raw = told(labelled(), [0.5, 0.5], [[200.0, 200.0], [-200.0, -200.0], [300.0, 100.0], [1e4, -1e4]])
    expected = [200.0, -200.0, 100.0 + math.log(2), 0.0]  # 1 − p = ½(e⁻³⁰⁰ + e⁻¹⁰⁰); one sure each way: a half
    torch.testing.assert_close(raw.logits, torch.tensor([expected]))


def test_in_eval_mode_the_likeliest_cell_answers() -> None:
    model, (inputs, _) = twin().eval(), example_batch(HardModel, 5, 0)
    output = model(**inputs)
    (look,) = output.trace.validate().looks
    assert (look.kind, look.role) == ("hard", "multiplier")
    assert torch.equal(look.choice, look.weights.flatten(1).argmax(1))
    torch.testing.assert_close(look.rebuild(output.aux.acts["stage2"].values), output.aux.acts["stage2"].context)
    torch.testing.assert_close(output.logits.exp(), output.aux.acts["stage2"].context)
    assert output.aux.sampled_logits is None
    assert torch.equal(model(**inputs).logits, output.logits)


def test_in_training_it_draws() -> None:
    model, (inputs, _) = twin(samples=3).train(), example_batch(HardModel, 8, 0)
    output = model(**inputs)
    (look,) = output.trace.validate().looks
    sampled, log_prob = output.aux.sampled_logits, output.aux.sampled_log_prob
    assert (sampled.shape, log_prob.shape) == ((8, 3, 3), (8, 3))
    assert torch.equal(sampled[:, 0], output.logits)
    assert torch.equal(log_prob[:, 0], look.log_prob)
    torch.testing.assert_close(look.rebuild(output.aux.acts["stage2"].values), output.aux.acts["stage2"].context)
    choices = torch.stack([model(**inputs).trace.looks[0].choice for _ in range(10)])
    assert (choices != choices[:1]).any()
    assert output.aux.entropy.max() <= math.log(output.aux.acts["stage2"].weights[0].numel()) + 1e-5


def published_stn(**settings: object) -> StnModel:
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
    for model in (published_stn(), tuned()):
        raw = model.forward_raw(pictures(), torch.tensor([3, 7]))
        feature = model.reader(raw.acts["crop"].context).mean((2, 3))
        torch.testing.assert_close(model.head(feature), raw.logits)


def answers(model: StnModel) -> Tensor:
    return model(pictures(1).expand(10, -1, -1, -1), torch.arange(10)).logits


def alike(logits: Tensor) -> bool:
    return torch.allclose(logits, logits[:1].expand_as(logits), atol=1e-6)


def test_the_query_answers_only_by_moving_the_window() -> None:
    model = published_stn()
    assert not alike(answers(model))
    nn.init.zeros_(model.transformer.to_theta.weight)  # the window stays where it started
    assert alike(answers(model))


def test_the_other_row_lets_the_classifier_see_the_query() -> None:
    model = published_stn(query_to_classifier=True)
    nn.init.zeros_(model.transformer.to_theta.weight)
    assert not alike(answers(model))


def test_the_window_follows_picture_and_query_together() -> None:
    """A query must be able to mean another place in another picture: the effects do not simply add up."""
    model = published_stn()
    images = torch.rand(2, 3, 100, 100).repeat_interleave(2, 0)
    images[:2] *= 0.2
    theta = model.forward_raw(images, torch.tensor([0, 5, 0, 5])).acts["crop"].theta  # picture a, a, b, b
    assert not torch.allclose(theta[1] - theta[0], theta[3] - theta[2], atol=1e-4)


def test_pictures_of_another_size_are_refused() -> None:
    with pytest.raises(DataError, match=r"100×100 pixels only, found 64×80; set picture to \[64, 80\]"):
        published_stn().check_input((64, 80))
    model = published_stn(picture=[64, 80], crop=[50, 50])
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
