"""Maps over the sentences of stories that need no model, in the form of looks: what a model's looks stand beside."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from saccade.families.story.scoring.sentence_weights import SentenceWeights
from saccade.metrics.slots import recency, uniform, word_overlap

RIVALS = ("recency", "uniform", "word_overlap")


def rival_maps(batch: Mapping[str, Tensor]) -> dict[str, SentenceWeights]:
    """One look of each rival at the ``story`` (B,S,J) of a batch for its ``query`` (B,Q), with no weight elsewhere."""
    story, query = batch["story"].cpu(), batch["query"].cpu()
    present = (story != 0).any(-1)  # (B,S)
    maps = dict(zip(RIVALS, (recency(present), uniform(present), word_overlap(story, query))))
    always = torch.ones(len(present), dtype=torch.bool)
    weights = {name: torch.nn.functional.pad(each.nan_to_num(), (0, 1)) for name, each in maps.items()}  # (B,S+1)
    return {name: SentenceWeights({name: each}, {name: always}, present, False) for name, each in weights.items()}
