"""Policy gradient with a baseline: its value, its signs, what it reaches, and what does not count."""

from __future__ import annotations

from collections.abc import Callable

import torch

from saccade.losses.policy import policy_gradient, rewards_to_go

Near = Callable[..., None]
COUNTS = torch.tensor([[True, True], [True, False]])


def test_by_hand(assert_near: Near) -> None:
    log_prob, value = torch.tensor([[-1.0, -2.0], [-0.5, -9.0]]), torch.tensor([[0.5, 0.0], [1.0, 7.0]])
    reward = torch.tensor([[1.0, -1.0], [1.0, 1.0]])
    policy, baseline = policy_gradient(log_prob, reward, value, COUNTS)
    assert_near(policy, (-1.0 * -0.5 + -2.0 * 1.0 + -0.5 * 0.0) / 2)  # log p · (V − R), over two examples
    assert_near(baseline, (0.25 + 1.0 + 0.0) / 3)  # over three actions


def test_rewards_do_not_learn_and_the_baseline_learns_by_its_error_alone() -> None:
    log_prob, reward, value = (torch.randn(2, 2, requires_grad=True) for _ in range(3))
    loss = policy_gradient(log_prob, reward, value, COUNTS)
    assert torch.autograd.grad(loss.policy, (reward, value), retain_graph=True, allow_unused=True) == (None, None)
    assert torch.autograd.grad(loss.value, (log_prob, reward), allow_unused=True, retain_graph=True) == (None, None)
    (gradient,) = torch.autograd.grad(loss.value, (value,))
    assert gradient[1, 1] == 0
    assert (gradient[COUNTS] != 0).all()


def test_rewards_to_go_by_hand() -> None:
    reward = torch.tensor([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    counts = torch.tensor([[True, True, True], [True, True, False]])
    assert rewards_to_go(reward, counts).tolist() == [[7.0, 6.0, 4.0], [3.0, 2.0, 0.0]]
