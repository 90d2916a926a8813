"""Rows of whole numbers and their scales: worked out by hand, never far off, and rounded once for all."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.models.folder import from_rows, has_rows, to_rows


def read_back(parameter: Tensor) -> Tensor:
    return from_rows(*to_rows(parameter))


def test_numbers_and_scales_by_hand() -> None:
    rows = to_rows(torch.tensor([[127.0, -63.5, 0.4, 0.6], [0.0, 0.5, -31.75, 0.1]]))
    assert rows[0].dtype == torch.int8
    assert rows[1].dtype == torch.bfloat16
    assert rows[1].tolist() == [1.0, 0.25]
    assert rows[0].tolist() == [[127, -64, 0, 1], [0, 2, -127, 0]]  # half a step goes to the even number
    assert from_rows(*rows).tolist() == [[127, -64, 0, 1], [0, 0.5, -31.75, 0]]


def test_rows_of_zeros_and_of_almost_nothing_are_zeros() -> None:
    rows = to_rows(torch.tensor([[0.0, -0.0, 0.0], [1e-37, 0.0, -1e-38], [2e-36, 0.0, -5e-37]]))
    assert rows[1][:2].tolist() == [0, 0]
    assert rows[0].tolist() == [[0, 0, 0], [0, 0, 0], [127, 0, -32]]


@pytest.mark.parametrize(
    ("shape", "is_rounded"),
    [((8, 3), True), ((1, 8, 1, 1), True), ((8, 4, 3, 3), True), ((8, 4, 3), True),
     ((8, 3, 7, 7), False), ((8, 1, 3, 3), False),  # sees pixels; one channel each
     ((8, 2), False), ((8, 0), False), ((8,), False), ((), False)],
)  # fmt: skip
def test_what_is_few_or_sees_pixels_has_no_rows(shape: tuple[int, ...], is_rounded: bool) -> None:
    assert has_rows(torch.Size(shape)) == is_rounded


magnitude = st.sampled_from([1e-30, 1e-6, 3e-3, 1.0, 50.0, 1e5, 1e30])
finite = st.floats(-(2.0**127), 2.0**127, width=32)
odd_row = st.one_of(
    st.just([0.0] * 5),
    finite.map(lambda number: [number] * 5),  # constant
    st.tuples(finite, st.floats(-1, 1, width=32)).map(lambda pair: [pair[1], pair[0], pair[1], 0.0, -pair[1]]),
    st.lists(finite, min_size=5, max_size=5),
    st.tuples(magnitude, st.lists(st.floats(-1, 1, width=32), min_size=5, max_size=5)).map(
        lambda pair: [pair[0] * number for number in pair[1]]
    ),
)


@given(st.lists(odd_row, min_size=1, max_size=4))
def test_what_was_rounded_once_stays_as_it_is(rows: list[list[float]]) -> None:
    first = to_rows(torch.tensor(rows))
    again = to_rows(from_rows(*first))
    assert torch.equal(again[0], first[0])
    assert torch.equal(again[1], first[1])


@given(st.lists(odd_row, min_size=1, max_size=4))
def test_no_number_is_off_by_more_than_half_a_step_of_its_row(rows: list[list[float]]) -> None:
    parameter = torch.tensor(rows)
    off = (read_back(parameter) - parameter).abs().double()
    step = parameter.abs().amax(1, keepdim=True).double() / 127
    assert bool((off <= step * 0.502 + 1.5e-36).all())  # the scale has eight bits; what is below 1.5e-36 is 0
