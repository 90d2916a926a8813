"""What the small query models share: the paper's convolutional stack, an answer head, one look on the last stage.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Section 5.1: all compared models have
the same stack (Eq. 1: f = CNN(I)) and one linear layer for the answer. They differ in what happens between.

Deviations from the paper: BatchNorm and dropout before the classifier (the authors' released code has them, the text
does not), the BatchNorm with torch's usual constants instead of the code's eps 0.01 and averaging 0.5; Xavier-uniform
initial weights of the convolutional stack (the code's), torch's usual ones elsewhere. The query is a one-hot vector.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from saccade.attention.soft import Attended, soft_look
from saccade.backbones import small_stack
from saccade.models.answer_head import AnswerHead
from saccade.models.base import QueryModel, Raw
from saccade.models.quadrants import quadrant_batch
from saccade.trace import Look

TINY = {"queries": 4, "answers": 3, "channels": 8, "depth": 2, "hidden": 8, "dropout": 0.0}


@dataclass(frozen=True)
class SmallQueryConfig:
    """Sizes that all of them have; the defaults are the paper's, the dropout is that of its released code."""

    queries: int = 10
    """How many different queries there are."""
    answers: int = 5
    """How many different answers there are."""
    channels: int = 32
    """Channels of every convolution."""
    depth: int = 4
    """Stages of the convolutional stack."""
    dropout: float = 0.5
    """Share of the attended feature that is dropped in training."""

    def __post_init__(self) -> None:
        for field in ("queries", "answers", "channels", "depth"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field} must be 1 or more, found {getattr(self, field)}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is a share, 0 or more and below 1, found {self.dropout}")


class SmallQueryModel(QueryModel):
    """Pictures (B,3,H,W) and query ids (B,) → logits (B,K) and one look on the last stage.

    A model adds what it attends with and its head (:meth:`new_head`), in this order, and says how it answers
    (:meth:`ask`); one that attends softly gets its result from :meth:`answered`.
    """

    config: Any
    head: AnswerHead

    def __init__(self, config: SmallQueryConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = small_stack(channels=config.channels, depth=config.depth)
        self.look_name = self.backbone.names[-1]

    def new_head(self) -> AnswerHead:
        """From the attended feature to the answer."""
        return AnswerHead(self.config.channels, self.config.answers, dropout=self.config.dropout)

    @classmethod
    def tiny(cls) -> Any:
        """A size for tests."""
        known = {field.name for field in fields(cls.Config)}
        return cls.Config(**{name: size for name, size in TINY.items() if name in known})

    @classmethod
    def example_batch(cls, count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs and labels that fit :meth:`tiny`: the query names a quadrant, the answer is its colour."""
        return quadrant_batch(count, seed)

    def encode(self, images: Tensor) -> Tensor:
        """Eq. (1): (B,3,H,W) → f (B,C,h,w)."""
        features: Tensor = self.backbone(images)
        return features

    def asked(self, encoding: Tensor, query: Tensor) -> Tensor:
        """The query ids (B,) as one-hot vectors (B,Q), of the type of the encoding."""
        return F.one_hot(query, self.config.queries).to(encoding.dtype)

    def answered(self, features: Tensor, attended: Attended) -> Raw:
        """The classifier on what soft attention made of the features (B,C,h,w), as plain tensors."""
        return {
            "logits": self.head(attended.context),  # (B,K)
            **act(self.look_name, features, attended),
        }

    def looks(self, raw: Raw) -> tuple[Look, ...]:
        """One soft look on the last stage."""
        name = self.look_name
        return (soft_look(name, raw[f"{name}.weights"], raw[f"{name}.scores"], self.backbone.frames[name]),)


def act(name: str, features: Tensor, attended: Attended) -> Raw:
    """The tensors of one act under the names of its look."""
    return {
        f"{name}.weights": attended.weights,  # (B,h,w)
        f"{name}.scores": attended.scores,  # (B,h,w)
        f"{name}.values": features,  # (B,C,h,w)
        f"{name}.context": attended.context,  # (B,C), or (B,C,h,w) of a gate
    }
