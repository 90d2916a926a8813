import numpy as np
import pytest
import torch

from saccade import geometry
from saccade.trace import AttentionTrace, Look


@pytest.fixture
def grey_picture() -> np.ndarray:
    return np.full((100, 100, 3), 128, dtype=np.uint8)


@pytest.fixture
def soft_trace() -> AttentionTrace:
    """SOFT's 4×4 look on 100×100: cell centres at 23, 39, 55, 71, weight on row 2, column 1."""
    weights = torch.full((1, 4, 4), 0.02)
    weights[0, 2, 1] = 0.7
    frame = torch.tensor([[16.0, 0.0, 15.0], [0.0, 16.0, 15.0]])
    return AttentionTrace(
        (Look("soft", "soft", "multiplier", weights, "softmax", frame),),
        answer=torch.tensor([1]),
        image_size=torch.tensor([[100, 100]]),
    ).validate()


@pytest.fixture
def word_trace() -> AttentionTrace:
    """Eight steps of which the last is padding, on a 56×56 input shown as a 90×60 picture."""
    weights = torch.softmax(torch.randn(1, 8, 49, generator=torch.Generator().manual_seed(0)), -1).view(1, 8, 7, 7)
    look = Look(
        "word",
        "soft",
        "multiplier",
        weights,
        "softmax",
        geometry.scale_shift((8, 8), (0, 0)),
        gain=torch.full((1, 8), 0.5),
        active=torch.tensor([[True] * 7 + [False]]),
    )
    canvas = geometry.scale_shift((90 / 56, 60 / 56), (0, 0))[None]
    return AttentionTrace((look,), canvas=canvas, image_size=torch.tensor([[60, 90]]), total="mean").validate()
