import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.metrics.maps.localisation import dequantise, quantise, scale_to_peak, where_defined


def test_each_map_peaks_at_one_and_zeros_stay():
    maps = torch.tensor([[[2.0, 4.0]], [[0.0, 0.0]], [[1e-30, 3e-30]]])
    expected = torch.tensor([[[0.5, 1.0]], [[0.0, 0.0]], [[1 / 3, 1.0]]])
    torch.testing.assert_close(scale_to_peak(maps), expected)


@given(st.lists(st.floats(0, 1, width=32), min_size=2, max_size=20), st.integers(4, 20))
@settings(max_examples=100, deadline=None)
def test_codes_keep_the_order_and_stand_for_the_value(values, bits):
    numbers = torch.tensor(sorted(values), dtype=torch.float32)
    codes = quantise(numbers, bits)
    assert bool((codes[1:] >= codes[:-1]).all())
    back = dequantise(codes, bits).double()
    normal = numbers >= 2.0**-126  # below, a float32 loses digits of its own
    assert bool(((back - numbers.double()).abs() <= numbers.double() * 2.0 ** -(bits + 1))[normal].all())


def test_undefined_is_nan():
    scores = where_defined(torch.tensor([0.1, 0.2]), torch.tensor([True, False]))
    assert scores[0].item() == pytest.approx(0.1)
    assert scores[1].isnan()
