"""Orders that agree, paired differences, and p-values of several comparisons: by hand and beside scipy."""

from __future__ import annotations

import math

import pytest
import torch

from saccade.metrics.intervals import holm, kendall_tau, paired, t_quantile, t_tails


def test_tau_by_hand() -> None:
    """Of six pairs one is turned: (5 − 1) / 6; a tie in one order of three: 2 / √(3 · 2)."""
    assert kendall_tau([1, 2, 3, 4], [10, 20, 40, 30]) == pytest.approx(4 / 6)
    assert kendall_tau([1, 2, 3], [3, 2, 1]) == -1
    assert kendall_tau([1, 2, 3], [1, 1, 2]) == pytest.approx(2 / math.sqrt(6))
    assert math.isnan(kendall_tau([1, 2], [5, 5]))


def test_tau_of_noise_is_near_zero() -> None:
    torch.manual_seed(0)
    found = [kendall_tau(torch.rand(40).tolist(), torch.rand(40).tolist()) for _ in range(50)]
    assert abs(sum(found) / 50) < 0.05


def test_holm_by_hand() -> None:
    """Sorted .01 .02 .04 of three: .03, .04, .04; what comes later is never smaller; NaN is no comparison."""
    assert holm([0.02, 0.01, 0.04]) == pytest.approx([0.04, 0.03, 0.04])
    found = holm([0.5, math.nan, 0.9])
    assert found[0] == 1.0
    assert math.isnan(found[1])
    assert found[2] == 1.0
    assert holm([]) == []


def test_a_picture_is_the_unit() -> None:
    """Differences .1 .3 of picture 0 and .6 of picture 1: means .2 and .6; t = .4 / .2 = 2 with one degree."""
    one, other = torch.tensor([0.5, 0.5, 0.9, 0.3]), torch.tensor([0.4, 0.2, 0.3, torch.nan])
    found = paired(one, other, torch.tensor([0, 0, 1, 2]))
    assert (found.difference, found.pictures) == (pytest.approx(0.4), 2)
    assert found.p == pytest.approx(t_tails(2.0, 1), rel=1e-4)
    assert paired(one[:3], one[:3], torch.tensor([0, 0, 1])).p == 1.0
    assert math.isnan(paired(one[:1], other[:1], torch.tensor([0])).p)


def test_chance_is_found_in_one_of_twenty() -> None:
    torch.manual_seed(0)
    found = [paired(torch.rand(60), torch.rand(60), torch.arange(60)).p < 0.05 for _ in range(400)]
    assert 0.02 < sum(found) / 400 < 0.09


@pytest.mark.parametrize("freedom", [1, 4, 30, 200, 201, 1000])
def test_tails_are_what_the_quantile_leaves(freedom: int) -> None:
    assert t_tails(0.0, freedom) == pytest.approx(1.0)
    assert t_tails(t_quantile(0.95, freedom), freedom) == pytest.approx(0.05, abs=2e-5)


def test_small_tails_keep_their_digits() -> None:
    """For 1 and 2 degrees of freedom P(|T| > t) has closed forms: 2/π · atan(1/t), and 1 − t/√(2 + t²) ≈ 1/t²."""
    assert t_tails(1e17, 1) == pytest.approx(2 / math.pi * 1e-17, rel=1e-9)
    assert t_tails(1e9, 2) == pytest.approx(1e-18, rel=1e-9)
    assert 0 < t_tails(60.0, 99) < 1e-70
    assert t_tails(12.0, 100_000) == pytest.approx(math.erfc(12 / math.sqrt(2)), rel=0.06)  # nearly normal
