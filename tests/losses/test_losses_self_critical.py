"""Self-critical training: no lesson in what is like the others; on average, the gradient of the expected reward."""

from __future__ import annotations

import pytest
import torch

from saccade.losses.policy import self_critical_loss


def test_by_hand() -> None:
    """Rewards 0.7, 0.1 and 0.1 against 0.1, 0.4 and 0.4 of the others, on log p of −3, −2 and −1."""
    log_prob = torch.tensor([[[-1.0, -2.0], [-2.0, 0.0], [-1.0, 0.0]]], requires_grad=True)
    loss = self_critical_loss(log_prob, torch.tensor([[0.7, 0.1, 0.1]]))
    assert float(loss.detach()) == pytest.approx((0.6 * 3 - 0.3 * 2 - 0.3 * 1) / 3)
    loss.backward()
    torch.testing.assert_close(log_prob.grad, torch.tensor([[[-0.2, -0.2], [0.1, 0.1], [0.1, 0.1]]]))
