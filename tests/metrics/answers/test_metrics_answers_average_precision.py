"""Average precision by the PASCAL protocol: hand-worked curves, scikit-learn's curve, and what has no score."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics import average_precision, average_precisions, weighted_map

BOTH = pytest.mark.parametrize("interpolation", ["11-point", "all-point"])


def ranked(*truth):
    """Scores that fall from example to example, and their truth."""
    return torch.arange(len(truth), 0, -1) / 10, torch.tensor(truth, dtype=torch.bool)


def random_case(seed, examples=30, levels=8):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(levels, (examples,), generator=generator) / levels  # with ties
    truth = torch.rand(examples, generator=generator) < 0.3
    truth[0] = True
    return scores, truth


def test_all_point_by_hand():
    """Truth 1 0 1 0 1: precision at the hits 1, 2/3, 3/5, each a third of the recall."""
    assert average_precision(*ranked(1, 0, 1, 0, 1), "all-point") == pytest.approx((1 + 2 / 3 + 3 / 5) / 3)


def test_eleven_point_by_hand():
    """The same: recall 0, .1, .2, .3 → 1; .4, .5, .6 → 2/3; .7, .8, .9, 1 → 3/5."""
    assert average_precision(*ranked(1, 0, 1, 0, 1), "11-point") == pytest.approx((4 * 1 + 3 * 2 / 3 + 4 * 3 / 5) / 11)


@BOTH
def test_ties_are_called_together(interpolation):
    """Four examples with one score, one of them true: precision 1/4 whatever their order."""
    for place in range(4):
        truth = torch.arange(4) == place
        assert average_precision(torch.ones(4), truth, interpolation) == pytest.approx(0.25)


@BOTH
def test_without_a_positive_there_is_no_score(interpolation):
    assert math.isnan(average_precision(*ranked(0, 0), interpolation))
    assert math.isnan(average_precision(torch.zeros(0), torch.zeros(0, dtype=torch.bool), interpolation))


@pytest.mark.reference
@given(st.integers(0, 500))
def test_all_points_are_scikit_learns_curve_under_its_envelope(seed):
    """scikit-learn does not interpolate: its average precision is a lower bound, its curve the one used here."""
    from sklearn.metrics import average_precision_score, precision_recall_curve

    scores, truth = random_case(seed)
    precision, recall, _ = precision_recall_curve(truth.numpy(), scores.numpy())  # recall falls to 0
    highest = [max(p for p, r in zip(precision, recall) if r >= at) for at in recall]
    expected = sum((recall[k] - recall[k + 1]) * highest[k] for k in range(len(recall) - 1))
    found = average_precision(scores, truth, "all-point")
    assert found == pytest.approx(expected)
    assert found >= average_precision_score(truth.numpy(), scores.numpy()) - 1e-9


@BOTH
def test_attributes_are_weighted_by_their_positives(interpolation):
    """One attribute with three positives, all first (1); one with one positive, called second (1/2): (3 + 1/2) / 4."""
    scores = torch.tensor([[4.0, 3.0], [3.0, 4.0], [2.0, 1.0], [1.0, 2.0]])
    truth = torch.tensor([[1, 1], [1, 0], [1, 0], [0, 0]])
    assert average_precisions(scores, truth, interpolation).tolist() == pytest.approx([1, 0.5])
    assert weighted_map(scores, truth, interpolation) == pytest.approx(3.5 / 4)


def test_an_attribute_without_positives_does_not_count():
    scores = torch.tensor([[4.0, 3.0, 9.0], [3.0, 4.0, 8.0]])
    truth = torch.tensor([[True, False, False], [False, True, False]])
    assert average_precisions(scores, truth).isnan().tolist() == [False, False, True]
    assert weighted_map(scores, truth) == weighted_map(scores[:, :2], truth[:, :2]) == 1
    assert math.isnan(weighted_map(scores, torch.zeros_like(truth)))
