"""The model: convolutions, one soft attention, two layers. The more dots, the more of the weight lies on dots."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from saccade.attention import SoftAttention, grid_of
from saccade.backbones import build_backbone
from saccade.models import Given, ImageOnlyModel
from saccade.trace import SOFT, ModelOutput


@dataclass(frozen=True)
class DotsConfig:
    """Sizes."""

    answers: int = 6
    channels: int = 16
    hidden: int = 32


class DotsModel(ImageOnlyModel):
    """Pictures (B,3,H,W) → logits (B,K) and one look."""

    Config = DotsConfig

    def __init__(self, config: DotsConfig) -> None:
        super().__init__()
        self.config = config
        self.backbone = build_backbone("small", channels=config.channels, depth=2)
        self.look_specs = {"dots": SOFT.at(self.backbone.frames["stage2"])}  # where its cells lie on the picture
        self.query = nn.Parameter(torch.ones(1, 1))  # nothing is asked: what to look for is learnt
        self.attention = SoftAttention(config.channels, 1, hidden=config.hidden)
        self.hidden = nn.Linear(config.channels, config.hidden)
        self.head = nn.Linear(config.hidden, config.answers)

    def encode(self, images: Tensor) -> Tensor:
        """Features (B,C,h,w)."""
        return self.backbone(images)

    def answer(self, encoding: Tensor, *, attention: Given | None = None) -> ModelOutput:
        """Attend, then classify what was attended."""
        weights = self.given(attention, "dots", grid_of(encoding))  # (B,h,w), or None: the model's own
        attended = self.attention.attend(encoding, self.query.expand(len(encoding), -1), weights=weights)
        return ModelOutput(self.head(self.hidden(attended.context).relu()), {"dots": attended})
