"""Losses of a network that zooms, worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.losses.maps import proposal_loss, rank_loss, scale_losses, true_class_probability


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
    assert probability.grad is not None
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
