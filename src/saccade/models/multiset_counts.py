"""Control for HSAL: how many of each label there are, counted from the same activations, without attention.

Each cell is looked at alone by one hidden layer, the cells are averaged, and one linear layer tells for every class the
probability of 0, 1, … ``most`` objects (``count_logits`` (B,C,most+1)).

A multiset is read off as HSAL says one, so that both are judged alike: at each step the class that is likeliest to have
one more object than was said of it, until for none this is likelier than not. ``logits`` (B,T,C+1) are these
log-odds, and 0 for "nothing more".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.scores import grid_of
from saccade.attention.soft import attend_uniformly
from saccade.models.base import Given
from saccade.models.multiset_reader import MultisetConfig, MultisetModel
from saccade.models.ranges import Units
from saccade.outputs import SOFT, MultisetOutput

CERTAIN = 1e-6
"""Probabilities nearer to 0 or 1 than this are told as this."""


@dataclass(frozen=True)
class MultisetCountsConfig(MultisetConfig):
    """Sizes of the counting control."""

    hidden: Units = 256
    """Units in which each cell is looked at."""


class MultisetCountsModel(MultisetModel):
    """Counts every class; its look is a plain mean."""

    Config = MultisetCountsConfig
    config: MultisetCountsConfig

    def __init__(self, config: MultisetCountsConfig) -> None:
        super().__init__(config)
        self.look_specs = {self.look_stage: SOFT.at(self.backbone.frames[self.look_stage])}
        self.cell = nn.Conv2d(self.channels, config.hidden, 1)
        self.count = nn.Linear(config.hidden, config.classes * (config.most + 1))

    @classmethod
    def tiny(cls) -> MultisetCountsConfig:
        """A size for tests."""
        return MultisetCountsConfig(
            classes=3, most=2, backbone="small", through="stage2", input_size=(31, 34), hidden=16
        )

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> MultisetOutput:
        """Count each class in the encoded pictures (B,C,h,w), and say the counts as a multiset."""
        cells = self.cell(encoding).relu()  # (B,D,h,w)
        attended = attend_uniformly(cells, self.given(attention, self.look_stage, grid_of(cells)))
        counts = self.count(attended.context).unflatten(1, (self.config.classes, self.config.most + 1))  # (B,C,most+1)
        logits, said = self._said(counts)
        return MultisetOutput(
            logits,
            {self.look_stage: attended},
            said=said,
            single_logits=self.read_single(encoding),
            count_logits=counts,
        )

    def _said(self, count_logits: Tensor) -> tuple[Tensor, Tensor]:
        """Counts (B,C,most+1) as a sequence of classes, the surest first, and nothing more behind them."""
        at_most = count_logits.softmax(-1).cumsum(-1)[..., :-1]  # P(n objects at most), n = 0 … most-1: (B,C,most)
        odds = torch.logit(1 - at_most, eps=CERTAIN)  # of one more than n: (B,C,most)
        none = torch.full_like(odds[..., :1], CERTAIN).logit()  # of more than ``most``: (B,C,1)
        odds = torch.cat([odds, none], dim=-1)  # (B,C,most+1)
        copies = torch.zeros_like(count_logits[..., :1], dtype=torch.long)  # said of each class so far: (B,C,1)
        logits, said = [], []
        for _ in range(self.steps):
            more = odds.gather(-1, copies.clamp_max(self.config.most)).squeeze(-1)  # (B,C)
            logits.append(F.pad(more, (0, 1)))  # (B,C+1)
            said.append(logits[-1].argmax(-1))  # (B,)
            copies = copies + F.one_hot(said[-1], self.config.classes + 1)[:, :-1, None]  # (B,C,1)
        return torch.stack(logits, dim=1), torch.stack(said, dim=1)  # (B,T,C+1), (B,T)
