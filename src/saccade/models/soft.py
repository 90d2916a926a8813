"""SOFT: a convolutional stack, one soft attention on its last map, one linear layer.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 3 and the baseline SOFT of
Section 5.1, after Xu et al. 2015.

=========  ==============================================================
Eq. (1)    f = CNN(I)                        :meth:`SoftModel.encode`
Eq. (2-4)  scores, weights, attended feature :class:`saccade.attention.SoftAttention`
=========  ==============================================================

Deviations from the paper: BatchNorm and dropout before the classifier (the authors' released code has them, the text
does not), the BatchNorm with torch's usual constants instead of the code's eps 0.01 and averaging 0.5; Xavier-uniform
initial weights of the convolutional stack (the code's), torch's usual ones elsewhere. The query is a one-hot vector
that meets the features inside the scorer and nowhere else: the classifier never sees it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.attention.soft import SoftAttention, soft_look
from saccade.backbones import small_stack
from saccade.models.answer_head import AnswerHead
from saccade.models.base import QueryModel, Raw
from saccade.trace import Look


@dataclass(frozen=True)
class SoftConfig:
    """Sizes of SOFT; the defaults are the paper's."""

    queries: int = 10
    """How many different queries there are."""
    answers: int = 5
    """How many different answers there are."""
    channels: int = 32
    """Channels of every convolution."""
    depth: int = 4
    """Stages of the convolutional stack."""
    hidden: int = 32
    """Units in which feature and query meet."""
    dropout: float = 0.5
    """Share of the attended feature that is dropped in training."""


class SoftModel(QueryModel):
    """Pictures (B,3,H,W) and query ids (B,) → logits (B,K) and one look on the last stage."""

    Config = SoftConfig
    config: SoftConfig

    def __init__(self, config: SoftConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = small_stack(channels=config.channels, depth=config.depth)
        self.look_name = self.backbone.names[-1]
        self.attention = SoftAttention(config.channels, config.queries, hidden=config.hidden)
        self.head = AnswerHead(config.channels, config.answers, dropout=config.dropout)

    @classmethod
    def tiny(cls) -> SoftConfig:
        """A size for tests."""
        return SoftConfig(queries=4, answers=3, channels=8, depth=2, hidden=8, dropout=0.0)

    @classmethod
    def example_batch(cls, count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs and labels that fit :meth:`tiny`: the query names a quadrant, the answer is its colour."""
        generator = torch.Generator().manual_seed(seed)
        images = torch.rand(count, 3, 31, 34, generator=generator) * 0.1
        query = torch.randint(4, (count,), generator=generator)
        colours = torch.randint(3, (count, 4), generator=generator)
        for place in range(4):  # each quadrant shows its own colour; the query names the quadrant
            top, left = 4 + 14 * (place // 2), 5 + 15 * (place % 2)
            images[torch.arange(count), colours[:, place], top : top + 9, left : left + 9] += 0.9
        return {"images": images, "query": query}, colours.gather(1, query[:, None]).squeeze(1)

    def encode(self, images: Tensor) -> Tensor:
        """Eq. (1): (B,3,H,W) → f (B,C,h,w)."""
        features: Tensor = self.backbone(images)
        return features

    def ask(self, encoding: Tensor, query: Tensor) -> Raw:
        """Eq. (2)-(4), then the classifier."""
        asked = F.one_hot(query, self.config.queries).to(encoding.dtype)  # (B,Q)
        attended = self.attention.attend(encoding, asked)
        name = self.look_name
        return {
            "logits": self.head(attended.context),  # (B,K)
            f"{name}.weights": attended.weights,  # (B,h,w)
            f"{name}.scores": attended.scores,  # (B,h,w)
            f"{name}.values": encoding,  # (B,C,h,w)
            f"{name}.context": attended.context,  # (B,C)
        }

    def looks(self, raw: Raw) -> tuple[Look, ...]:
        """One soft look on the last stage."""
        name = self.look_name
        return (soft_look(name, raw[f"{name}.weights"], raw[f"{name}.scores"], self.backbone.frames[name]),)
