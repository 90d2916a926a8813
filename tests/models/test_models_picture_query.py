"""Query models and their controls: any backbone, many labels, the prior, a pretrained start, FiLM, a ViT, the head."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from saccade import geometry
from saccade.attention.class_token import SelfAttention, attention_rollout
from saccade.attention.soft import attend_uniformly
from saccade.errors import DataError
from saccade.families import model_spec, models
from saccade.models.controls import BlindModel, CrossModel, FeatureModulation, FilmModel
from saccade.models.picture_query import PictureQueryModel
from saccade.models.question_head import QuestionHeadModel
from saccade.models.vit import VitConfig, VitModel
from tiny_models import OneHotModel, example_batch, publish, tiny_model, withdraw

Near = Callable[..., None]

DEEP = {"backbone": "mobilenetv2", "through": "block4"}
ASKED = {name for name, spec in models().items() if issubclass(spec.load(), PictureQueryModel)}
every_model = pytest.mark.parametrize("name", sorted(ASKED))


def tiny(name: str, seed: int = 0, **settings: Any) -> PictureQueryModel:
    model = tiny_model(name, seed, **settings)
    return model


@pytest.mark.parametrize("name", ["soft", "hard", "hattnet-ctx", "cross"])
def test_the_classifier_never_sees_the_query(name: str) -> None:
    """Once all cells weigh alike, queries cannot be told apart; before, they can."""
    torch.manual_seed(0)
    model = model_spec(name).build().eval()
    image = torch.zeros(1, 3, 100, 100)
    image[:, :, 10:40, 60:90] = torch.rand(3, 30, 30)  # cells must differ, or attention makes no difference

    def spread() -> float:
        logits = model(image.expand(10, -1, -1, -1), torch.arange(10)).logits
        return float(logits.std(0).max().detach())

    parameters = dict(model.named_parameters())
    for key, parameter in parameters.items():
        if key.endswith(("from_query.weight", "to_query.weight")):
            torch.nn.init.normal_(parameter, std=3)
    assert spread() > 1e-4
    for key, parameter in parameters.items():
        if key.endswith(("to_score.weight", "to_key.weight")):
            torch.nn.init.zeros_(parameter)
    assert spread() < 1e-5


def test_what_logits_mean(assert_near: Near) -> None:
    """By hand: odds 3 to 1 and 1 to 3 are 3/4 and 1/4 as labels, and 9/10 and 1/10 as exclusive answers."""
    logits = torch.tensor([[3.0, 1 / 3]]).log()
    assert_near(tiny("soft", multi_label=True).probabilities(logits), [[0.75, 0.25]])
    assert_near(tiny("soft").probabilities(logits), [[0.9, 0.1]])
    assert_near(OneHotModel().probabilities(logits), [[0.9, 0.1]])


@every_model
@pytest.mark.parametrize("multi_label", [False, True])
def test_the_prior_adds_a_row_for_each_query(name: str, multi_label: bool) -> None:
    """To the logits, or to those of every cell where each answers for itself; the looks stay as they are."""
    inputs, _ = example_batch(name, 3, 0)
    plain = tiny(name, multi_label=multi_label).eval()
    model = tiny(name, multi_label=multi_label, prior=True).eval()
    torch.nn.init.normal_(model.prior.weight)
    raw, before = model.forward_raw(**inputs), plain.forward_raw(**inputs)
    row = model.prior.weight[inputs["query"]]  # (B,K)
    if name == "hard":
        weights = before.acts["stage2"].weights[:, None]  # (B,1,h,w)
        values = before.acts["stage2"].values  # p(y|cell): (B,K,h,w)
        shares = values.logit() if multi_label else values.log()
        shares = shares + row[:, :, None, None]
        shares = shares.sigmoid() if multi_label else shares.softmax(1)
        torch.testing.assert_close(model.probabilities(raw.logits), (weights * shares).sum((2, 3)))
    else:
        torch.testing.assert_close(raw.logits, before.logits + row)
    for look in before.acts:
        for part in ("weights", "scores", "theta"):
            one, other = (getattr(output.acts[look], part) for output in (raw, before))
            assert one is other is None or torch.equal(one, other), (look, part)


@pytest.mark.parametrize("name", ["soft", "hattnet", "film"])
def test_building_reads_no_weights_and_starting_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    withdraw(monkeypatch)
    model = tiny(name, pretrained=True, **DEEP)
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    with pytest.raises(DataError, match="not on this machine"):
        model.load_pretrained()
    weights = publish(monkeypatch)
    model.load_pretrained()
    for key, tensor in model.backbone.state_dict().items():
        assert torch.equal(tensor, weights[key]), key
    moved = {key for key, tensor in model.state_dict().items() if not torch.equal(tensor, before[key])}
    assert "backbone.stages.block3.conv.0.0.weight" in moved
    assert not {key for key in moved if not key.startswith(("backbone", "modulations"))}


CONTROLS = {"cross": CrossModel, "film": FilmModel, "blind": BlindModel}


def control_of(name: str) -> PictureQueryModel:
    """A control in its control_of size."""
    torch.manual_seed(0)
    return CONTROLS[name](CONTROLS[name].Config()).eval()


def test_attending_alike_by_hand(assert_near: Near) -> None:
    attended = attend_uniformly(torch.tensor([[[[1.0, 2.0], [3.0, 6.0]], [[0.0, 0.0], [0.0, 1.0]]]]))
    assert_near(attended.context, [[3.0, 0.25]])
    assert_near(attended.weights, [[[0.25, 0.25], [0.25, 0.25]]])
    assert not attended.weights.requires_grad


def test_modulation_by_hand(assert_near: Near) -> None:
    """Query 2 of three: Δγ = (1, −1), β = (5, 7), so channel 0 is doubled plus 5, and channel 1 is 7."""
    layer = FeatureModulation(2, 3)
    with torch.no_grad():
        layer.from_query.weight.zero_()
        layer.from_query.bias.zero_()
        layer.from_query.weight[:, 2] = torch.tensor([1.0, -1.0, 5.0, 7.0])
    features = torch.tensor([[[[1.0, 2.0]], [[3.0, 4.0]]]])
    assert_near(layer(features, torch.tensor([[0.0, 0.0, 1.0]])), [[[[7.0, 9.0]], [[7.0, 7.0]]]])
    assert_near(layer(features, torch.tensor([[1.0, 0.0, 0.0]])), features)


def test_film_is_stage_and_modulation_in_turn() -> None:
    model = control_of("film")
    images, query = torch.rand(2, 3, 100, 100), torch.tensor([3, 7])
    features = images
    for name, stage in model.backbone.stages.items():
        table = model.modulations[name].from_query
        row = table.weight.T[query] + table.bias  # (B,2C)
        features = stage(features) * (1 + row[:, :32, None, None]) + row[:, 32:, None, None]
    logits = model.head(features.mean((2, 3)))
    torch.testing.assert_close(model.forward_raw(images, query).logits, logits)


@pytest.fixture(scope="module")
def model() -> VitModel:
    torch.manual_seed(0)
    return VitModel(VitConfig()).eval()


def test_looks_are_rows_of_the_last_layer(model: VitModel) -> None:
    output = model(torch.rand(2, 3, 100, 100), torch.tensor([0, 9]))
    looks = output.trace.validate().looks
    assert [look.name for look in looks] == ["head1", "head2", "head3", "head4"]
    assert {(look.kind, look.role, look.norm) for look in looks} == {("soft", "multiplier", "none")}
    sums = torch.stack([look.weights.sum((1, 2)) for look in looks if look.weights is not None])
    assert ((sums > 0) & (sums < 1)).all()  # the rest lies on the class token itself
    mean = torch.stack([output.trace.image_map(look.name) for look in looks]).mean(0)
    torch.testing.assert_close(output.trace.image_map("total"), mean)


def test_the_class_token_reads_what_torch_says() -> None:
    """Its row of the last layer, computed with weights, is row 0 of the layer computed in one piece."""
    torch.manual_seed(0)
    attention = SelfAttention(8, 2).double()
    tokens = torch.randn(3, 7, 8, dtype=torch.float64)
    read, acts = attention.class_token(tokens, (2, 3))
    torch.testing.assert_close(read, attention(tokens)[:, 0])
    whole = attention.weights(tokens)[:, :, 0, 1:].unflatten(-1, (2, 3))
    torch.testing.assert_close(torch.stack([act.weights for act in acts], 1), whole)
    for act in acts:
        torch.testing.assert_close(act.context, torch.einsum("byx,bdyx->bd", act.weights, act.values))


def test_rollout_by_hand() -> None:
    """½A + ½I of two layers: [[¾, ¼], [0, 1]] after [[½, ½], [½, ½]]."""
    first = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
    second = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]])
    wanted = torch.tensor([[[0.75, 0.25], [0.0, 1.0]]]) @ torch.full((1, 2, 2), 0.5)
    assert torch.equal(attention_rollout([first, second]), wanted)


def test_rollout_of_the_model_is_a_share_of_the_patches(model: VitModel) -> None:
    encoding = model.encode(torch.rand(2, 3, 100, 100))
    shares = model.rollout(encoding, torch.tensor([3, 4]))
    assert shares.shape == (2, 10, 10)
    assert (shares > 0).all()
    assert (shares.sum((1, 2)) < 1).all()


def trained(**changes: Any) -> QuestionHeadModel:
    """A tiny model whose weights that start at zero are not zero, in double precision."""
    model: QuestionHeadModel = tiny_model(QuestionHeadModel, 0, **changes)
    torch.manual_seed(1)
    for parameter in (model.terms, model.prior.weight if model.prior else None):
        if parameter is not None:
            torch.nn.init.normal_(parameter)
    return model.double().eval()


def test_the_answer_is_that_of_the_equations() -> None:
    """s = g_att(k, q), α = softmax(s), c = Σ α v, (W + U_q) c + b + p_q: cell by cell."""
    model = trained(scored_at="stage1")
    inputs, _ = example_batch(QuestionHeadModel, 3, 0)
    images, query = inputs["images"].double(), inputs["query"]
    with torch.no_grad():
        result = model.forward_raw(images, query)
        encoding = model.encode(images)
        scorer, head = model.attention.scorer, model.head
        for b in range(3):
            keys, values = encoding[b, :8].flatten(1), encoding[b, 8:].flatten(1)  # (D,n), (C,n)
            norm = model.standardise
            keys = (keys - norm.running_mean[:, None]) / (norm.running_var[:, None] + norm.eps).sqrt()
            seen = scorer.from_features.weight[:, :, 0, 0] @ keys + scorer.from_features.bias[:, None]
            met = (seen + scorer.from_query.weight[:, query[b]][:, None]).relu()
            scores = scorer.to_score.weight[0, :, 0, 0] @ met + scorer.to_score.bias
            weights = scores.softmax(0)
            torch.testing.assert_close(result.acts["stage2"].weights[b].flatten(), weights)
            context = (weights * values).sum(1)
            torch.testing.assert_close(result.acts["stage2"].context[b], context)
            context = head.norm(context[None])[0]
            own = head.classify.weight + model.terms[query[b]]
            logits = own @ context + head.classify.bias + model.prior.weight[query[b]]
            torch.testing.assert_close(result.logits[b], logits)


def test_an_even_map_and_what_another_costs() -> None:
    """Four cells of the same score cost nothing; shares of 1/2, 1/4, 1/8, 1/8 cost log 4 − 7/4 · log 2 nats."""
    model = tiny_model(QuestionHeadModel, 0, even=True, evenness=2.0).double().train()
    encoding, query = torch.rand(2, 8, 2, 2).double(), torch.tensor([0, 1])
    raw = model.ask(encoding, query)
    torch.testing.assert_close(raw.acts["stage2"].weights, torch.full((2, 2, 2), 0.25).double())
    torch.testing.assert_close(raw.penalty, torch.zeros(2).double())
    model.attention.score = lambda keys, asked: torch.tensor([[4.0, 2.0], [1.0, 1.0]]).double().log().expand(2, 2, 2)
    costs = model.ask(encoding, query).penalty
    torch.testing.assert_close(costs, torch.full((2,), 2 * (math.log(4) - 1.75 * math.log(2)), dtype=torch.float64))
    assert model.eval().ask(encoding, query).penalty is None


def test_at_first_every_question_has_the_same_classifier() -> None:
    model = tiny_model(QuestionHeadModel, 0).eval()
    feature = torch.rand(4, 8)
    logits = [model.classify(feature, torch.eye(4)[[query] * 4]) for query in range(4)]
    assert all(torch.equal(each, model.head(feature)) for each in logits)


@pytest.mark.parametrize("backbone", ["mobilenetv2", "efficientnet-lite0", "vgg16"])
def test_scores_are_read_where_the_attended_cells_lie(backbone: str) -> None:
    """A map whose value at each cell is its own place is read at the places of the coarser cells, inside the border."""
    model = tiny_model(QuestionHeadModel, 0, backbone=backbone, scored_at="finer")
    fine, coarse = (model.backbone.frames[name] for name in (model.scored, model.look_name))
    places = torch.stack(torch.meshgrid(torch.arange(14) + 0.5, torch.arange(14) + 0.5, indexing="xy"))  # (2,14,14)
    at = geometry.apply(fine, places.flatten(1).T.double()).T.reshape(1, 2, 14, 14)  # pixels of each cell
    read = model.at_attended(at, (7, 7))[0]  # (2,7,7)
    cells = torch.stack(torch.meshgrid(torch.arange(7) + 0.5, torch.arange(7) + 0.5, indexing="xy"))
    expected = geometry.apply(coarse, cells.flatten(1).T.double()).T.reshape(2, 7, 7)
    torch.testing.assert_close(read[:, 1:-1, 1:-1], expected[:, 1:-1, 1:-1])


def test_the_encoding_is_both_stages_and_has_a_name_of_its_own() -> None:
    images = example_batch(QuestionHeadModel, 2, 0)[0]["images"]
    model, plain = tiny_model(QuestionHeadModel, 0, scored_at="finer"), tiny_model(QuestionHeadModel, 0)
    assert (model.encoding_name, plain.encoding_name) == ("stage1+stage2", "stage2")
    encoding = model.eval().encode(images)
    assert encoding.shape[1] == 16
    torch.testing.assert_close(encoding[:, 8:], model.backbone(images))
    assert torch.equal(plain.eval().encode(images), plain.backbone(images))
