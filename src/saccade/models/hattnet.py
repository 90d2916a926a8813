"""HAttNet and HAttNet-CTX: gates between the stages, a soft attention on the last, one linear layer.

Paper: Seo et al., "Hierarchical Attention Networks", 2016 (arXiv:1606.02393), Sections 4 and 5.1.

=========  ==============================================================
Eq. (5-6)  f̂ = σ(s) ⊙ f after stages 1 … L-1    :class:`saccade.attention.ProgressiveAttention`
Eq. (7)    f' = CNN(f̂), the next stage           :meth:`HAttNetModel.ask`
Eq. (6,8)  softmax and sum on stage L            :class:`saccade.attention.SoftAttention`
Eq. (9)    scores of gates that see 3×3 cells    ``context: 3``, catalog name "hattnet-ctx"
=========  ==============================================================

Every attention has its own path for the query; the classifier never sees it. The total map is the product of all maps.

**On a pretrained backbone** the next stage expects the statistics it was trained on, which a norm or half-open gates
would change. So gates start nearly open there and no norm follows. The stages behind a gate should still be fine-tuned
(Section 4.4). Section 5.2 has gates behind the third and fourth pooling of VGG-16, and the soft attention behind the
fifth.

Deviations from the paper: those of :mod:`saccade.models.picture_query`, and a BatchNorm between an attended map and the
next stage, which only the authors' released code has. Without it (``norm_after_gates: false``) each gate, half open at
the start, halves the signal. On MREF (2,500 steps, one seed) accuracy then rises from 98.8 % to 99.2 %, and the
attention on the target falls from 11.2 % to 4.9 %. The released code averages the last attended map where Eq. (8) sums;
the BatchNorm of the head makes both the same.

Two penalties are not in the paper. On a black background open gates cost nothing; ``gate_penalty`` gives them a cost.
With a norm behind it, a gate can pay less by shrinking everywhere alike, so ``spread_penalty`` prices the shape alone:
the mean of the openings over their root mean square where features stand out from their picture's mean. An even gate
costs 1; one that opens on few such cells costs less, one that opens on the background more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor, nn

from saccade.attention.progressive import ProgressiveAttention
from saccade.attention.scores import grid_of
from saccade.attention.soft import SoftAttention
from saccade.backbones import Stages
from saccade.config import Within
from saccade.errors import ConfigError
from saccade.models.base import Depth, Given
from saccade.models.picture_query import AttendingConfig, PictureQueryModel, resolution_ends, start_glorot
from saccade.trace import GATE, Act, QuestionOutput

OPEN = 0.9  # how far gates before pretrained stages are open at the start: the sigmoid still moves there


@dataclass(frozen=True)
class HAttNetConfig(AttendingConfig):
    """Sizes of HAttNet; the defaults are the paper's."""

    context: Depth = 1
    """Side of the neighbourhood that a gate sees (4: cells −1 to +2 of each axis); the last attention never has one."""
    gated: tuple[str, ...] | None = None
    """Stages followed by a gate; None: all but the last of the small stack, and of any other backbone the two stages
    before the last that end a resolution."""
    norm_after_gates: bool | None = None
    """Whether an attended map is normalised before the next stage; None: unless that stage is pretrained."""
    gate_start: Annotated[float, Within(0, 1, above=True, below=True)] | None = None
    """How far gates are open before training, between 0 and 1; None: by a half, and by 0.9 before pretrained stages."""
    gate_penalty: Annotated[float, Within(0, 1e6)] = 0.0
    """Price of open gates in the loss: this times the mean opening, each gated stage counting alike."""
    spread_penalty: Annotated[float, Within(0, 1e6)] = 0.0
    """Price of gates that are open where nothing is: this times the mean opening ÷ the root mean square opening where
    features stand out, however wide they are."""


