import math

import pytest
import torch

from saccade.metrics import WordScores, words_among


def test_means_are_over_words_not_over_captions_or_batches():
    scores = WordScores()
    words = torch.tensor([[5, 6, 5], [6, 0, -1]])
    kinds = {"colour": [5], "digit": [6, 7], "size": [8]}
    for strength, rows in (([[0.1, 0.3, 0.2]], slice(0, 1)), ([[0.8, math.nan, math.nan]], slice(1, 2))):
        scores.add({"strength": torch.tensor(strength)}, words_among(words[rows], kinds), torch.tensor([rows.start]))
    means = scores.means("strength")
    assert list(means) == ["all", "colour", "digit", "size"]
    assert means["all"].mean == pytest.approx((0.1 + 0.3 + 0.2 + 0.8) / 4)
    assert (means["all"].n, means["all"].undefined) == (4, 2)
    assert means["colour"].mean == pytest.approx(0.15)
    assert means["digit"].mean == pytest.approx(0.55)
    assert math.isnan(means["size"].mean)
    assert means["size"].n == 0


def test_the_interval_counts_pictures():
    """Ten equal words of one picture are one piece of evidence, not ten."""
    scores = WordScores()
    values = torch.tensor([0.2, 0.4, 0.9]).unsqueeze(1).expand(3, 10)
    scores.add({"strength": values}, {}, torch.arange(3))
    found = scores.interval("strength")
    assert (found.n, found.images) == (30, 3)
    assert found.mean == pytest.approx(0.5)
    assert found.low < 0.35
    assert found.high > 0.7
