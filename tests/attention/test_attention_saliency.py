"""Saliency, priority and inhibition of return, on maps of a few cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from saccade.attention import InhibitionOfReturn, SaliencyMap, register_saliency
from saccade.attention.glimpse import SALIENCY, min_max, priority_map
from saccade.errors import ConfigError

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


@pytest.fixture
def registry() -> Iterator[None]:
    before = dict(SALIENCY)
    yield
    SALIENCY.clear()
    SALIENCY.update(before)


def test_one_of_your_own(registry: None, assert_near: Near) -> None:
    register_saliency("first-channel", lambda volume: volume[:, 0])
    assert_near(SaliencyMap("first-channel")(VOLUME), VOLUME[:, 0])
    with pytest.raises(ConfigError, match="already is a saliency model 'energy'"):
        register_saliency("energy", lambda volume: volume[:, 0])


def test_min_max_by_hand(assert_near: Near) -> None:
    maps = torch.tensor([[[2.0, 4.0, 10.0]], [[-1.0, -1.0, 1.0]]])
    assert_near(min_max(maps), [[[0.0, 0.25, 1.0]], [[0.0, 0.0, 1.0]]])


@pytest.mark.parametrize("level", [0.0, 5.0, -3.0])
def test_a_map_without_a_range_is_nothing(level: float) -> None:
    maps = torch.full((2, 3, 4), level, requires_grad=True)
    laid = min_max(maps)
    assert torch.equal(laid, torch.zeros(2, 3, 4))
    laid.sum().backward()
    assert maps.grad is not None
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