class HAttNetModel(PictureQueryModel):
    """A gate on each gated stage, then a soft look on the last."""

    Config = HAttNetConfig
    config: HAttNetConfig
    attention: SoftAttention
    total = "product"

    def __init__(self, config: HAttNetConfig) -> None:
        super().__init__(config)
        gated = _gated_stages(self.backbone, config)
        self.first = gated[0] if gated else self.look_name  # the stage behind which the query enters
        channels, queries, hidden = self.backbone.channels, config.queries, config.hidden
        start = (OPEN if config.pretrained else 0.5) if config.gate_start is None else config.gate_start
        sizes = {"hidden": hidden, "context": config.context}
        self.gates = nn.ModuleDict({name: ProgressiveAttention(channels[name], queries, **sizes) for name in gated})
        normed = not config.pretrained if config.norm_after_gates is None else config.norm_after_gates
        constants = (config.norm_eps, config.norm_momentum)
        self.norms = nn.ModuleDict({name: nn.BatchNorm2d(channels[name], *constants) for name in gated if normed})
        self.look_specs = {name: GATE.at(self.backbone.frames[name]) for name in gated} | dict(self.look_specs)
        self.attention = SoftAttention(self.channels, queries, hidden=hidden)
        self.head = self.new_head()
        if config.initial == "glorot":
            start_glorot(self.gates, self.attention, self.head)
        for gate in self.gates.values():
            gate.open(start)  # type: ignore[operator]  # torch types the parts of a ModuleDict as modules

    def encode(self, images: Tensor) -> Tensor:
        """f¹, and behind its channels the query-free part of the first gate: (B,3,H,W) → (B,C[+D],h,w)."""
        features = self.backbone.between(images, to=self.first)  # f¹: (B,C,h,w)
        if self.first not in self.gates:
            return features
        projected: Tensor = self.gates[self.first].shared(features)  # type: ignore[operator]  # as above
        return torch.cat((features, projected), dim=1)

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """Eq. (5)-(9): gate by gate to the last stage, then the classifier."""
        query = self.one_hot_query(encoding, query)  # (B,Q)
        acts: dict[str, Act] = {}
        channels, here = self.backbone.channels[self.first], self.first
        features, projected = encoding[:, :channels], encoding[:, channels:]
        for name, gate in self.gates.items():
            features = self.backbone.between(features, after=here, to=name)  # f: (B,C,h,w)
            attended = gate.attend(  # type: ignore[operator]  # as above
                features,
                query,
                projected if name == self.first else None,  # behind the first gate the query is in the features
                weights=self.given(attention, name, grid_of(features)),  # (B,h,w)
            )
            acts[name] = attended
            features = self.norms[name](attended.context) if name in self.norms else attended.context  # f̂: (B,C,h,w)
            here = name
        features = self.backbone.between(features, after=here)  # Eq. (7): (B,C,h,w)
        weights = self.given(attention, self.look_name, grid_of(features))  # (B,h,w)
        output = self.classify_attended(self.attention.attend(features, query, weights=weights), query)
        output.acts = acts | output.acts
        priced = bool(self.gates) and bool(self.config.gate_penalty or self.config.spread_penalty)
        if priced and (torch.compiler.is_compiling() or not torch.is_inference_mode_enabled()):  # only a loss reads it
            output.penalty = self._price(acts)  # (B,)
        return output

    def _price(self, acts: dict[str, Act]) -> Tensor:
        """The penalty (B,) of the gates; each gated stage counts alike."""
        gates = [(act.weights.float(), act.values) for act in acts.values()]
        mean = torch.stack([opening.mean((1, 2)) for opening, _ in gates])  # (G,B)
        price: Tensor = self.config.gate_penalty * mean.mean(0)  # (B,)
        if self.config.spread_penalty:
            size = torch.stack([_where_features_stand_out(*gate) for gate in gates])  # (G,B)
            spread = mean / size.clamp(min=1e-6)  # (G,B); a gate that is shut everywhere costs nothing
            price = price + self.config.spread_penalty * spread.mean(0)
        return price


def _where_features_stand_out(opening: Tensor, features: Tensor) -> Tensor:
    """Root mean square (B,) of openings (B,h,w), a cell as heavy as its features (B,C,h,w) are far from their mean."""
    features = features.detach().float()
    apart = (features - features.mean((2, 3), keepdim=True)).square().sum(1)  # (B,h,w)
    share = apart / apart.sum((1, 2), keepdim=True).clamp(min=1e-12)  # (B,h,w), sums to 1
    # By the norm, whose gradient is defined at zero too.
    size: Tensor = torch.linalg.vector_norm((share.sqrt() * opening).flatten(1), dim=1)
    return size


def _gated_stages(backbone: Stages, config: HAttNetConfig) -> list[str]:
    *before, last = backbone.names
    if config.gated is None:
        *ends, _ = resolution_ends(backbone)
        return ends if config.backbone == "small" else ends[-2:]
    for name in config.gated:
        if backbone.check_stage(name) == last:
            raise ConfigError(f"gated: '{last}' is the last stage, which has the soft attention; leave it out")
    return [name for name in before if name in config.gated]
