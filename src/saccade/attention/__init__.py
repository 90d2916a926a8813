"""Attention mechanisms, one file per idea: features (and a query) in, a context and a look out.

==============================  ========================================================================================
scores of cells                 ``AdditiveScorer``, ``spatial_softmax``
a mean over cells               ``SoftAttention``, ``CrossAttention``; ``CellAttention`` is the base of your own
one cell, by chance             ``HardAttention``, with ``log_marginal``, ``posterior`` and ``sample_cells`` to train it
gates on features               ``ProgressiveAttention``; ``ResidualAttention`` with ``MaskBranch``
a crop of the picture           ``SpatialTransformer``, ``PointingTransformer``; ``AttentionProposal`` with ``apn_crop``
glimpses                        ``GaussianMixtureAttention``, ``SaliencyMap``, ``InhibitionOfReturn``
sentences of a story            ``SentenceCode`` and ``memory_hop``; ``EpisodeGate`` with ``AttentionGRU``
transformers                    ``SelfAttention``, ``attention_rollout``
where a look lies               ``frame_of`` a network, ``frame_like`` of features and a picture
==============================  ========================================================================================

Most return ``(context, Look)``; ``.attend`` returns plain tensors, to compile and export.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from saccade.attention.class_token import SelfAttention as SelfAttention
    from saccade.attention.class_token import attention_rollout as attention_rollout
    from saccade.attention.episodes import AttentionGRU as AttentionGRU
    from saccade.attention.episodes import EpisodeGate as EpisodeGate
    from saccade.attention.episodes import WeightedSum as WeightedSum
    from saccade.attention.frames import frame_like as frame_like
    from saccade.attention.frames import frame_of as frame_of
    from saccade.attention.glimpse import GaussianMixtureAttention as GaussianMixtureAttention
    from saccade.attention.glimpse import InhibitionOfReturn as InhibitionOfReturn
    from saccade.attention.glimpse import SaliencyMap as SaliencyMap
    from saccade.attention.glimpse import priority_map as priority_map
    from saccade.attention.hard import HardAttention as HardAttention
    from saccade.attention.hard import best_cell as best_cell
    from saccade.attention.hard import log_marginal as log_marginal
    from saccade.attention.hard import posterior as posterior
    from saccade.attention.hard import sample_cells as sample_cells
    from saccade.attention.memory import SentenceCode as SentenceCode
    from saccade.attention.memory import memory_hop as memory_hop
    from saccade.attention.progressive import ProgressiveAttention as ProgressiveAttention
    from saccade.attention.residual import MaskBranch as MaskBranch
    from saccade.attention.residual import ResidualAttention as ResidualAttention
    from saccade.attention.residual import channel_mask as channel_mask
    from saccade.attention.residual import mixed_mask as mixed_mask
    from saccade.attention.residual import spatial_mask as spatial_mask
    from saccade.attention.scores import AdditiveScorer as AdditiveScorer
    from saccade.attention.scores import Mechanism as Mechanism
    from saccade.attention.scores import grid_of as grid_of
    from saccade.attention.scores import spatial_softmax as spatial_softmax
    from saccade.attention.soft import CellAttention as CellAttention
    from saccade.attention.soft import CrossAttention as CrossAttention
    from saccade.attention.soft import SoftAttention as SoftAttention
    from saccade.attention.soft import attend_uniformly as attend_uniformly
    from saccade.attention.soft import attend_with_scores as attend_with_scores
    from saccade.attention.spatial_transformer import PointingTransformer as PointingTransformer
    from saccade.attention.spatial_transformer import SpatialTransformer as SpatialTransformer
    from saccade.attention.zoom import AttentionProposal as AttentionProposal
    from saccade.attention.zoom import Downsample as Downsample
    from saccade.attention.zoom import apn_crop as apn_crop
    from saccade.attention.zoom import box_theta as box_theta
    from saccade.attention.zoom import theta_box as theta_box
else:
    from saccade import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names
