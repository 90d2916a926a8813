"""Columns kept batch by batch."""

import pytest
import torch

from saccade.tasks.kept_columns import KeptColumns


def test_batches_become_one_column_in_order_without_gradients():
    kept = KeptColumns()
    kept.keep(a=torch.tensor([1.0, 2.0], requires_grad=True), b=torch.tensor([[1], [2]]))
    kept.keep(a=torch.tensor([3.0]))
    assert kept["a"].tolist() == [1.0, 2.0, 3.0]
    assert not kept["a"].requires_grad
    assert kept["b"].shape == (2, 1)
    assert ("a" in kept, "c" in kept) == (True, False)
    with pytest.raises(KeyError):
        kept["c"]
