"""The words of a cell."""

from saccade.recorded import Difference, Measured
from saccade.verbs.reproduction.cells import Setting, difference_text, mean_text, measured_text

ONE = Measured(0.8, None, 0.79, 0.81, (0,), 1000)
THREE = Measured(0.8, 0.01, 0.78, 0.82, (0, 1, 2), 10_000)


def test_settings_are_called_by_protocol_and_glyphs() -> None:
    assert Setting("authors", "merged").label == "authors merged"
    assert Setting("unlimited", "disjoint").label == "unlimited"
    assert Setting("official").label == "official"


def test_a_measured_cell_tells_mean_spread_and_counts() -> None:
    assert mean_text(ONE) == "80.00"
    assert mean_text(THREE) == "80.00±1.00"
    assert mean_text(None) == "–"
    assert measured_text(THREE, beside=0.7573) == "80.00±1.00 (75.73)\n3 × 10,000"
    assert measured_text(ONE, beside=0.5, where=" on SUN") == "80.00 (50.00 on SUN)\n1 × 1,000"


def test_a_cell_without_a_run_says_so_and_keeps_the_published_number() -> None:
    assert measured_text(None) == "no run"
    assert measured_text(None, beside=0.5) == "no run (50.00)"


def test_differences_in_words() -> None:
    assert difference_text(None) == "–"
    assert difference_text(Difference(0.0135, 0.0069, 0.0205)) == "+1.35\n[+0.69, +2.05]"
    assert difference_text(Difference(-0.01, None, None), "other data") == "-1.00\nnot comparable"
