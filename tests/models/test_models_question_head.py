"""The question head: its equations by hand, where its scores come from, and what the classifier hears."""

from typing import Any

import pytest
import torch

from saccade import geometry
from saccade.models.question_head import QuestionHeadModel
from tiny_models import example_batch, tiny_model


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
