"""SOFT of Seo et al. (2016): its published sizes, and a classifier that never sees the query."""

from __future__ import annotations

import pytest
import torch

from saccade import geometry
from saccade.models.soft import SoftConfig, SoftModel


@pytest.fixture
def published() -> SoftModel:
    return SoftModel(SoftConfig()).eval()


def test_the_maps_of_the_paper(published: SoftModel) -> None:
    """100 → 49 → 23 → 10 → 4 cells, one look on the last map, centres at 23, 39, 55, 71."""
    assert [size[0] for size in published.backbone.grid((100, 100)).values()] == [49, 23, 10, 4]
    output = published(torch.rand(2, 3, 100, 100), torch.tensor([0, 9]))
    (look,) = output.trace.validate().looks
    assert (look.name, look.kind, look.role, look.norm) == ("stage4", "soft", "multiplier", "softmax")
    assert look.weights is not None
    assert look.frame is not None
    assert look.weights.shape == (2, 4, 4)
    assert torch.equal(look.frame, geometry.scale_shift((16, 16), (15, 15)))
    assert output.logits.shape == (2, 5)
    assert output.trace.image_map().shape == (2, 100, 100)


def test_the_number_of_parameters(published: SoftModel) -> None:
    """Worked out by hand:

    convolutions  3·3·3·32 + 32 = 896, then three times 3·3·32·32 + 32 = 9,248 → 28,640
    scorer        1·1·32·32 + 32 = 1,056; query 10·32 = 320 (no bias); read-out 32 + 1 = 33 → 1,409
    head          norm 2·32 = 64; linear 32·5 + 5 = 165 → 229
    together      30,278
    """
    count = {name: sum(p.numel() for p in part.parameters()) for name, part in published.named_children()}
    assert count == {"backbone": 28_640, "attention": 1_409, "head": 229}
    assert sum(count.values()) == 30_278
