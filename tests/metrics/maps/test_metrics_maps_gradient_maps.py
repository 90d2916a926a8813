"""Maps made from gradients, by hand."""

from __future__ import annotations

import torch

from saccade.metrics.maps.faithfulness import gradient_times_input, hirescam

VALUES = torch.tensor([[[[1.0, 2.0]], [[3.0, -1.0]]]])  # (1,2,1,2)
GRADIENT = torch.tensor([[[[2.0, -1.0]], [[-1.0, 1.0]]]])


def test_products_are_summed_over_channels() -> None:
    """1·2 + 3·(−1) = −1 and 2·(−1) + (−1)·1 = −3."""
    assert hirescam(VALUES, GRADIENT).tolist() == [[[0.0, 0.0]]]
    assert hirescam(VALUES, -GRADIENT).tolist() == [[[1.0, 3.0]]]
    assert gradient_times_input(VALUES, GRADIENT).tolist() == [[[1.0, 3.0]]]


def test_cells_add_up_to_the_logit_behind_a_mean_and_a_layer() -> None:
    torch.manual_seed(0)
    features = torch.rand(2, 4, 3, 5, requires_grad=True)
    weight = torch.rand(4)  # of one class, no bias
    logit = features.mean((2, 3)) @ weight  # (2,)
    gradient = torch.autograd.grad(logit.sum(), features)[0]
    torch.testing.assert_close(hirescam(features.detach(), gradient).sum((1, 2)), logit.detach())
