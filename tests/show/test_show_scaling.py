from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from saccade.errors import DataError, ShapeError
from saccade.show.colours import as_map, by_own_ends, by_own_peak, by_shared_peak


def test_own_peak_divides_by_the_maximum_and_says_so():
    scaled = by_own_peak([[0.0, 0.1], [0.2, 0.4]])
    np.testing.assert_allclose(scaled.values, [[0, 0.25], [0.5, 1]], rtol=1e-6)
    assert scaled.top == pytest.approx(0.4)
    assert scaled.legend == "0 … 0.4, the map's own peak"


def test_shared_peak_keeps_maps_comparable():
    low, high = by_shared_peak([[[0.1, 0.2]], [[0.4, 0.0]]])
    np.testing.assert_allclose(low.values, [[0.25, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(high.values, [[1, 0]], rtol=1e-6)
    assert low.top == high.top
    assert by_shared_peak([]) == []


def test_a_uniform_map_stays_uniform_and_zero_stays_zero():
    assert (by_own_peak(np.full((3, 5), 0.04)).values == 1).all()
    zero = by_own_peak(np.zeros((3, 5)))
    assert (zero.values == 0).all()
    assert zero.top == 0


def test_negative_weights_are_named_in_the_legend():
    scaled = by_own_peak([[-2.0, 1.0]])
    np.testing.assert_array_equal(scaled.values, [[0, 1]])
    assert "below 0" in scaled.legend
    assert (by_own_peak([[-2.0, -1.0]]).values == 0).all()


def test_the_trace_is_never_touched():
    weights = torch.rand(1, 4, 4, requires_grad=True)
    before = weights.detach().clone()
    for scaled in (by_own_peak(weights), *by_shared_peak([weights])):
        scaled.values[:] = -1
    as_map(weights)[:] = -1
    assert torch.equal(weights.detach(), before)


@pytest.mark.parametrize("shape", [(0, 3), (4,), (2, 3, 4)])
def test_wrong_shapes(shape):
    with pytest.raises(ShapeError, match="map"):
        as_map(np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_not_finite(bad):
    with pytest.raises(DataError, match="NaN"):
        by_own_peak([[bad, 1.0]])


@given(arrays(np.float32, (3, 4), elements=st.floats(-1e6, 1e6, width=32)))
def test_values_lie_between_0_and_1_and_keep_the_place_of_the_peak(values):
    scaled = by_own_peak(values)
    assert scaled.values.min() >= 0
    assert scaled.values.max() <= 1
    if values.max() > 0:
        assert scaled.values.flat[values.argmax()] == 1


def test_masks_that_only_add_are_shown_from_their_least_where_they_differ_by_half() -> None:
    """1 + M goes from 1.1 to 1.9 about 1.5: by .8, more than half of 1.5. So the whole range of colours."""
    scaled = by_own_ends([[0.1, 0.5], [0.9, 0.5]], base=1.0)
    assert scaled.values.tolist() == [[0, pytest.approx(0.5, abs=1e-5)], [1, pytest.approx(0.5, abs=1e-5)]]
    assert (scaled.least, scaled.top, scaled.is_fixed) == (pytest.approx(0.1), pytest.approx(0.9), False)


def test_a_nearly_even_mask_is_shown_nearly_even() -> None:
    """1 + M goes from 1.48 to 1.52: all colours together are half of 1.5, 0.75, from .125 to .875 of the mask.

    So .48 is (.48 − .125) / .75 = .4733 of the range and .52 is .5267: a twentieth of the colours apart.
    """
    scaled = by_own_ends([[0.48, 0.5], [0.52, 0.5]], base=1.0)
    np.testing.assert_allclose(scaled.values, [[0.47333, 0.5], [0.52667, 0.5]], atol=1e-4)
    assert (scaled.least, scaled.top, scaled.is_fixed) == (pytest.approx(0.125), pytest.approx(0.875), True)
    assert "from 0.48 to 0.52" in scaled.legend


def test_a_constant_mask_is_one_colour() -> None:
    assert by_own_ends([[0.5, 0.5]], base=1.0).values.tolist() == [[0.5, 0.5]]
    assert by_own_ends([[0.0, 0.0]]).values.tolist() == [[0.0, 0.0]]
