"""Student's t distribution: how far a mean of few values may lie from the truth."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

_SUMMED = 200
"""Degrees of freedom up to which the distribution is summed; beyond, the expansion is right to six digits."""
_TERMS = 400
"""Terms of the continued fraction; with fewer, p of many degrees of freedom loses digits."""


@lru_cache(maxsize=256)
def t_quantile(level: float, freedom: int) -> float:
    """The t with P(|T| ≤ t) = ``level`` for ``freedom`` ≥ 1 degrees of freedom.

    Abramowitz and Stegun (1964), eq. 26.7.3 and 26.7.4, solved by bisection; for many degrees eq. 26.7.5.

    >>> round(t_quantile(0.95, 4), 4)
    2.7764
    """
    if freedom > _SUMMED:
        z = NormalDist().inv_cdf((1 + level) / 2)
        return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _share_within(middle, freedom) < level else (low, middle)
    return math.sqrt(freedom) * math.tan(low)


def _share_within(angle: float, freedom: int) -> float:
    """P(|T| ≤ t) for t = √ν tan(angle), eq. 26.7.3 (odd ν) and 26.7.4 (even ν)."""
    is_odd = freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for step in range(freedom // 2):
        total += term
        term *= math.cos(angle) ** 2 * (2 * step + 1 + is_odd) / (2 * step + 2 + is_odd)
    if is_odd:
        return 2 / math.pi * (angle + math.sin(angle) * total)
    return math.sin(angle) * total


def t_tails(t: float, freedom: int) -> float:
    """P(|T| > t) for t ≥ 0: the two-sided p of a t statistic.

    >>> round(t_tails(2.7764, 4), 4)
    0.05
    """
    share = freedom / (freedom + t * t)
    return _beta_share(share, freedom / 2, 0.5) if share < 1 else 1.0


def _beta_share(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a,b) for 0 < x < 1; small values keep all their digits.

    Abramowitz and Stegun (1964), eq. 26.5.8: a continued fraction, which converges fast for x < (a + 1) / (a + b + 2);
    beyond, I_x(a,b) = 1 − I_{1−x}(b,a).
    """
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(1 - x, b, a)
    log_front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    fraction = 1.0
    for step in range(_TERMS, 0, -1):  # from the innermost term outwards
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        fraction = 1 + term / fraction
    return math.exp(log_front) / (a * fraction)
