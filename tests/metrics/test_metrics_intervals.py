import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.errors import ConfigError, DataError, ShapeError
from saccade.metrics import bootstrap, mean_defined, paired_difference
from saccade.metrics import intervals as intervals_file
from saccade.metrics.intervals import wilson

NAN = float("nan")


def coin(n, share, seed=0):
    return (torch.rand(n, generator=torch.Generator().manual_seed(seed)) < share).float()


def test_mean_says_what_it_rests_on():
    assert mean_defined(torch.tensor([1.0, NAN, 0.0, 0.5])) == (0.5, 3, 1)
    empty = mean_defined(torch.tensor([NAN, NAN]))
    assert math.isnan(empty.mean)
    assert empty[1:] == (0, 2)


def test_interval_of_a_bernoulli_has_the_width_of_theory():
    """n = 2000, p ≈ 0.3: half width 1.96·√(p·(1 − p)/n) ≈ 0.020."""
    values = coin(2000, 0.3)
    found = bootstrap(values)
    p = values.mean().item()
    half = 1.96 * math.sqrt(p * (1 - p) / 2000)
    assert found.mean == pytest.approx(p)
    assert found.low == pytest.approx(p - half, abs=0.003)
    assert found.high == pytest.approx(p + half, abs=0.003)
    assert (found.n, found.images, found.undefined) == (2000, 2000, 0)


def test_coverage_is_about_what_was_asked():
    """Of 200 experiments with n = 100 and p = 0.5 about 95 % of the intervals hold the truth (sd 1.5 %)."""
    hits = 0
    for seed in range(200):
        found = bootstrap(coin(100, 0.5, seed), draws=300, seed=seed)
        hits += found.low <= 0.5 <= found.high
    assert 0.88 <= hits / 200 <= 0.99


def test_questions_about_one_image_are_not_independent():
    """Five copies of each image's value: clustering gives the interval of the images alone, √5 wider than the naive."""
    per_image = coin(400, 0.4)
    values, images = per_image.repeat_interleave(5), torch.arange(400).repeat_interleave(5)
    clustered, naive, alone = bootstrap(values, images), bootstrap(values), bootstrap(per_image)
    assert clustered.images == 400
    assert clustered.n == 2000
    width = clustered.high - clustered.low
    assert width == pytest.approx(alone.high - alone.low, rel=1e-6)
    assert width / (naive.high - naive.low) == pytest.approx(math.sqrt(5), rel=0.15)


def test_images_of_unequal_size_weigh_by_their_questions():
    values = torch.tensor([1.0, 1.0, 1.0, 0.0])
    found = bootstrap(values, torch.tensor([7, 7, 7, 9]))
    assert found.mean == 0.75
    assert (found.low, found.high) == (0.0, 1.0)  # both images may be the same one


def test_undefined_values_are_counted_and_left_out():
    values, images = torch.tensor([1.0, NAN, 0.0, NAN, 1.0]), torch.tensor([0, 0, 1, 2, 3])
    found = bootstrap(values, images)
    assert found.mean == pytest.approx(2 / 3)
    assert (found.n, found.images, found.undefined) == (3, 3, 2)
    clean = bootstrap(torch.tensor([1.0, 0.0, 1.0]), torch.tensor([0, 1, 3]))
    assert (found.low, found.high) == (clean.low, clean.high)


@pytest.mark.parametrize(("values", "expected"), [([], (0, 0, 0)), ([NAN, NAN], (0, 0, 2))])
def test_nothing_defined_is_nan(values, expected):
    found = bootstrap(torch.tensor(values))
    assert all(math.isnan(value) for value in found[:3])
    assert found[3:] == expected


def test_an_interval_reads_as_a_sentence_and_keeps_its_exact_numbers_apart():
    even = bootstrap(torch.tensor([0.25, 0.75, 0.5, 0.5]))
    assert str(even) == f"0.500 ({even.low:.3f}–{even.high:.3f}), n 4"
    assert "mean=0.5" in repr(even)
    shared = bootstrap(torch.tensor([1.0, 0.0, math.nan]), torch.tensor([7, 7, 7]))
    assert str(shared) == "0.500, n 2 in 1 pictures, 1 undefined"


def test_one_image_says_nothing_about_spread():
    found = bootstrap(torch.tensor([1.0, 0.0]), torch.tensor([5, 5]))
    assert found.mean == 0.5
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.images == 1


def test_seed_fixes_the_interval_and_names_of_images_do_not_matter():
    values, images = coin(60, 0.5), torch.arange(60) // 3
    assert bootstrap(values, images, seed=1) == bootstrap(values, images * 10 + 4, seed=1)
    assert bootstrap(values, images, seed=1) != bootstrap(values, images, seed=2)


