"""Drawing by Gumbel noise: the right distribution, the likeliest without noise, and what the noise decides."""

from __future__ import annotations

import pytest
import torch

from saccade.attention.hard import gumbel_max, gumbel_noise


def test_draws_follow_the_softmax() -> None:
    logits = torch.tensor([0.5, -1.0, 2.0, 0.0])
    noise = gumbel_noise((200_000, 4), like=logits, generator=torch.Generator().manual_seed(0))
    shares = torch.bincount(gumbel_max(logits.expand(200_000, 4), noise), minlength=4) / 200_000
    torch.testing.assert_close(shares, logits.softmax(0), rtol=0, atol=4e-3)  # four standard errors


def test_without_noise_the_likeliest() -> None:
    assert gumbel_max(torch.tensor([[0.0, 3.0, 1.0], [5.0, 4.0, 1.0]]), None).tolist() == [1, 0]


def test_noise_can_force_a_draw() -> None:
    forced = torch.tensor([[0.0, 0.0, 1e6]])
    assert gumbel_max(torch.tensor([[50.0, -3.0, -90.0]]), forced).tolist() == [2]


def test_an_impossible_choice_is_never_drawn() -> None:
    logits = torch.tensor([0.0, float("-inf")]).expand(1000, 2)
    assert (gumbel_max(logits, gumbel_noise((1000, 2), like=logits)) == 0).all()


def test_noise_is_finite_or_never_wins() -> None:
    noise = gumbel_noise((1_000_000,), like=torch.zeros(1))
    assert not noise.isnan().any()
    assert not (noise == float("inf")).any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_noise_is_never_coarse(dtype: torch.dtype) -> None:
    expected = torch.float64 if dtype == torch.float64 else torch.float32
    assert gumbel_noise((2, 3), like=torch.zeros(1, dtype=dtype)).dtype == expected
