"""Learning-rate schedules against numbers worked out by hand."""

from __future__ import annotations

import pytest

from saccade.engine.recipe import Schedule

AUTHORS = Schedule("step", unit="epoch", start=30, every=12, factor=1.5)  # of the released code


@pytest.mark.parametrize(
    ("schedule", "found"),
    [
        (Schedule(warmup=4), {0: 0.25, 1: 0.5, 3: 1.0, 5: 1.0}),
        (Schedule("cosine"), {0: 1, 25: 0.853553, 50: 0.5, 100: 0}),  # (1 + cos(π/4)) / 2 at a quarter of the way
        (Schedule("cosine", floor=0.2), {0: 1, 50: 0.6, 100: 0.2}),
        (Schedule("cosine", warmup=20), {19: 1, 20: 1, 60: 0.5, 100: 0}),
        (Schedule("linear", floor=0.5), {0: 1, 50: 0.75, 100: 0.5, 140: 0.5}),
        (Schedule("step", start=25, every=25, factor=2), {24: 1, 25: 0.5, 49: 0.5, 50: 0.25, 75: 0.125}),
        (Schedule("milestones", at=(64, 96)), {63: 1, 64: 0.1, 95: 0.1, 96: 0.01}),
        (AUTHORS, {30 * 7 - 1: 1, 30 * 7: 1 / 1.5, 42 * 7 - 1: 1 / 1.5, 42 * 7: 1 / 1.5**2, 54 * 7: 1 / 1.5**3}),
    ],
)
def test_rates_by_hand(schedule: Schedule, found: dict[int, float]) -> None:
    """Of a phase of 100 steps, epochs of 7."""
    rates = {step: schedule.scale(step, total=100, steps_per_epoch=7) for step in found}
    assert rates == pytest.approx(found)
