"""The looks of a model at the sentences of a story, as tensors of one form for every model.

A memory network may look at slots that hold no sentence, a dynamic memory network at an end-of-passes fact. What lies
on these is put together into one last column, so weights are (B,S+1) with S slots of sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from saccade.models.base import Raw
from saccade.models.story import StoryModel


@dataclass(frozen=True)
class SentenceWeights:
    """The looks at a batch of stories."""

    looks: dict[str, Tensor]
    """By the name of the look: weights (B,S+1); slots without a sentence have 0, and the last column their weight."""
    active: dict[str, Tensor]
    """By the name of the look: (B,) whether it took place, and did not choose the end of the passes."""
    present: Tensor
    """(B,S) which slots hold a sentence."""
    has_end: bool
    """Whether what lies on no sentence lies on an end-of-passes fact, and not on empty slots."""

    @property
    def total(self) -> Tensor:
        """The mean over the looks that took place (B,S+1)."""
        count = torch.stack(list(self.active.values())).sum(0).clamp(min=1)  # (B,)
        added = sum(weights * self.active[name].unsqueeze(1) for name, weights in self.looks.items())
        return torch.as_tensor(added) / count.unsqueeze(1)

    @property
    def heaviest(self) -> dict[str, Tensor]:
        """By the name of the look: the slot (B,) of its heaviest sentence."""
        return {name: heaviest_sentence(weights, self.present) for name, weights in self.looks.items()}


def sentence_weights(model: StoryModel, raw: Raw, story: Tensor) -> SentenceWeights | None:
    """The looks at stories (B,S,J) in a result of ``forward_raw``, on the CPU; None for a model that does not look."""
    present = (story != 0).any(-1).cpu()  # (B,S)
    slots = present.shape[1]
    looks, active, has_end = {}, {}, False
    for look in model.looks(raw):
        if look.weights is None:
            continue
        weights = look.weights.cpu().double()  # (B,S) or, with an end-of-passes fact, (B,S+1)
        has_end |= weights.shape[1] > slots
        held = weights[:, :slots] * present
        looks[look.name] = torch.cat([held, (weights.sum(1) - held.sum(1)).clamp(min=0).unsqueeze(1)], 1)
        took_place = torch.ones(len(weights), dtype=torch.bool) if look.active is None else look.active.bool().cpu()
        chose_end = weights.shape[1] > slots and look.norm == "softmax"  # a pass that chooses the end looks no more
        active[look.name] = took_place & (looks[look.name].argmax(1) < slots) if chose_end else took_place
    return SentenceWeights(looks, active, present, has_end) if looks else None


def heaviest_sentence(weights: Tensor, present: Tensor) -> Tensor:
    """The slot (B,) of the heaviest sentence in weights (B,S+1); the first of several."""
    return torch.where(present, weights[:, : present.shape[1]], -1.0).argmax(1)
