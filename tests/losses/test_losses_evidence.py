"""The loss of maps that miss the evidence: by hand, beside the score of the same name, and through models."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.errors import ConfigError
from saccade.losses.maps import evidence_loss
from saccade.metrics.maps.localisation import true_positive_strength
from saccade.models.hattnet import HAttNetModel
from saccade.models.soft import SoftModel
from saccade.models.stn import StnModel
from saccade.tasks.picture_task import EvidenceTerm
from tiny_models import example_batch, tiny_config, tiny_model


def test_by_hand() -> None:
    """Shares 1/4 and 1/2 on the evidence, a third map without evidence: L = (ln 4 + ln 2) / 2."""
    weights = torch.tensor([[[1.0, 3.0]], [[0.5, 0.5]], [[1.0, 0.0]]])
    on = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]])
    found = evidence_loss(weights, on, torch.ones(1, 1, 2))
    assert float(found) == pytest.approx((math.log(4) + math.log(2)) / 2, abs=1e-6)
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
    found = EvidenceTerm()(model, raw, evidence)
    wanted = true_positive_strength(model.wrap(raw, size).trace.image_map("total").detach(), evidence)
    assert float((-found.detach()).exp()) == pytest.approx(float(wanted), rel=1e-4)
    assert found.requires_grad


def test_a_model_whose_look_is_a_crop_is_refused() -> None:
    torch.manual_seed(0)
    model = tiny_model(StnModel).eval()
    inputs, _ = example_batch(StnModel, 1, 0)
    raw = model.forward_raw(**inputs)
    with pytest.raises(ConfigError, match="evidence_weight teaches maps on a fixed grid"):
        EvidenceTerm()(model, raw, torch.ones(1, *inputs["images"].shape[-2:], dtype=torch.bool))
