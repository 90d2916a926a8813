"""Cross-attention, Eq. (1) of Vaswani et al. (2017): by hand, as loops, and against torch's own."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F

from saccade.attention import CrossAttention

Near = Callable[..., None]


def test_equation_1_by_hand(assert_near: Near) -> None:
    """Features 0, 1, 2; q = (1, 1, 1, 1) and k = f·(log 3)/2·(1, 1, 1, 1): q·k/√4 = f·log 3, so that odds are 1:3:9."""
    attention = CrossAttention(1, 1, hidden=4)
    with torch.no_grad():
        attention.to_query.weight.fill_(1.0)
        attention.to_key.weight.fill_(math.log(3) / 2)
    features = torch.tensor([[[[0.0, 1.0, 2.0]]]])
    attended = attention.attend(features, torch.ones(1, 1))
    assert_near(attended.scores, [[[0.0, math.log(3), 2 * math.log(3)]]])
    assert_near(attended.weights, [[[1 / 13, 3 / 13, 9 / 13]]])
    assert_near(attended.context, [[21 / 13]])


def test_it_is_torchs_own_attention() -> None:
    torch.manual_seed(0)
    attention = CrossAttention(6, 4, hidden=8).double()
    features, query = torch.randn(2, 6, 3, 5, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    cells = features.flatten(2).transpose(1, 2)  # (B,N,C)
    keys = attention.to_key(features).flatten(2).transpose(1, 2)  # (B,N,D)
    expected = F.scaled_dot_product_attention(attention.to_query(query)[:, None], keys, cells)[:, 0]
    torch.testing.assert_close(attention.attend(features, query).context, expected)
