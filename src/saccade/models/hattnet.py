"""HAttNet and HAttNet-CTX: gates after every stage but the last, a soft attention on the last, one linear layer.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Sections 4 and 5.1.

=========  ==============================================================
Eq. (5-6)  f̂ = σ(s) ⊙ f after stages 1 … L-1    :class:`saccade.attention.ProgressiveAttention`
Eq. (7)    f' = CNN(f̂), the next stage           :meth:`HAttNetModel.ask`
Eq. (6,8)  softmax and sum on stage L            :class:`saccade.attention.SoftAttention`
Eq. (9)    scores of gates that see 3×3 cells    ``context: 3``, catalog name "hattnet-ctx"
=========  ==============================================================

Every attention has its own path for the query; the classifier never sees it. The total map is the product of all maps.

Deviations from the paper: those of :mod:`saccade.models.small_query`, and a BatchNorm between an attended map and the
next stage. The authors' released code has it, the text does not; without it each gate, half open at the start, halves
the signal (``norm_after_gates: false`` shows what that costs). The released code averages the last attended map where
Eq. (8) sums; the BatchNorm of the head makes both the same. ``gate_penalty`` is not in the paper: on a black background
open gates cost nothing, so nothing closes them; the penalty is that cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from saccade.attention.progressive import ProgressiveAttention, gate_look
from saccade.attention.soft import SoftAttention
from saccade.backbones import Stages
from saccade.errors import ConfigError
from saccade.models.base import Raw
from saccade.models.quadrants import quadrant_batch
from saccade.models.small_query import SmallQueryConfig, SmallQueryModel, act
from saccade.trace import Look


@dataclass(frozen=True)
class HAttNetConfig(SmallQueryConfig):
    """Sizes of HAttNet; the defaults are the paper's."""

    hidden: int = 32
    """Units in which feature and query meet, in each attention."""
    context: int = 1
    """Side of the neighbourhood that a gate sees (odd); the last attention never has context."""
    gated: tuple[str, ...] | None = None
    """Stages followed by a gate; None: all but the last."""
    norm_after_gates: bool = True
    """Whether an attended map is normalised before the next stage."""
    gate_penalty: float = 0.0
    """Price of open gates in the loss: this times the mean opening, each gated stage counting alike."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.gate_penalty >= 0:
            raise ValueError(f"gate_penalty must be 0 or more, found {self.gate_penalty:g}")
        if self.gated is not None and len(set(self.gated)) < len(self.gated):
            raise ValueError(f"gated repeats a stage: {', '.join(self.gated)}")


class HAttNetModel(SmallQueryModel):
    """A gate on each gated stage, then a soft look on the last."""

    Config = HAttNetConfig
    total = "product"

    def __init__(self, config: HAttNetConfig) -> None:
        super().__init__(config)
        gated = _gated_stages(self.backbone, config.gated)
        self.first = gated[0] if gated else self.look_name
        """The stage behind which the query enters."""
        channels, queries, hidden = config.channels, config.queries, config.hidden
        self.gates = nn.ModuleDict(
            {name: ProgressiveAttention(channels, queries, hidden=hidden, context=config.context) for name in gated}
        )
        normed = gated if config.norm_after_gates else []
        self.norms = nn.ModuleDict({name: nn.BatchNorm2d(channels) for name in normed})
        self.attention = SoftAttention(channels, queries, hidden=hidden)
        self.head = self.new_head()

    @classmethod
    def tiny(cls) -> Any:
        """A size for tests, with two gates."""
        return HAttNetConfig(queries=4, answers=3, channels=8, depth=3, hidden=8, dropout=0.0)

    @classmethod
    def example_batch(cls, count: int, seed: int) -> tuple[dict[str, Tensor], Tensor]:
        """Inputs and labels that fit :meth:`tiny`: every picture is asked for the colour of each quadrant."""
        return quadrant_batch(count, seed, each=True)

    def encode(self, images: Tensor) -> Tensor:
        """The stages before the query enters: (B,3,H,W) → f¹ (B,C,h,w)."""
        return self.backbone.between(images, to=self.first)

    def ask(self, encoding: Tensor, query: Tensor) -> Raw:
        """Eq. (5)-(9): gate by gate to the last stage, then the classifier."""
        asked = self.asked(encoding, query)  # (B,Q)
        raw: Raw = {}
        features, here = encoding, self.first
        for name, gate in self.gates.items():
            features = self.backbone.between(features, after=here, to=name)  # f: (B,C,h,w)
            attended = gate.attend(features, asked)  # type: ignore[operator]
            raw |= act(name, features, attended)
            features = self.norms[name](attended.context) if name in self.norms else attended.context  # f̂: (B,C,h,w)
            here = name
        features = self.backbone.between(features, after=here)  # Eq. (7): (B,C,h,w)
        raw |= self.answered(features, self.attention.attend(features, asked))
        if self.config.gate_penalty and self.gates:
            openings = torch.stack([raw[f"{name}.weights"].mean((1, 2)) for name in self.gates])  # (G,B)
            raw["penalty"] = self.config.gate_penalty * openings.mean(0)  # (B,)
        return raw

    def looks(self, raw: Raw) -> tuple[Look, ...]:
        """The gates in order, then the soft look on the last stage."""
        gates = (
            gate_look(name, raw[f"{name}.weights"], raw[f"{name}.scores"], self.backbone.frames[name])
            for name in self.gates
        )
        return (*gates, *super().looks(raw))


def _gated_stages(backbone: Stages, wanted: tuple[str, ...] | None) -> list[str]:
    """The stages that get a gate, in the order of the network."""
    *before, last = backbone.names
    if wanted is None:
        return before
    for name in wanted:
        if backbone.check_stage(name) == last:
            raise ConfigError(f"gated: '{last}' is the last stage, which has the soft attention; leave it out")
    return [name for name in before if name in wanted]
