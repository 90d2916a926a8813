"""Attention mechanisms: modules from features (and a query) to a context and a look, one file per idea."""

from saccade.attention.scores import AdditiveScorer, spatial_softmax
from saccade.attention.soft import SoftAttention

__all__ = ["AdditiveScorer", "SoftAttention", "spatial_softmax"]
