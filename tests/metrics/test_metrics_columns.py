"""Columns kept batch by batch: whole, without gradients, with memory of their own; means and intervals of values."""

import math

import pytest
import torch

from saccade.metrics import mean_interval
from saccade.metrics.intervals import ColumnBuffer, Values


def test_batches_become_one_column_in_order_without_gradients():
    kept = ColumnBuffer()
    kept.append(a=torch.tensor([1.0, 2.0], requires_grad=True), b=torch.tensor([[1], [2]]))
    kept.append(a=torch.tensor([3.0]))
    assert kept["a"].tolist() == [1.0, 2.0, 3.0]
    assert not kept["a"].requires_grad
    assert kept["b"].shape == (2, 1)
    assert ("a" in kept, "c" in kept) == (True, False)
    assert kept.names == ("a", "b")
    with pytest.raises(KeyError):
        kept["c"]


def test_values_have_means_and_intervals_over_what_is_defined():
    kept = Values()
    kept.add_values({"all": torch.tensor([0.0, 1.0, math.nan]), "none": torch.full((3,), math.nan)})
    kept.add_values({"all": torch.tensor([0.5]), "none": torch.tensor([math.nan])})
    assert kept["all"].dtype == torch.float64
    assert kept.means()["all"] == 0.5
    assert math.isnan(kept.means()["none"])
    pictures = torch.tensor([7, 7, 8, 9])
    assert kept.intervals(pictures)["all"] == mean_interval(kept["all"], pictures)
    assert kept.intervals(pictures)["none"].n == 0
