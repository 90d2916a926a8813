"""Self-critical training: no lesson in what is like the others; on average, the gradient of the expected reward."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.losses import self_critical_loss


def test_by_hand() -> None:
    """Rewards 0.7, 0.1 and 0.1 against 0.1, 0.4 and 0.4 of the others, on log p of −3, −2 and −1."""
    log_prob = torch.tensor([[[-1.0, -2.0], [-2.0, 0.0], [-1.0, 0.0]]], requires_grad=True)
    loss = self_critical_loss(log_prob, torch.tensor([[0.7, 0.1, 0.1]]))
    assert float(loss.detach()) == pytest.approx((0.6 * 3 - 0.3 * 2 - 0.3 * 1) / 3)
    loss.backward()
    torch.testing.assert_close(log_prob.grad, torch.tensor([[[-0.2, -0.2], [0.1, 0.1], [0.1, 0.1]]]))


def test_captions_that_earn_alike_teach_nothing_whatever_other_pictures_earn() -> None:
    log_prob = torch.randn(3, 4, 2, requires_grad=True)
    self_critical_loss(log_prob, torch.tensor([0.25, 0.5, 0.75])[:, None].expand(3, 4)).backward()
    assert (log_prob.grad == 0).all()


def test_no_gradient_passes_through_rewards() -> None:
    log_prob = torch.randn(2, 3, 4, requires_grad=True)
    reward = torch.rand(2, 3, requires_grad=True)
    self_critical_loss(log_prob, reward).backward()
    assert reward.grad is None


@given(seed=st.integers(0, 99), draws=st.integers(2, 3))
def test_it_climbs_the_expected_reward(seed: int, draws: int) -> None:
    """Over all outcomes of so many draws, weighted by their probability."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(4, generator=generator, dtype=torch.float64, requires_grad=True)
    rewards = torch.rand(4, generator=generator, dtype=torch.float64)
    log_p = scores.log_softmax(0)
    (exact,) = torch.autograd.grad(-(log_p.exp() * rewards).sum(), scores, retain_graph=True)
    mean = torch.zeros_like(scores)
    for outcome in itertools.product(range(4), repeat=draws):
        drawn = torch.tensor(outcome)
        loss = self_critical_loss(log_p[drawn].view(1, draws, 1), rewards[drawn].view(1, draws))
        chance = log_p.detach()[drawn].sum().exp()
        mean = mean + chance * torch.autograd.grad(loss, scores, retain_graph=True)[0]
    torch.testing.assert_close(mean, exact)