def test_cutting_the_draws_keeps_the_statistics(monkeypatch):
    values = coin(500, 0.3)
    whole = bootstrap(values)
    monkeypatch.setattr(intervals_file, "_CELLS_AT_ONCE", 3000)
    cut = bootstrap(values)
    assert cut.low == pytest.approx(whole.low, abs=0.006)
    assert cut.high == pytest.approx(whole.high, abs=0.006)


def test_a_higher_level_is_wider():
    values = coin(300, 0.5)
    narrow, wide = bootstrap(values, level=0.5), bootstrap(values, level=0.99)
    assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high


@pytest.mark.parametrize(("value", "low", "high"), [(1.0, 200 / 203.8415, 1.0), (0.0, 0.0, 3.8415 / 203.8415)])
def test_all_right_is_not_certainty(value, low, high):
    """Wilson at p = 1: n / (n + z²) .. 1, with z² = 3.8415 at 95 %; and the same from the other end."""
    found = bootstrap(torch.full((200,), value))
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-5), pytest.approx(high, abs=1e-5))
    assert (found.mean, found.n, found.images) == (value, 200, 200)
    assert bootstrap(torch.full((20,), value)).high - bootstrap(torch.full((20,), value)).low > 0.15


def test_wilson_counts_images_and_skips_what_is_undefined():
    values, images = torch.tensor([1.0] * 40 + [NAN] * 5), torch.arange(45) // 4
    found = bootstrap(values, images)
    assert (found.n, found.images, found.undefined) == (40, 10, 5)
    assert (found.low, found.high) == wilson(1.0, 10)
    assert wilson(1.0, 10, 0.99)[0] < found.low


def test_wilson_as_textbooks_have_it():
    """8 of 10 at 95 %: 0.4902 .. 0.9433 (Brown, Cai and DasGupta 2001 give the formula)."""
    assert wilson(0.8, 10) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))
    assert wilson(0.0, 1)[0] == 0.0
    assert wilson(1.0, 1)[1] == 1.0


@pytest.mark.parametrize("value", [0.5, 2.0])
def test_equal_values_that_are_no_share_at_its_end_have_no_width(value):
    found = bootstrap(torch.full((50,), value))
    assert (found.low, found.high) == (value, value)


def test_no_difference_at_all_is_no_share():
    same = coin(100, 0.5)
    assert paired_difference(same, same)[:3] == (0, 0, 0)
    assert bootstrap(torch.tensor([-1.0, 1.0]), draws=1).low in (-1, 0, 1)  # a mean of 0, and yet not all values are


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30).filter(lambda found: set(found) not in ({0}, {1})))
@settings(max_examples=30, deadline=None)
def test_the_interval_lies_within_the_values(values):
    found = bootstrap(torch.tensor(values, dtype=torch.float64), draws=50)
    slack = 1e-9
    assert min(values) - slack <= found.low <= found.high <= max(values) + slack


# ---------------------------------------------------------------- pairs


def test_pairing_finds_a_small_difference_that_the_separate_intervals_hide():
    base = coin(1000, 0.5)
    better = base.clone()
    better[(base == 0).nonzero()[:20, 0]] = 1  # 20 of 1000 improved
    gain = paired_difference(better, base)
    assert gain.mean == pytest.approx(0.02)
    assert gain.low > 0
    assert bootstrap(better).low < bootstrap(base).high  # they overlap


def test_a_pair_is_defined_when_both_are():
    gain = paired_difference(torch.tensor([1.0, NAN, 1.0]), torch.tensor([0.0, 0.0, NAN]))
    assert (gain.mean, gain.n, gain.undefined) == (1.0, 1, 2)


def test_wrong_input():
    values = torch.tensor([0.0, 1.0])
    with pytest.raises(ShapeError, match="values"):
        bootstrap(values.unsqueeze(0))
    with pytest.raises(ShapeError, match="images"):
        bootstrap(values, torch.tensor([0]))
    with pytest.raises(DataError, match="images"):
        bootstrap(values, torch.tensor([0.0, 1.0]))
    with pytest.raises(DataError, match="value 1 is infinite"):
        bootstrap(torch.tensor([0.0, float("inf")]))
    with pytest.raises(ConfigError, match="draws"):
        bootstrap(values, draws=0)
    with pytest.raises(ConfigError, match="level"):
        bootstrap(values, level=1.0)
    with pytest.raises(ShapeError, match="second"):
        paired_difference(values, torch.zeros(3))
