"""Controls in the attribute table of Seo et al. (2016, arXiv:1606.02393): all have the stack and head of SOFT.

**Blind** does not see the query: how often can the answer be guessed? Eq. (4) with α_ij = 1/HW:
:func:`saccade.attention.soft.attend_uniformly`.

**Cross** has one dot-product head: does the additive scorer matter? Vaswani 2017, Eq. (1):
:class:`saccade.attention.CrossAttention`. Deviations: those of :mod:`saccade.models.picture_query` and
:mod:`saccade.attention.soft`.

**FiLM** gets the query at every stage and has no attention: its look is a plain mean over the last map. Perez et al.,
"FiLM: Visual Reasoning with a General Conditioning Layer", 2018 (arXiv:1709.07871).

==============  ====================================================================
Perez, Eq. (1)  γ, β = f(q), h(q)                         :class:`FeatureModulation`
Perez, Eq. (2)  FiLM(F_c) = γ_c F_c + β_c                 :meth:`FeatureModulation.forward`
Seo, Eq. (4)    with α_ij = 1/HW                          :func:`saccade.attention.soft.attend_uniformly`
==============  ====================================================================

Deviations of FiLM: the modulation follows each whole stage (in the paper it lies between normalisation and rectifier of
residual blocks), in a deep backbone the last stage of each resolution; f and h are one linear map of the one-hot query
to Δγ and β, with γ = 1 + Δγ. It starts near the identity, and between pretrained stages at the identity.

Axes: B examples, Q queries, C channels, h and w cells.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from torch import Tensor, nn

from saccade.attention.scores import grid_of
from saccade.attention.soft import CrossAttention, attend_uniformly
from saccade.models.base import Given, Units
from saccade.models.picture_query import PictureQueryConfig, PictureQueryModel, resolution_ends
from saccade.trace import QuestionOutput


class BlindModel(PictureQueryModel):
    """Mean pooling of the last map; the query is checked and then left alone (but for ``prior``, where asked for)."""

    Config = PictureQueryConfig

    def __init__(self, config: PictureQueryConfig) -> None:
        super().__init__(config)
        self.head = self.new_head()

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """The classifier on the mean of all cells."""
        query = self.one_hot_query(encoding, query)  # (B,Q)
        weights = self.given(attention, self.look_name, grid_of(encoding))  # (B,h,w)
        return self.classify_attended(attend_uniformly(encoding, weights), query)


@dataclass(frozen=True)
class CrossConfig(PictureQueryConfig):
    """Sizes of the cross-attention model; the defaults are those of SOFT."""

    hidden: Units = 32
    """Width of queries and keys."""


class CrossModel(PictureQueryModel):
    """One dot-product attention on the last map."""

    Config = CrossConfig

    def __init__(self, config: CrossConfig) -> None:
        super().__init__(config)
        self.attention = CrossAttention(self.channels, config.queries, hidden=config.hidden)
        self.head = self.new_head()


class FeatureModulation(nn.Module):
    """Features (B,C,h,w) and a query vector (B,Q) → features scaled and shifted, channel by channel."""

    def __init__(self, channels: int, query_size: int) -> None:
        super().__init__()
        self.from_query = nn.Linear(query_size, 2 * channels)

    def forward(self, features: Tensor, query: Tensor) -> Tensor:
        """γ_c F_c + β_c: (B,C,h,w)."""
        stretch, shift = self.from_query(query)[:, :, None, None].chunk(2, dim=1)  # Δγ, β: (B,C,1,1) each
        modulated: Tensor = (1 + stretch) * features + shift  # (B,C,h,w)
        return modulated


class FilmModel(PictureQueryModel):
    """A backbone conditioned on the query, and mean pooling of its last map."""

    Config = PictureQueryConfig

    def __init__(self, config: PictureQueryConfig) -> None:
        super().__init__(config)
        self.conditioned = resolution_ends(self.backbone)  # the stages behind which the query enters, in order
        self.modulations = nn.ModuleDict(
            {name: FeatureModulation(self.backbone.channels[name], config.queries) for name in self.conditioned}
        )
        self.head = self.new_head()

    def load_pretrained(self) -> None:
        """The backbone's ImageNet weights, and modulations that at first leave its features as they are."""
        super().load_pretrained()
        for parameter in self.modulations.parameters():
            nn.init.zeros_(parameter)

    def encode(self, images: Tensor) -> Tensor:
        """The stages before the query enters (B,C,h,w)."""
        return self.backbone.between(images, to=self.conditioned[0])

    def ask(self, encoding: Tensor, query: Tensor, *, attention: Given | None = None) -> QuestionOutput:
        """Modulate, next stages, modulate, …; then the classifier on the mean of all cells."""
        query = self.one_hot_query(encoding, query)  # (B,Q)
        features = self.modulations[self.conditioned[0]](encoding, query)  # (B,C,h,w)
        for before, name in itertools.pairwise(self.conditioned):
            features = self.backbone.between(features, after=before, to=name)  # (B,C,h,w)
            features = self.modulations[name](features, query)
        weights = self.given(attention, self.look_name, grid_of(features))  # (B,h,w)
        return self.classify_attended(attend_uniformly(features, weights), query)
