"""How much one system gains over another: over seeds, and of one seed over its pictures."""

import pytest

from fake_runs import fake_run
from saccade.errors import DataError
from saccade.recorded import gain


def run(accuracy, *, seed=0, half_width=None):
    return fake_run("soft", accuracy=accuracy, seed=seed, half_width=half_width)


def test_several_seeds_have_the_interval_of_student_over_their_differences():
    """+1 and −1 points: mean 0, deviation √2, t = 12.706 with one degree of freedom."""
    found = gain([run(0.95), run(0.95, seed=1)], [run(0.94), run(0.96, seed=1), run(0.5, seed=2)], "accuracy")
    assert str(found) == "+0.00 [-12.71, +12.71] (2 seeds)"


def test_one_seed_has_the_interval_of_its_pictures_in_quadrature():
    """± 3 and ± 4 points make ± 5."""
    one, other = run(0.90, half_width=0.03), run(0.80, half_width=0.04)
    found = gain([one], [other], "accuracy")
    assert (found.value, found.low, found.high) == pytest.approx((0.10, 0.05, 0.15))
    assert str(found) == "+10.00 [+5.00, +15.00] (1 seed)"


def test_two_runs_of_one_seed_are_refused():
    with pytest.raises(DataError, match="both seed 0 of one cell"):
        gain([run(0.9), run(0.8)], [run(0.7)], "accuracy")


def test_without_intervals_or_shared_seeds_nothing_is_made_up():
    assert str(gain([run(0.9)], [run(0.8)], "accuracy")) == "+10.00 (1 seed)"
    assert gain([run(0.9)], [run(0.8, seed=1)], "accuracy") is None
    assert gain([run(0.9)], [run(0.8)], "macro_f1") is None
