"""Means, intervals that count pictures and hold the truth as often as promised, and columns of values."""

import math

import pytest
import torch

from saccade.errors import DataError
from saccade.metrics.intervals import (
    Values,
    jackknife_interval,
    mean_interval,
    resplit_interval,
    t_quantile,
)

NAN = float("nan")


def coin(n, share, seed=0):
    return (torch.rand(n, generator=torch.Generator().manual_seed(seed)) < share).float()


def test_questions_about_one_image_are_not_independent():
    """Five copies of each image's value: clustering gives the interval of the images alone, √5 wider than the naive."""
    per_image = coin(400, 0.4)
    values, images = per_image.repeat_interleave(5), torch.arange(400).repeat_interleave(5)
    clustered, naive, alone = mean_interval(values, images), mean_interval(values), mean_interval(per_image)
    assert clustered.images == 400
    assert clustered.n == 2000
    width = clustered.high - clustered.low
    assert width == pytest.approx(alone.high - alone.low, rel=1e-6)
    assert width / (naive.high - naive.low) == pytest.approx(math.sqrt(5), rel=0.15)


def test_undefined_values_are_counted_and_left_out():
    values, images = torch.tensor([1.0, NAN, 0.0, NAN, 1.0]), torch.tensor([0, 0, 1, 2, 3])
    found = mean_interval(values, images)
    assert found.mean == pytest.approx(2 / 3)
    assert (found.n, found.images, found.undefined) == (3, 3, 2)
    clean = mean_interval(torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0, 1, 3]))
    assert (found.low, found.high) == (clean.low, clean.high)


def test_one_image_says_nothing_about_spread():
    found = mean_interval(torch.tensor([1.0, 0.0]), torch.tensor([5, 5]))
    assert found.mean == 0.5
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.images == 1


def agresti_coull(share, n, z2=3.841459):
    """The textbook's interval of a share of n trials, at 95 %."""
    trials = n + z2
    centre = (n * share + z2 / 2) / trials
    half = math.sqrt(z2 * centre * (1 - centre) / trials)
    return max(0.0, centre - half), min(1.0, centre + half)


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize(("questions", "images"), [(1, 200), (7, 29)])
def test_all_right_or_all_wrong_is_not_certainty(value, questions, images):
    """Every picture alike, from either end: the interval of as many trials as there are pictures."""
    values, groups = torch.full((images * questions,), value), torch.arange(images).repeat_interleave(questions)
    found = mean_interval(values, groups)
    assert (found.low, found.high) == pytest.approx(agresti_coull(value, images), abs=1e-6)
    assert (found.mean, found.n, found.images) == (value, images * questions, images)


def test_a_share_is_as_textbooks_have_it():
    """8 of 10 right, one question a picture: the interval of Agresti and Coull (1998), a little wider by V's G − 1."""
    found = mean_interval(torch.tensor([1.0] * 8 + [0.0] * 2))
    low, high = agresti_coull(0.8, 10)
    assert found.low == pytest.approx(low, abs=0.02)
    assert found.high == pytest.approx(high, abs=0.02)


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062047), (2, 4.30265273), (3, 3.18244631), (200, 1.97189622), (201, 1.97183651), (1000, 1.96233909)],
)
def test_students_t_is_as_in_tables(freedom, expected):
    assert t_quantile(freedom) == pytest.approx(expected, abs=5e-7)


@pytest.mark.parametrize("pictures", [2, 3, 5, 30])
def test_without_ends_few_pictures_hold_the_truth_as_often_as_promised(pictures):
    """With z in place of t, five pictures would hold it 88 times in 100, two 70 times."""
    values = torch.randn(20_000, pictures, dtype=torch.float64, generator=torch.Generator().manual_seed(0))  # (R,G)
    without = (values.sum(-1, keepdim=True) - values) / (pictures - 1)
    assert 0.945 < held(jackknife_interval(values.mean(-1), without, ends=None), 0.0) < 0.955


REPEATS = 2000
SIZES = (30, 100, 1000)
CHANCES = (0.5, 0.95, 0.99, 1.0)


def held(intervals, truth):
    low, high = intervals
    return float(((low <= truth + 1e-9) & (high >= truth - 1e-9)).double().mean())


@pytest.mark.parametrize(("questions", "alike"), [(1, 0.0), (7, 0.0), (7, 0.5), (7, 1.0)])
@pytest.mark.parametrize("chance", CHANCES)
def test_means_hold_the_truth_as_often_as_promised(questions, alike, chance):
    """``alike``: the share of questions of a picture that have one fate in common, from none to all."""
    generator = torch.Generator().manual_seed(0)
    for n in SIZES:
        pictures = math.ceil(n / questions)
        there = (torch.arange(pictures * questions) < n).view(pictures, questions)  # (G,Q): the last may have fewer
        drawn = torch.rand(REPEATS, pictures, questions, generator=generator)
        joined = torch.rand(pictures, questions, generator=generator) < alike
        drawn = torch.where(joined, torch.rand(REPEATS, pictures, 1, generator=generator), drawn)
        right = ((drawn < chance) & there).sum(-1).double()  # (R,G)
        counts, total = there.sum(-1).double(), right.sum(-1, keepdim=True)
        without = (total - right) / (n - counts)  # (R,G)
        assert held(jackknife_interval(total[:, 0] / n, without), chance) >= 0.93, n


def test_the_interval_by_hand() -> None:
    """Scores 0, 2, 4 of 3 splits: mean 2, s² = (4 + 0 + 4) / 2 = 4.

    With n₂/n₁ = 10/60 the variance is (1/3 + 1/6) · 4 = 2; t of 2 degrees at 95 % is 4.302653. Half: 4.302653 · √2.
    """
    found = resplit_interval(torch.tensor([0.0, 2.0, 4.0]), trained=60, tested=10)
    assert found.mean == pytest.approx(2)
    assert found.half == pytest.approx(4.302653 * math.sqrt(2), rel=1e-5)
    assert not found.is_beyond_zero


def test_equal_scores_keep_the_width_of_one_picture() -> None:
    """Five equal differences of test sets of 20: as if one picture of one split were answered otherwise.

    Then s² is the variance of (0.05, 0, 0, 0, 0) = 0.05² / 5.
    """
    one_off = torch.tensor([0.05, 0, 0, 0, 0])
    equal = resplit_interval(torch.full((5,), 0.05), trained=60, tested=20)
    assert equal.half == pytest.approx(resplit_interval(one_off, trained=60, tested=20).half)
    assert equal.half == pytest.approx(2.776445 * math.sqrt((1 / 5 + 1 / 3) * 0.05**2 / 5), rel=1e-5)


def test_values_have_means_and_intervals_over_what_is_defined():
    kept = Values()
    kept.add_values({"all": torch.tensor([0.0, 1.0, math.nan]), "none": torch.full((3,), math.nan)})
    kept.add_values({"all": torch.tensor([0.5]), "none": torch.tensor([math.nan])})
    assert kept["all"].dtype == torch.float64
    assert kept.means()["all"] == 0.5
    assert math.isnan(kept.means()["none"])
    pictures = torch.tensor([7, 7, 8, 9])
    assert kept.intervals(pictures)["all"] == mean_interval(kept["all"], pictures)
    assert kept.intervals(pictures)["none"].n == 0


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-1.0, 0.5)])
def test_values_beyond_their_ends_are_no_interval(ends):
    values = torch.tensor([0.2, 0.9, 30.0])
    with pytest.raises(DataError, match="ends"):
        mean_interval(values, ends=ends)
    assert mean_interval(values, ends=None).n == 3
