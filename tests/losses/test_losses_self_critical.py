"""Self-critical training: no lesson in what would be said anyway; on average, the gradient of the expected reward."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import ShapeError
from saccade.losses import self_critical_loss


def test_by_hand() -> None:
    """Advantages 0.5 and −0.25 on log p of −3 and −2: the mean of 1.5 and −0.5."""
    log_prob = torch.tensor([[-1.0, -2.0], [-2.0, 0.0]], requires_grad=True)
    loss = self_critical_loss(log_prob, torch.tensor([0.75, 0.25]), torch.tensor([0.25, 0.5]))
    assert float(loss.detach()) == pytest.approx((1.5 - 0.5) / 2)
    loss.backward()
    assert log_prob.grad.tolist() == [[-0.25, -0.25], [0.125, 0.125]]


def test_a_draw_like_the_greedy_caption_teaches_nothing() -> None:
    log_prob = torch.randn(3, 4, requires_grad=True)
    reward = torch.rand(3)
    self_critical_loss(log_prob, reward, reward.clone()).backward()
    assert (log_prob.grad == 0).all()


def test_no_gradient_passes_through_rewards() -> None:
    log_prob = torch.randn(2, 3, requires_grad=True)
    reward, baseline = torch.rand(2, requires_grad=True), torch.rand(2, requires_grad=True)
    self_critical_loss(log_prob, reward, baseline).backward()
    assert reward.grad is None
    assert baseline.grad is None


@given(seed=st.integers(0, 99), baseline=st.floats(-3, 3))
def test_it_climbs_the_expected_reward_whatever_the_baseline(seed: int, baseline: float) -> None:
    """Over all outcomes of one draw, weighted by their probability."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(5, generator=generator, dtype=torch.float64, requires_grad=True)
    rewards = torch.rand(5, generator=generator, dtype=torch.float64)
    log_p = scores.log_softmax(0)
    (exact,) = torch.autograd.grad(-(log_p.exp() * rewards).sum(), scores, retain_graph=True)
    mean = torch.zeros_like(scores)
    for chance, log_prob, reward in zip(log_p.detach().exp(), log_p, rewards):
        loss = self_critical_loss(log_prob.view(1, 1), reward.view(1), torch.full_like(reward.view(1), baseline))
        mean = mean + chance * torch.autograd.grad(loss, scores, retain_graph=True)[0]
    torch.testing.assert_close(mean, exact)


@pytest.mark.parametrize(
    ("log_prob", "reward", "baseline", "named"),
    [((2, 3), (3,), (2,), "reward"), ((2, 3), (2,), (2, 1), "baseline"), ((2,), (2,), (2,), "reward")],
)
def test_shapes_that_do_not_fit_are_named(log_prob: tuple, reward: tuple, baseline: tuple, named: str) -> None:
    with pytest.raises(ShapeError, match=named):
        self_critical_loss(torch.zeros(log_prob), torch.zeros(reward), torch.zeros(baseline))
