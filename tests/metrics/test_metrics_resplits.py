"""The corrected interval of scores on overlapping splits, on numbers worked out by hand."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.metrics.intervals import resplit_interval


def test_the_interval_by_hand() -> None:
    """Scores 0, 2, 4 of 3 splits: mean 2, s² = (4 + 0 + 4) / 2 = 4.

    With n₂/n₁ = 10/60 the variance is (1/3 + 1/6) · 4 = 2; t of 2 degrees at 95 % is 4.302653. Half: 4.302653 · √2.
    """
    found = resplit_interval(torch.tensor([0.0, 2.0, 4.0]), trained=60, tested=10)
    assert found.mean == pytest.approx(2)
    assert found.half == pytest.approx(4.302653 * math.sqrt(2), rel=1e-5)
    assert not found.is_beyond_zero


def test_the_correction_makes_the_usual_interval_wider() -> None:
    """Without the correction the variance of the mean is s²/J; with n₂/n₁ = 1/3 and J = 5 it is 8/3 of that."""
    scores = torch.tensor([0.1, 0.3, 0.2, 0.25, 0.15])
    plain = 2.776445 * float(scores.double().std()) / math.sqrt(5)
    found = resplit_interval(scores, trained=300, tested=100)
    assert found.half == pytest.approx(plain * math.sqrt(8 / 3), rel=1e-5)


def test_equal_scores_keep_the_width_of_one_picture() -> None:
    """Five equal differences of test sets of 20: as if one picture of one split were answered otherwise.

    Then s² is the variance of (0.05, 0, 0, 0, 0) = 0.05² / 5.
    """
    one_off = torch.tensor([0.05, 0, 0, 0, 0])
    equal = resplit_interval(torch.full((5,), 0.05), trained=60, tested=20)
    assert equal.half == pytest.approx(resplit_interval(one_off, trained=60, tested=20).half)
    assert equal.half == pytest.approx(2.776445 * math.sqrt((1 / 5 + 1 / 3) * 0.05**2 / 5), rel=1e-5)
