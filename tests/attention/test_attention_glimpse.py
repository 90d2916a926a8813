"""Saliency, priority, inhibition of return, and Gaussian mixture attention against its formula, cell by cell."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from saccade.attention import GaussianMixtureAttention, InhibitionOfReturn, SaliencyMap
from saccade.attention.glimpse import min_max, priority_map

Near = Callable[..., None]
VOLUME = torch.tensor([[[[1.0, -2.0], [0.0, 3.0]], [[3.0, 0.0], [0.0, -4.0]]]])  # (1,2,2,2)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("energy", [[10.0, 4.0], [0.0, 25.0]]),
        ("absolute", [[4.0, 2.0], [0.0, 7.0]]),
        ("strongest", [[3.0, 2.0], [0.0, 4.0]]),
    ],
)
def test_saliency_by_hand(model: str, expected: list[list[float]], assert_near: Near) -> None:
    assert_near(SaliencyMap(model)(VOLUME), [expected])


def test_min_max_by_hand(assert_near: Near) -> None:
    maps = torch.tensor([[[2.0, 4.0, 10.0]], [[-1.0, -1.0, 1.0]]])
    assert_near(min_max(maps), [[[0.0, 0.25, 1.0]], [[0.0, 0.0, 1.0]]])


@pytest.mark.parametrize("level", [0.0, 5.0, -3.0])
def test_a_map_without_a_range_is_nothing(level: float) -> None:
    maps = torch.full((2, 3, 4), level, requires_grad=True)
    laid = min_max(maps)
    assert torch.equal(laid, torch.zeros(2, 3, 4))
    laid.sum().backward()
    assert maps.grad.isfinite().all()


def test_priority_is_the_product(assert_near: Near) -> None:
    mask, saliency = torch.tensor([[[0.5, 1.0, 0.0]]]), torch.tensor([[[1.0, 0.25, 1.0]]])
    assert_near(priority_map(mask, saliency), [[[1.0, 0.5, 0.0]]])


def test_inhibition_by_hand(assert_near: Near) -> None:
    saliency = torch.tensor([[[1.0, 0.5], [0.9, 0.2]]])
    mask = torch.tensor([[[0.25, 0.75], [0.0, 0.1]]])
    assert_near(InhibitionOfReturn()(saliency, mask, torch.tensor([[2, 2]])), [[[0.75, 0.0], [0.0, 0.1]]])


def test_what_is_left_is_cut_from_the_graph() -> None:
    tensors: list[Tensor] = [torch.rand(1, 2, 2, requires_grad=True) for _ in range(2)]
    assert not InhibitionOfReturn()(*tensors, torch.tensor([[0]])).requires_grad


def naive_mask(attention: GaussianMixtureAttention, state: Tensor, grid: tuple[int, int]) -> Tensor:
    """Section 3 of the paper, in loops."""
    m, n = grid
    masks = []
    for numbers in attention.parameters_of(state).tolist():
        k = attention.components
        alphas = [math.exp(a) for a in numbers[:k]]
        mask = torch.zeros(m, n, dtype=torch.float64)
        for i in range(1, m + 1):
            for j in range(1, n + 1):
                for c in range(k):
                    sigma = [1 / (1 + math.exp(-numbers[group * k + c])) for group in (1, 2, 3)]
                    beta, kappa1, kappa2 = 1.5 + 0.5 * sigma[0], sigma[1] * m, sigma[2] * n
                    spot = math.exp(-beta * ((kappa1 - i) ** 2 + (kappa2 - j) ** 2))
                    mask[i - 1, j - 1] += alphas[c] / sum(alphas) * spot
        masks.append(mask)
    return torch.stack(masks)


@pytest.mark.parametrize("grid", [(7, 7), (3, 5), (1, 1)])
def test_the_formula_in_loops(grid: tuple[int, int], assert_near: Near) -> None:
    attention = GaussianMixtureAttention(6, components=3).double()
    state = torch.randn(4, 6, dtype=torch.float64) * 3
    assert_near(attention.mask(state, grid), naive_mask(attention, state, grid))
