"""The small transformer: its class token is the query, looks are rows that multiplied values, rollout is derived."""

from __future__ import annotations

import pytest
import torch

from saccade.attention.class_token import SelfAttention, attention_rollout
from saccade.models.vit import VitConfig, VitModel


@pytest.fixture(scope="module")
def model() -> VitModel:
    torch.manual_seed(0)
    return VitModel(VitConfig()).eval()


def test_looks_are_rows_of_the_last_layer(model: VitModel) -> None:
    output = model(torch.rand(2, 3, 100, 100), torch.tensor([0, 9]))
    looks = output.trace.validate().looks
    assert [look.name for look in looks] == ["head1", "head2", "head3", "head4"]
    assert {(look.kind, look.role, look.norm) for look in looks} == {("soft", "multiplier", "none")}
    sums = torch.stack([look.weights.sum((1, 2)) for look in looks if look.weights is not None])
    assert ((sums > 0) & (sums < 1)).all()  # the rest lies on the class token itself
    mean = torch.stack([output.trace.image_map(look.name) for look in looks]).mean(0)
    torch.testing.assert_close(output.trace.image_map("total"), mean)


def test_the_class_token_reads_what_torch_says() -> None:
    """Its row of the last layer, computed with weights, is row 0 of the layer computed in one piece."""
    torch.manual_seed(0)
    attention = SelfAttention(8, 2).double()
    tokens = torch.randn(3, 7, 8, dtype=torch.float64)
    read, acts = attention.class_token(tokens, (2, 3))
    torch.testing.assert_close(read, attention(tokens)[:, 0])
    whole = attention.weights(tokens)[:, :, 0, 1:].unflatten(-1, (2, 3))
    torch.testing.assert_close(torch.stack([act.weights for act in acts], 1), whole)
    for act in acts:
        torch.testing.assert_close(act.context, torch.einsum("byx,bdyx->bd", act.weights, act.values))


def test_rollout_by_hand() -> None:
    """½A + ½I of two layers: [[¾, ¼], [0, 1]] after [[½, ½], [½, ½]]."""
    first = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
    second = torch.tensor([[[0.5, 0.5], [0.0, 1.0]]])
    wanted = torch.tensor([[[0.75, 0.25], [0.0, 1.0]]]) @ torch.full((1, 2, 2), 0.5)
    assert torch.equal(attention_rollout([first, second]), wanted)


def test_rollout_of_the_model_is_a_share_of_the_patches(model: VitModel) -> None:
    encoding = model.encode(torch.rand(2, 3, 100, 100))
    shares = model.rollout(encoding, torch.tensor([3, 4]))
    assert shares.shape == (2, 10, 10)
    assert (shares > 0).all()
    assert (shares.sum((1, 2)) < 1).all()
