"""NSS and AUC: values worked out by hand, and again by naive loops over pixels and points."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from saccade.metrics import PointScorer, auc_judd, auc_shuffled, nss

NAN = float("nan")


def one(*points: tuple[float, float]) -> torch.Tensor:
    return torch.tensor([points], dtype=torch.float64)


MAP = torch.tensor([[[0.0, 1.0], [2.0, 5.0]]])
"""Mean 2, variance (4 + 1 + 0 + 9) / 4 = 3.5."""


def test_nss_by_hand() -> None:
    """(5 − 2)/√3.5 at the pixel below right; the mean with the pixel above left is (3 − 2)/2/√3.5."""
    assert nss(MAP, one((1.0, 1.0))).item() == pytest.approx(3 / math.sqrt(3.5))
    assert nss(MAP, one((1.9, 1.9), (0.5, 0.5))).item() == pytest.approx(0.5 / math.sqrt(3.5))


def test_auc_judd_by_hand() -> None:
    """The highest of four pixels beats three and equals itself: 3.5 / 4. The lowest equals itself alone: 0.5 / 4."""
    assert auc_judd(MAP, one((1.0, 1.0))).item() == pytest.approx(3.5 / 4)
    assert auc_judd(MAP, one((0.0, 0.0))).item() == pytest.approx(0.5 / 4)
    assert auc_judd(MAP, one((1.0, 1.0), (0.0, 0.0))).item() == pytest.approx(0.5)
    assert auc_judd(torch.zeros(1, 5, 5), one((2.0, 2.0))).item() == 0.5


def test_auc_shuffled_by_hand() -> None:
    """At the point 2; at others 0, 2 and 5: it beats one and equals one, 1.5 / 3."""
    others = one((0.0, 0.0), (0.0, 1.0), (1.0, 1.0))
    assert auc_shuffled(MAP, one((0.0, 1.0)), others).item() == pytest.approx(0.5)
    assert auc_shuffled(MAP, one((1.0, 1.0)), one((0.0, 0.0), (NAN, NAN))).item() == 1


def test_points_outside_and_missing_points_do_not_count() -> None:
    inside = one((1.0, 1.0))
    padded = one((1.0, 1.0), (NAN, NAN), (2.0, 0.0), (-0.1, 0.0), (0.0, 2.0))
    for score in (nss, auc_judd):
        assert score(MAP, padded).item() == pytest.approx(score(MAP, inside).item())
        assert math.isnan(score(MAP, one((NAN, NAN), (5.0, 5.0))).item())
    assert math.isnan(auc_shuffled(MAP, inside, one((NAN, NAN))).item())


def naive(map_: np.ndarray, points: np.ndarray, others: np.ndarray) -> tuple[float, float, float]:
    """The definitions, pair by pair."""
    positives = [map_[int(y), int(x)] for x, y in points]
    spread = map_.std()
    z = np.mean([(value - map_.mean()) / spread for value in positives])

    def area(negatives: list[float]) -> float:
        wins = [(p > n) + 0.5 * (p == n) for p in positives for n in negatives]
        return float(np.mean(wins))

    return float(z), area(list(map_.flatten())), area([map_[int(y), int(x)] for x, y in others])


def test_the_scorer_agrees_with_loops_over_all_pairs() -> None:
    """Whole values, so that there are ties. The pool holds all points; a picture's own are taken out."""
    rng = np.random.default_rng(0)
    maps = rng.integers(0, 6, (5, 7, 9)).astype(np.float32)
    points = rng.uniform(0, 1, (5, 4, 2)) * (9, 7)
    scorer = PointScorer()
    scorer.add(
        torch.from_numpy(maps), torch.from_numpy(points), pool=torch.from_numpy(points.reshape(-1, 2)),
        own=torch.from_numpy(points), groups=torch.arange(5),
    )  # fmt: skip
    for picture in range(5):
        others = np.concatenate([points[other] for other in range(5) if other != picture])
        expected = naive(maps[picture], points[picture], others)
        found = [float(scorer.total.values()[name][picture]) for name in ("nss", "auc_judd", "auc_shuffled")]
        assert found == pytest.approx(expected, abs=1e-5)
    uniform = scorer.baselines["uniform"].means()
    assert uniform == pytest.approx({"nss": 0, "auc_judd": 0.5, "auc_shuffled": 0.5})
    exact = scorer.baselines["points_exact"].means()
    assert all(exact[name] > scorer.total.means()[name] for name in exact)
