"""Models of Seo et al. (2016): HARD as marginal and sampled twin, STN and the tuned one, the hierarchical gates."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade import geometry
from saccade.config import from_dict
from saccade.errors import DataError
from saccade.families import model_spec
from saccade.families.question.task import Default, QuestionTask
from saccade.models.hattnet import HAttNetConfig, HAttNetModel
from saccade.models.soft import HardConfig, HardModel
from saccade.models.stn import StnConfig, StnModel, StnTunedConfig, StnTunedModel
from saccade.trace import Act, QuestionOutput
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


Near = Callable[..., None]
STAGES = ("stage1", "stage2", "stage3", "stage4")


def published_hattnet(name: str = "hattnet-ctx", **settings: object) -> HAttNetModel:
    model = model_spec(name).build(settings)
    return model.eval()


def scene(count: int = 2) -> Tensor:
    """Black with one bright patch, so that cells differ."""
    images = torch.zeros(count, 3, 100, 100)
    images[:, :, 10:40, 60:90] = torch.rand(count, 3, 30, 30)
    return images


def test_the_looks_of_the_paper() -> None:
    """Gates on 49², 23² and 10² cells, a softmax on 4²; centres 2, 5, 11 and 23 pixels in, 2, 4, 8 and 16 apart."""
    output = published_hattnet()(scene(), torch.tensor([0, 9]))
    looks = output.trace.validate().looks
    assert [look.name for look in looks] == list(STAGES)
    assert [(look.kind, look.norm) for look in looks] == [("gate", "sigmoid")] * 3 + [("soft", "softmax")]
    assert {look.role for look in looks} == {"multiplier"}
    assert output.trace.total == "product"
    for look, cells, start, stride in zip(looks, (49, 23, 10, 4), (2, 5, 11, 23), (2, 4, 8, 16), strict=True):
        assert look.weights.shape == (2, cells, cells)
        centre = geometry.apply(look.frame, torch.tensor([[0.5, 0.5], [1.5, 0.5]], dtype=torch.float64))
        assert centre.tolist() == [[start, start], [start + stride, start]]


@pytest.mark.parametrize("name", ["soft", "hard", "hattnet-ctx"])
def test_settings_of_the_authors_training(name: str) -> None:
    """The constants arrive in every norm; Glorot-uniform weights reach but do not pass their bound, biases are zero."""
    torch.manual_seed(0)
    model = model_spec(name).build({"norm_eps": 0.01, "norm_momentum": 0.5, "initial": "glorot"})
    norms = [module for module in model.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    assert len(norms) == (4 if name == "hattnet-ctx" else 1)
    assert {(norm.eps, norm.momentum) for norm in norms} == {(0.01, 0.5)}
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            window = layer.weight[0, 0].numel()
            bound = (6 / (window * sum(layer.weight.shape[:2]))) ** 0.5
            assert 0.8 * bound < layer.weight.abs().max() <= bound
            assert layer.bias is None or not layer.bias.any()


def test_every_stage_sees_what_the_gate_before_it_let_through() -> None:
    """Eq. (5)-(8) step by step, with plain modules, in training mode so that norms are not the identity."""
    model = published_hattnet().train()
    images, query = scene(3), torch.tensor([1, 5, 8])
    raw = model.forward_raw(images, query)
    asked = torch.eye(10)[query]
    features = images
    for name in STAGES[:3]:
        features = model.backbone.stages[name](features)
        torch.testing.assert_close(raw.acts[name].values, features)
        alpha = model.gates[name].scorer(features, asked).sigmoid()  # type: ignore[union-attr, operator]
        torch.testing.assert_close(raw.acts[name].weights, alpha)
        attended = alpha[:, None] * features
        torch.testing.assert_close(raw.acts[name].context, attended)
        mean, variance = attended.mean((0, 2, 3)), attended.var((0, 2, 3), unbiased=False)
        features = (attended - mean[:, None, None]) / (variance[:, None, None] + 1e-5).sqrt()
    features = model.backbone.stages["stage4"](features)
    torch.testing.assert_close(raw.acts["stage4"].values, features, rtol=1e-3, atol=1e-4)
    weights = model.attention.scorer(features, asked).flatten(1).softmax(1).unflatten(1, (4, 4))
    torch.testing.assert_close(
        raw.acts["stage4"].context, (weights[:, None] * features).sum((2, 3)), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize(
    ("settings", "gates", "last"),
    [
        ({"backbone": "vgg16"}, ["pool3", "pool4"], "pool5"),  # the paper's Section 5.2
        ({"backbone": "mobilenetv2", "through": "block0"}, [], "block0"),
        (
            {"backbone": "mobilenetv2", "through": "block4", "gated": ["block2", "block0"]},
            ["block0", "block2"],
            "block4",
        ),
    ],
)
def test_gates_of_deep_backbones(settings: dict[str, object], gates: list[str], last: str) -> None:
    """Behind the last two resolutions before the last, unless other stages are named."""
    model = published_hattnet(**settings)
    assert (list(model.gates), model.look_name) == (gates, last)
    for name in gates:
        gate, norm = model.gates[name], model.norms[name]
        assert gate.scorer.from_features.in_channels == norm.num_features == model.backbone.channels[name]  # type: ignore[union-attr]


DEEP = {"backbone": "mobilenetv2", "through": "block7"}


def test_pretrained_stages_are_neither_normed_nor_starved() -> None:
    """Gates nearly open and no norm between: what reaches the next stages is near what they were trained on."""
    assert not published_hattnet(**DEEP, pretrained=True).norms
    assert list(published_hattnet(**DEEP).norms) == ["block3", "block6"]
    assert list(published_hattnet(**DEEP, pretrained=True, norm_after_gates=True).norms) == ["block3", "block6"]
    raw = published_hattnet(**DEEP, pretrained=True).forward_raw(torch.rand(8, 3, 64, 64), torch.arange(8))
    assert min(raw.acts[name].weights.mean() for name in ("block3", "block6")) > 0.8


def test_the_penalty_by_hand(assert_near: Near) -> None:
    """Two gates: scores 0 everywhere open one by a half, ln 3 opens the other by 3/4; mean 5/8, times 0.4: 1/4."""
    model = HAttNetModel(HAttNetConfig(queries=2, channels=4, depth=3, gate_penalty=0.4)).eval()
    for name, score in (("stage1", 0.0), ("stage2", torch.tensor(3.0).log().item())):
        scorer = model.gates[name].scorer
        nn.init.zeros_(scorer.to_score.weight)  # type: ignore[union-attr, arg-type]
        nn.init.constant_(scorer.to_score.bias, score)  # type: ignore[union-attr, arg-type]
    raw = model.forward_raw(torch.rand(3, 3, 40, 40), torch.tensor([0, 1, 0]))
    assert_near(raw.penalty, [0.25, 0.25, 0.25])  # one for each example, however many cells a stage has
    with torch.inference_mode():  # nothing can be learned from it
        assert model.forward_raw(torch.rand(3, 3, 40, 40), torch.tensor([0, 1, 0])).penalty is None


def spread_price(*openings: list[float]) -> Tensor:
    """Of gates on four cells in a row, for 0.4; of their features one channel varies: 2, 2, 2 and 6, mean 3.

    The squared distances from the mean are 1, 1, 1 and 9: the last cell has 9 of 12 parts of the weight.
    """
    model = HAttNetModel(HAttNetConfig(queries=2, channels=4, depth=3, spread_penalty=0.4))
    features = torch.stack([torch.tensor([[2.0, 2.0, 2.0, 6.0]]), torch.full((1, 4), 5.0)])[None]  # (1,2,1,4)
    gates = zip(model.gates, openings, strict=True)
    return model._price({name: Act(weights=torch.tensor([[opening]]), values=features) for name, opening in gates})


def test_the_price_of_an_even_gate_by_hand(assert_near: Near) -> None:
    """Open on the cell that stands out: (1/4) / √(9/12); on another: (1/4) / √(1/12); the stages count alike."""
    even, there, elsewhere = [0.03] * 4, [0.0, 0.0, 0.0, 0.9], [0.9, 0.0, 0.0, 0.0]
    assert_near(spread_price(even, even), [0.4])
    assert_near(spread_price(there, [0.001 * opening for opening in there]), [0.4 * 0.25 / 0.75**0.5])
    assert_near(spread_price(elsewhere, elsewhere), [0.4 * 0.25 * 12**0.5])
    assert_near(spread_price(even, there), [0.2 + 0.2 * 0.25 / 0.75**0.5])
    assert_near(spread_price([0.0] * 4, [0.0] * 4), [0.0])
