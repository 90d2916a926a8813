"""The farthest weights that leave the answer alone: models whose dependence on weights is known."""

from __future__ import annotations

import pytest
import torch

from saccade.metrics.maps.edits import farthest, variation

OWN, OTHER = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[0.0, 1.0]]])


def leaning(by: float):
    """A model whose first answer has the probability ½ + by · (weight of the first cell − ½)."""

    def answers(weights: torch.Tensor) -> torch.Tensor:
        first = 0.5 + by * (weights[:, 0, 0] - 0.5)
        return torch.stack([first, 1 - first], 1)

    return answers


def test_variation_of_shares():
    assert variation(OWN, OTHER).tolist() == [1]
    assert variation(OWN, torch.tensor([[[0.75, 0.25]]])).tolist() == [0.25]


def test_a_model_that_ignores_its_weights_can_have_any():
    assert farthest(OWN, [OTHER], leaning(0)).tolist() == [1]


def test_a_model_that_is_its_weights_can_have_no_others():
    assert farthest(OWN, [OTHER], leaning(1)).tolist() == [0]


def test_between_them_by_halving():
    """p moves by .04·s, and .01 is allowed: s ≤ ¼. Tried are 1, ½, ¼ (allowed), 3/8 and 5/16: ¼ is kept."""
    assert farthest(OWN, [OTHER], leaning(0.04)).tolist() == [pytest.approx(0.25)]


def test_the_farthest_of_several_counts():
    near = torch.tensor([[[0.9, 0.1]]])
    assert farthest(OWN, [near, OTHER], leaning(0)).tolist() == [1]
    assert farthest(OWN, [near], leaning(0)).tolist() == [pytest.approx(0.1)]
