"""How much better one system is than another over the seeds that both have, with a 95 % interval.

Of several seeds the interval is Student's t over the differences seed by seed. Of one seed it is that of the test
pictures: the half-widths of both runs add in quadrature, as if they were independent. Both see the same pictures, so
that is too wide rather than too narrow; how much seeds differ is then not in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import hypot

from saccade.recorded.runs import RecordedRun
from saccade.recorded.seeds import by_seed, spread


@dataclass(frozen=True)
class Gain:
    """Score of one system minus that of another."""

    value: float
    low: float | None
    """None where a run recorded no interval and there is one seed."""
    high: float | None
    seeds: tuple[int, ...]

    def __str__(self) -> str:
        """``+0.25 [-0.37, +0.87] (1 seed)``, in points."""
        reach = "" if self.low is None or self.high is None else f" [{100 * self.low:+.2f}, {100 * self.high:+.2f}]"
        return f"{100 * self.value:+.2f}{reach} ({len(self.seeds)} seed{'s' if len(self.seeds) > 1 else ''})"


def gain(runs: Iterable[RecordedRun], others: Iterable[RecordedRun], metric: str) -> Gain | None:
    """Mean difference of ``metric`` over the seeds that both have; None where there is no such seed."""
    ours, theirs = by_seed(runs, metric), by_seed(others, metric)
    gaps = {seed: ours[seed][1] - theirs[seed][1] for seed in sorted(ours.keys() & theirs.keys())}
    if not gaps:
        return None
    if len(gaps) > 1:
        held = spread(gaps)
        return Gain(held.mean, held.low, held.high, held.seeds)
    ((seed, gap),) = gaps.items()
    (one, value), (other, beside) = ours[seed], theirs[seed]
    first, second = one.interval(metric), other.interval(metric)
    if first is None or second is None:
        return Gain(gap, None, None, (seed,))
    down = hypot(value - first[0], second[1] - beside)
    up = hypot(first[1] - value, beside - second[0])
    return Gain(gap, gap - down, gap + up, (seed,))
