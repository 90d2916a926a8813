"""A typed script: ask a model, score it, score maps of your own, and use a mechanism in your own network.

``mypy --strict examples/typed_user.py`` has nothing to say about it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

import saccade


def where_it_looked(picture: Path, question: str) -> tuple[str, npt.NDArray[np.float32]]:
    """The answer to a question about a picture, and its map (H,W)."""
    seen = saccade.load("soft-mref").look(picture, ask=question)
    return seen.answer, seen.map()


def accuracy(model: str, limit: int) -> float:
    """How many of the first ``limit`` test questions a model gets right."""
    result = saccade.evaluate(model, limit=limit, sweeps=0, twins=0)
    found = result["metrics"]["accuracy"]
    if not isinstance(found, float):  # undefined, or one for each query
        raise TypeError(f"no single accuracy: {found}")
    return found


def strength(maps: Tensor, masks: Tensor) -> float:
    """The share of the weight that maps (N,H,W) put on masks (N,H,W)."""
    return saccade.score(maps, masks).scores["true_positive_strength"].mean


class Attending(nn.Module):
    """A network of one's own with one mechanism of saccade in it: pictures (B,3,H,W), queries (B,10) → logits (B,2)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, 4, 1))
        self.attention = saccade.SoftAttention(channels=32, query_size=10)
        self.head = nn.Linear(32, 2)

    def forward(self, images: Tensor, query: Tensor) -> tuple[Tensor, saccade.AttentionTrace]:
        """Logits, and where it looked."""
        context, look = self.attention.forward(self.body(images), query)
        logits: Tensor = self.head(context)
        return logits, saccade.AttentionTrace((look,))


def main() -> None:
    """All four, in a few seconds."""
    answer, attention = where_it_looked(saccade.example("digits"), "7")
    print(f"the 7 is {answer}; the map is {attention.shape[0]} × {attention.shape[1]}")
    print(f"soft-mref: {accuracy('soft-mref', 50):.0%} of 50 test questions")
    mask = torch.zeros(4, 8, 8, dtype=torch.bool)
    mask[:, 2:4, 2:4] = True
    print(f"an even map puts {strength(torch.ones(4, 8, 8), mask):.0%} of its weight on the mask")
    logits, trace = Attending()(torch.rand(1, 3, 64, 64), torch.rand(1, 10))
    print(f"{tuple(logits.shape)} logits, {len(trace.looks)} look")


if __name__ == "__main__":
    main()
