"""One example as a person sees it: the input, the question, the truth in words, and where the truth can be seen.

For contact sheets and reports; training and scoring read batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Example:
    """One input and what is true of it."""

    source: Any  # What a predictor can look at: a picture (3,H,W) float in 0..1, or whatever the family reads
    truth: str
    masks: tuple[Tensor, ...] = ()  # Each (H,W) bool: where the truth can be seen; none if not known
    question: str | None = None

    @property
    def caption(self) -> str:
        """The question, if there is one, and the truth."""
        return self.truth if self.question is None else f"{self.question} → {self.truth}"


def seen_masks(masks: Tensor) -> tuple[Tensor, ...]:
    """Those of the masks (K,H,W) that show something, each (H,W)."""
    return tuple(mask for mask in masks.cpu() if mask.any())
