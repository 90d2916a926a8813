"""Attention mechanisms: modules from features (and a query) to a context and a look, one file per idea."""

from saccade.attention.cross import CrossAttention
from saccade.attention.frames import frame_like, frame_of
from saccade.attention.gaussian import GaussianMixtureAttention
from saccade.attention.hard import HardAttention
from saccade.attention.pointing import PointingTransformer
from saccade.attention.progressive import LocalContextScorer, ProgressiveAttention
from saccade.attention.residual import ResidualAttention
from saccade.attention.saliency import InhibitionOfReturn, SaliencyMap, register_saliency
from saccade.attention.scores import AdditiveScorer, spatial_softmax
from saccade.attention.soft import SoftAttention
from saccade.attention.spatial_transformer import SpatialTransformer

__all__ = [
    "AdditiveScorer",
    "CrossAttention",
    "GaussianMixtureAttention",
    "HardAttention",
    "InhibitionOfReturn",
    "LocalContextScorer",
    "PointingTransformer",
    "ProgressiveAttention",
    "ResidualAttention",
    "SaliencyMap",
    "SoftAttention",
    "SpatialTransformer",
    "frame_like",
    "frame_of",
    "register_saliency",
    "spatial_softmax",
]
