"""The compact residual network: as many cells as the published networks have on larger pictures, or twice as fine."""

from __future__ import annotations

import pytest
import torch

from saccade.backbones import build_backbone


def test_further_blocks_start_as_the_identity_and_then_learn() -> None:
    fine, deep = build_backbone("compact-fine").eval(), build_backbone("compact-deep").eval()
    missing, unexpected = deep.load_state_dict(fine.state_dict(), strict=False)
    assert not unexpected
    assert {name.split(".")[1] for name in missing} == {"layer2b", "layer3b"}
    images = torch.rand(2, 3, 100, 100)
    assert deep.grid((100, 100))["layer4"] == fine.grid((100, 100))["layer4"] == (13, 13)
    assert torch.equal(deep(images), fine(images))
    deep(images).sum().backward()
    learning = deep.stages["layer2b"].bn2.weight.grad
    assert learning is not None
    assert learning.abs().max() > 0


@pytest.mark.parametrize(("name", "seen"), [("compact", 95), ("compact-near", 47)])
def test_how_far_a_cell_sees(name: str, seen: int) -> None:
    """Where a cell sees nearly all of a picture of 100 pixels, what it tells need not lie where the cell does."""
    picture = torch.rand(1, 3, 100, 100, requires_grad=True)
    cell = build_backbone(name).eval()(picture)[0, :, 3, 3]  # (128,)
    (slope,) = torch.autograd.grad(cell.square().sum(), picture)
    rows = slope.abs().sum((0, 1, 3)).nonzero().flatten()
    assert int(rows.max() - rows.min()) + 1 == seen
