"""Losses of maps: what misses the evidence, and what different questions share; by hand, and through models."""

import math

import pytest
import torch

from saccade.errors import ConfigError
from saccade.families.question.task import Default, QuestionTask
from saccade.losses.maps import (
    evidence_loss,
    overlap_loss,
    proposal_loss,
    rank_loss,
    scale_losses,
    true_class_probability,
)
from saccade.metrics.maps.localisation import total_variation, true_positive_strength
from saccade.models.hattnet import HAttNetModel
from saccade.models.soft import SoftModel
from saccade.models.stn import StnModel
from saccade.tasks.picture_task import MapLosses
from tiny_models import example_batch, tiny_config, tiny_model


def test_evidence_by_hand() -> None:
    """Shares 1/4 and 1/2 on the evidence, a third map without evidence: L = (ln 4 + ln 2) / 2."""
    weights = torch.tensor([[[1.0, 3.0]], [[0.5, 0.5]], [[1.0, 0.0]]])
    on = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]])
    result = evidence_loss(weights, on, torch.ones(1, 1, 2))
    assert float(result) == pytest.approx((math.log(4) + math.log(2)) / 2, abs=1e-6)
    assert float(evidence_loss(weights[2:], on[2:], torch.ones(1, 1, 2))) == 0
    assert math.isfinite(float(evidence_loss(torch.zeros(1, 1, 2), on[:1], torch.ones(1, 1, 2))))


@pytest.mark.parametrize("kind", [SoftModel, HAttNetModel])
def test_of_a_model_it_is_the_score_of_its_total_map(kind: type) -> None:
    """One look, on cells; and a product of gates, on pixels: exp(-L) is the true-positive strength of the trace."""
    torch.manual_seed(0)
    model = kind(tiny_config(kind)).eval()
    inputs, _ = example_batch(kind, 1, 0)
    raw = model.forward_raw(**inputs)
    images = inputs["images"]
    size = (images.shape[-2], images.shape[-1])
    evidence = torch.zeros(1, *size, dtype=torch.bool)
    evidence[:, 3:11, 5:20] = True
    result = MapLosses().evidence(model, raw, evidence)
    wanted = true_positive_strength(model.wrap(raw, size).trace.image_map("total").detach(), evidence)
    assert float((-result.detach()).exp()) == pytest.approx(float(wanted), rel=1e-4)
    assert result.requires_grad


def test_a_model_whose_look_is_a_crop_is_refused() -> None:
    torch.manual_seed(0)
    model = tiny_model(StnModel).eval()
    inputs, _ = example_batch(StnModel, 1, 0)
    raw = model.forward_raw(**inputs)
    with pytest.raises(ConfigError, match="teach maps on a fixed grid"):
        MapLosses().evidence(model, raw, torch.ones(1, *inputs["images"].shape[-2:], dtype=torch.bool))


def test_overlap_by_hand() -> None:
    """Shares (1, 0), (¼, ¾) and (0, 1): minima ¼, 0 and ¾, so ⅓ in the mean; a second picture without overlap."""
    maps = torch.tensor([[[2.0, 0.0]], [[1.0, 3.0]], [[0.0, 5.0]]])
    assert float(overlap_loss(maps, 3)) == pytest.approx(1 / 3)
    apart = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert float(overlap_loss(apart, 2)) == 0
    assert float(overlap_loss(torch.cat([apart, apart[:1], apart[:1]]), 2)) == pytest.approx(0.5)
    assert float(overlap_loss(torch.zeros(2, 1, 2), 2)) == 0


@pytest.mark.parametrize("kind", [SoftModel, HAttNetModel])
def test_of_a_model_it_reads_the_total_map(kind: type) -> None:
    """One look on its cells; a product of gates on pixels, as the trace lays it."""
    torch.manual_seed(0)
    model = kind(tiny_config(kind)).eval()
    images = example_batch(kind, 1, 0)[0]["images"][:1]
    size = (images.shape[-2], images.shape[-1])
    raw = model.forward_raw(images, torch.tensor([0, 2]), asks=2)
    result = MapLosses().overlap(model, raw, size, 2)
    trace = model.wrap(raw, size).trace
    maps = trace.image_map("total") if kind is HAttNetModel else trace.looks[0].weights
    assert float(result.detach()) == pytest.approx(float(1 - total_variation(*maps.detach().split(1))), abs=1e-4)
    assert result.requires_grad


def task(**data: object) -> QuestionTask:
    settings = {"name": "mref", "glyphs": "pack", **data}
    return QuestionTask(model="soft", model_config={"channels": 4, "hidden": 4}, data=settings)


def test_a_phase_pays_for_it() -> None:
    chosen = task(asks=2)
    batch = chosen.batch(chosen.split("train"), torch.arange(4), 0)
    raw = chosen.model.train().forward_raw(**chosen.inputs(batch))
    without, priced = (chosen.loss(raw, batch, Default(overlap_weight=weight)) for weight in (0.0, 3.0))
    assert "overlap" not in without
    assert float(priced["loss"].detach()) == pytest.approx(float((without["loss"] + 3 * priced["overlap"]).detach()))


def test_rank_loss_by_hand() -> None:
    """Eq. (9): 0.5 → 0.6 is enough (−0.05, so 0); 0.6 → 0.4 costs 0.25; equal scales cost the margin each."""
    assert float(rank_loss(torch.tensor([[0.5, 0.6, 0.4]]))) == pytest.approx(0.25)
    assert float(rank_loss(torch.tensor([[0.3, 0.3, 0.3]]))) == pytest.approx(0.10)
    assert float(rank_loss(torch.tensor([[0.1, 0.2, 0.3], [0.3, 0.3, 0.3]]))) == pytest.approx(0.05)
    assert float(rank_loss(torch.tensor([[0.3, 0.2]]), margin=0.0)) == pytest.approx(0.1)


def test_rank_loss_has_no_gradient_where_the_ranking_holds() -> None:
    """A pair that is apart by the margin is left alone; of the other, the finer scale goes up alone."""
    probability = torch.tensor([[0.2, 0.5, 0.4]], requires_grad=True)
    rank_loss(probability).backward()
    assert probability.grad.tolist() == [[0.0, 0.0, -1.0]]


def test_probabilities_and_cross_entropies_by_hand() -> None:
    """Two classes, logits ln 3 apart: p_t is ¾ or ¼; the mean of a batch for each scale."""
    logits = torch.tensor([[[math.log(3.0), 0.0], [0.0, 0.0]], [[math.log(3.0), 0.0], [0.0, math.log(3.0)]]])
    labels = torch.tensor([0, 1])
    probability = true_class_probability(logits, labels)
    assert probability.flatten().tolist() == pytest.approx([0.75, 0.5, 0.25, 0.75])
    expected = [-(math.log(0.75) + math.log(0.25)) / 2, -(math.log(0.5) + math.log(0.75)) / 2]
    assert scale_losses(logits, labels).tolist() == pytest.approx(expected)


def test_proposal_loss_by_hand() -> None:
    """Smooth L1 with its bend at 0.1: 0.05 → ½·0.05²/0.1 = 0.0125; 0.3 → 0.3 − 0.05 = 0.25."""
    boxes, targets = torch.tensor([[0.5, 0.5, 0.25]]), torch.tensor([[0.55, 0.2, 0.25]])
    assert float(proposal_loss(boxes, targets)) == pytest.approx(0.2625)
