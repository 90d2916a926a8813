"""A small vision transformer with the query as its class token: a control, and the usual kind of attention.

Papers: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021 (arXiv:2010.11929), in its hybrid form (Section 3.1):
patches are the cells of a convolutional stack, here three stages of the one that the models of Seo et al. (2016,
arXiv:1606.02393) have. Xiao et al. 2021 (arXiv:2106.14881): such a stem trains where large flat patches do not.

===================  ============================================================================================
Dosovitskiy, (1)     z⁰ = [query; f_1 E; f_2 E; …] + positions             :meth:`VitModel._tokens`
Dosovitskiy, (2-3)   z ← z + MSA(LN(z)), z ← z + MLP(LN(z))                :class:`Layer`
Dosovitskiy, (4)     y = LN(z_0), then the answer head                     :meth:`VitModel.ask`
===================  ============================================================================================

**Looks** are the class token's rows of the last layer, one for each head: they multiplied the values that the answer is
made of, and sum to 1 with what the token gives to itself. The total is their mean. Earlier layers have mixed the
patches, so the rows need not show what the answer rests on; :meth:`VitModel.rollout`, which is derived, multiplies all
layers.

Deviations from the paper: the class token is the query; sine and cosine positions of both axes instead of learned ones;
a hidden width of twice the token's in the MLP; the answer head of :mod:`saccade.models.picture_query`.

Axes: B examples, Q queries, D width of a token, N = 1 + h·w tokens, h and w cells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from saccade.attention.class_token import SelfAttention, attention_rollout
from saccade.attention.scores import grid_of
from saccade.geometry import Size
from saccade.models.base import Depth, Given, Units
from saccade.models.picture_query import PictureQueryConfig, PictureQueryModel
from saccade.trace import LookSpec, QuestionOutput


@dataclass(frozen=True)
class VitConfig(PictureQueryConfig):
    """Sizes of the transformer."""

    depth: Depth = 3
    """Stages of the small stack, whose last cells are the patches."""
    width: Units = 96
    """Width of a token."""
    layers: Depth = 4
    heads: Units = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % (4 * self.heads):
            raise ValueError(
                f"width: a multiple of 4 × heads, for heads and positions; found {self.width} for {self.heads} heads"
            )


class Layer(nn.Module):
    """Attention between tokens and a small network on each: (B,N,D) → (B,N,D)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = SelfAttention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        """All tokens."""
        return self.thought(tokens + self.attention(self.before_attention(tokens)))

    def thought(self, tokens: Tensor) -> Tensor:
        """The second half: (…,D) → (…,D)."""
        changed: Tensor = tokens + self.mlp(self.before_mlp(tokens))
        return changed


class VitModel(PictureQueryModel):
    """A transformer on the cells of a backbone; the query is its class token."""

    Config = VitConfig
    total = "mean"

    def __init__(self, config: VitConfig) -> None:
        super().__init__(config)
        width, heads = config.width, config.heads
        row = LookSpec("soft", "multiplier", frame=self.backbone.frames[self.look_name])
        self.look_specs = {f"head{number}": row for number in range(1, heads + 1)}
        self.embed = nn.Conv2d(self.channels, width, 1)
        self.from_query = nn.Linear(config.queries, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width)
        self.head = self.new_head(width)

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """All layers; of the last one only what the class token reads."""
        query = self.one_hot_query(encoding, query)  # (B,Q)
        cells = grid_of(encoding)  # (B, h, w)
        tokens = self._tokens(encoding, query)  # (B,N,D)
        *earlier, last = cast(Iterable[Layer], self.layers)
        for layer in earlier:
            tokens = layer(tokens)
        weights = None if attention is None else [self.given(attention, name, cells) for name in self.look_names]
        read, acts = last.attention.class_token(last.before_attention(tokens), (cells[1], cells[2]), weights)
        feature = self.norm(last.thought(tokens[:, 0] + read))  # (B,D)
        return QuestionOutput(self.classify(feature, query), dict(zip(self.look_names, acts)))

    @torch.no_grad()
    def rollout(self, encoding: Tensor, query: Tensor) -> Tensor:
        """Attention rollout from the class token to the patches: (B,h,w) of encodings (B,C,h,w), queries (B,)."""
        tokens, layers = self._tokens(encoding, self.one_hot_query(encoding, query)), []
        for layer in cast(Iterable[Layer], self.layers):
            layers.append(layer.attention.weights(layer.before_attention(tokens)).mean(1))  # (B,N,N)
            tokens = layer(tokens)
        rolled = attention_rollout(layers)  # (B,N,N)
        return rolled[:, 0, 1:].reshape(grid_of(encoding))

    def _tokens(self, encoding: Tensor, query: Tensor) -> Tensor:
        """Dosovitskiy, Eq. (1): (B,N,D)."""
        embedded = self.embed(encoding)  # (B,D,h,w)
        placed = embedded + positions(embedded.shape[1], (embedded.shape[2], embedded.shape[3]), embedded)
        return torch.cat([self.from_query(query).unsqueeze(1), placed.flatten(2).transpose(1, 2)], 1)


def positions(width: int, grid: Size, like: Tensor) -> Tensor:
    """Sines and cosines (D,h,w) of the rows and of the columns, a quarter of the width each; the type is ``like``'s."""
    quarter = width // 4
    rates = 100.0 ** -(torch.arange(quarter, device=like.device, dtype=torch.float32) / quarter)  # (D/4,)
    waves = []
    for axis, cells in enumerate(grid):
        angles = rates[:, None] * torch.arange(cells, device=like.device, dtype=torch.float32)  # (D/4,cells)
        both = torch.cat([angles.sin(), angles.cos()])  # (D/2,cells)
        waves.append(both.unsqueeze(1 + (1 - axis)).expand(-1, *grid))  # (D/2,h,w)
    return torch.cat(waves).to(like.dtype)
