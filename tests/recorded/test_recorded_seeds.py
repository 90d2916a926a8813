"""Mean, spread and interval of a cell, worked out by hand."""

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_runs import fake_run
from saccade.errors import DataError
from saccade.recorded import difference, measure


def test_one_seed_has_no_spread_and_its_own_interval():
    found = measure([fake_run(accuracy=0.8, half_width=0.01)], "accuracy")
    assert (found.mean, found.std, found.seeds, found.n) == (0.8, None, (0,), 10_000)
    assert (found.low, found.high) == (pytest.approx(0.79), pytest.approx(0.81))


def test_three_seeds_by_hand():
    """0.80, 0.82, 0.84: mean 0.82, std 0.02; t(2) · 0.02/√3 = 0.04969; with 0.01 of the pictures: 0.05068."""
    runs = [fake_run(seed=seed, accuracy=value) for seed, value in enumerate((0.80, 0.84, 0.82))]
    found = measure(runs, "accuracy")
    assert found.mean == pytest.approx(0.82)
    assert found.std == pytest.approx(0.02)
    half = sqrt(0.01**2 + (4.303 * 0.02 / sqrt(3)) ** 2)
    assert half == pytest.approx(0.05068, abs=1e-5)
    assert (found.low, found.high) == (pytest.approx(0.82 - half), pytest.approx(0.82 + half))
    apart = difference(found, 0.75)
    assert (apart.value, apart.low, apart.high) == tuple(
        pytest.approx(each) for each in (0.07, 0.07 - half, 0.07 + half)
    )


def test_equal_seeds_do_not_shrink_the_interval_of_the_pictures():
    """All seeds see the same test pictures: a hundred of them say no more about those than one."""
    runs = [fake_run(seed=seed) for seed in range(12)]
    found = measure(runs, "accuracy")
    assert (found.low, found.high) == (pytest.approx(0.79), pytest.approx(0.81))
    assert found.std == 0


def test_no_run_no_score_no_interval():
    assert measure([], "accuracy") is None
    assert measure([fake_run()], "bleu_4") is None
    without = measure([fake_run(half_width=None), fake_run(seed=1)], "accuracy")
    assert (without.low, without.high) == (None, None), "one interval is missing, so there is none for the mean"
    apart = difference(without, 0.5)
    assert (apart.low, apart.high) == (None, None)
    assert apart.value == pytest.approx(0.3)


def test_runs_without_the_score_do_not_shift_the_intervals_of_the_others():
    without = fake_run(seed=0, half_width=0.3)
    del without.evaluation.metrics["accuracy"]
    found = measure([without, fake_run(seed=1, accuracy=0.9, half_width=0.02)], "accuracy")
    assert (found.seeds, found.mean) == ((1,), 0.9)
    assert found.high == pytest.approx(0.92)


def test_a_baseline_has_its_value_and_no_interval():
    found = measure([fake_run()], "true_positive_strength", of="uniform")
    assert (found.mean, found.low) == (0.0233, None)


def test_the_smallest_n_is_the_one_that_is_told():
    assert measure([fake_run(n=500), fake_run(seed=1, n=300)], "accuracy").n == 300


def test_two_runs_of_one_seed_are_an_error_that_names_both():
    with pytest.raises(DataError, match=r"second.*first"):
        measure([fake_run(name="first-mref-"), fake_run(name="second-mref-")], "accuracy")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0, 0.2))
def test_the_interval_holds_the_mean_and_grows_with_spread(values, half_width):
    runs = [fake_run(seed=seed, accuracy=value, half_width=half_width) for seed, value in enumerate(values)]
    found = measure(runs, "accuracy")
    assert min(values) - 1e-9 <= found.mean <= max(values) + 1e-9
    assert found.low - 1e-9 <= found.mean <= found.high + 1e-9
    assert found.high - found.low >= 2 * half_width - 1e-9
