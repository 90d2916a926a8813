"""Attention mechanisms, one file per idea: features (and a query) in, a context and a look out.

==============================  ========================================================================================
scores of cells                 ``AdditiveScorer``, ``LocalContextScorer``, ``spatial_softmax``
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
    from saccade.attention.class_token import HeadsOutput, SelfAttention, attention_rollout
    from saccade.attention.cross import CrossAttention
    from saccade.attention.episodes import AttentionGRU, EpisodeGate, PreparedFacts, WeightedSum, episode_look
    from saccade.attention.frames import frame_like, frame_of
    from saccade.attention.gaussian import GaussianMixtureAttention, GaussianParameters, covert_look
    from saccade.attention.given import check_given, given_or_own, grid_of
    from saccade.attention.hard import (
        CellPrior,
        HardAttention,
        best_cell,
        hard_look,
        log_marginal,
        posterior,
        sample_cells,
    )
    from saccade.attention.memory import Hop, SentenceCode, memory_hop, memory_look
    from saccade.attention.pointing import PointingOutput, PointingTransformer
    from saccade.attention.progressive import LocalContextScorer, ProgressiveAttention, gate_look
    from saccade.attention.residual import (
        MaskBranch,
        MaskOutput,
        ResidualAttention,
        channel_mask,
        mixed_mask,
        spatial_mask,
    )
    from saccade.attention.saliency import InhibitionOfReturn, SaliencyMap, priority_map, register_saliency
    from saccade.attention.scores import AdditiveScorer, spatial_softmax
    from saccade.attention.soft import (
        AttentionOutput,
        CellAttention,
        SoftAttention,
        attend_uniformly,
        attend_with_scores,
        soft_look,
    )
    from saccade.attention.spatial_transformer import CropOutput, SpatialTransformer, crop_look
    from saccade.attention.zoom import AttentionProposal, Downsample, apn_crop, box_theta, boxcar_mask, theta_box
else:
    from saccade.lazy_names import lazy_names

    __getattr__, __dir__ = lazy_names(__name__)
    del lazy_names

__all__ = [
    "AdditiveScorer",
    "AttentionGRU",
    "AttentionOutput",
    "AttentionProposal",
    "CellAttention",
    "CellPrior",
    "CropOutput",
    "CrossAttention",
    "Downsample",
    "EpisodeGate",
    "GaussianMixtureAttention",
    "GaussianParameters",
    "HardAttention",
    "HeadsOutput",
    "Hop",
    "InhibitionOfReturn",
    "LocalContextScorer",
    "MaskBranch",
    "MaskOutput",
    "PointingOutput",
    "PointingTransformer",
    "PreparedFacts",
    "ProgressiveAttention",
    "ResidualAttention",
    "SaliencyMap",
    "SelfAttention",
    "SentenceCode",
    "SoftAttention",
    "SpatialTransformer",
    "WeightedSum",
    "apn_crop",
    "attend_uniformly",
    "attend_with_scores",
    "attention_rollout",
    "best_cell",
    "box_theta",
    "boxcar_mask",
    "channel_mask",
    "check_given",
    "covert_look",
    "crop_look",
    "episode_look",
    "frame_like",
    "frame_of",
    "gate_look",
    "given_or_own",
    "grid_of",
    "hard_look",
    "log_marginal",
    "memory_hop",
    "memory_look",
    "mixed_mask",
    "posterior",
    "priority_map",
    "register_saliency",
    "sample_cells",
    "soft_look",
    "spatial_mask",
    "spatial_softmax",
    "theta_box",
]
