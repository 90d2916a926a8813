"""Learning-rate schedules against numbers worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.config import from_dict
from saccade.engine.recipe import Schedule
from saccade.errors import ConfigError


def scales(schedule: Schedule, steps, total=100, epoch=None):
    return [schedule.scale(step, total=total, steps_per_epoch=epoch) for step in steps]


def test_constant_with_warmup_rises_by_equal_parts():
    assert scales(Schedule(warmup=4), range(6)) == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_cosine_by_hand():
    """Half-way cos(π/2) = 0 leaves one half; a quarter of the way cos(π/4) = 0.7071 leaves 0.8536."""
    assert scales(Schedule("cosine"), [0, 25, 50, 100]) == pytest.approx([1, 0.853553, 0.5, 0])
    assert scales(Schedule("cosine", floor=0.2), [0, 50, 100]) == pytest.approx([1, 0.6, 0.2])


def test_cosine_starts_after_warmup():
    schedule = Schedule("cosine", warmup=20)
    assert scales(schedule, [19, 20, 60, 100]) == pytest.approx([1, 1, 0.5, 0])


def test_linear_by_hand():
    assert scales(Schedule("linear", floor=0.5), [0, 50, 100, 140]) == pytest.approx([1, 0.75, 0.5, 0.5])


def test_authors_rule_divides_by_one_and_a_half_every_twelve_epochs_after_thirty():
    authors = Schedule("step", unit="epoch", start=30, every=12, factor=1.5)
    steps = [29 * 7 + 6, 30 * 7, 42 * 7 - 1, 42 * 7, 54 * 7]
    expected = [1, 1 / 1.5, 1 / 1.5, 1 / 1.5**2, 1 / 1.5**3]
    assert scales(authors, steps, total=2100, epoch=7) == pytest.approx(expected)


def test_step_decay_in_steps():
    assert scales(Schedule("step", start=25, every=25, factor=2), [24, 25, 49, 50, 75]) == [1, 0.5, 0.5, 0.25, 0.125]


def test_milestones():
    assert scales(Schedule("milestones", at=(64, 96)), [63, 64, 95, 96]) == pytest.approx([1, 0.1, 0.1, 0.01])


@given(
    st.sampled_from(["constant", "cosine", "linear"]),
    st.integers(0, 30),
    st.floats(0, 1),
    st.integers(0, 200),
)
def test_scale_stays_between_floor_and_one_after_warmup(name, warmup, floor, step):
    scale = Schedule(name, warmup=warmup, floor=floor).scale(step, total=100, steps_per_epoch=None)
    assert 0 <= scale <= 1
    if step >= warmup:
        assert scale >= floor - 1e-12


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"every": 0}, "every"),
        ({"factor": 0}, "factor"),
        ({"factor": float("nan")}, "factor"),
        ({"floor": 1.5}, "floor"),
        ({"warmup": -1}, "warmup"),
        ({"name": "milestones"}, "at"),
    ],
)
def test_bad_settings_are_named(settings, word):
    with pytest.raises(ConfigError, match=word):
        from_dict(Schedule, settings)
