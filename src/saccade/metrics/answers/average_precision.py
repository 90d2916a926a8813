"""Average precision of answers that are ranked by score, after PASCAL VOC, and its mean over attributes.

Paper: Everingham et al., "The PASCAL Visual Object Classes Challenge", IJCV 2010, Section 4.2; weighted over attributes
as in Seo et al., 2016 (arXiv:1606.02393), Section 5.2.

=============  ==============================================================================================
interpolated   p̂(r) = the highest precision at any recall of r or more
11-point       mean of p̂ at recall 0, 0.1, …, 1: the challenges up to 2009
all-point      ∫ p̂(r) dr: the challenges from 2010 on
weighted mAP   Σ_a n_a AP_a / Σ_a n_a with n_a positives of attribute a; one without positives does not count
=============  ==============================================================================================

Deviation from the challenge's code: examples with one score are called together, where that code takes them in the
order of the file, so no order of rows can flatter a model that cannot tell them apart.

Axes: N examples, K attributes.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from saccade.errors import ConfigError, DataError, ShapeError, nearest
from saccade.metrics.maps.values import where_defined

Interpolation = Literal["11-point", "all-point"]


def average_precision(scores: Tensor, truth: Tensor, interpolation: Interpolation = "11-point") -> float:
    """Average precision of ``scores`` (N,), the higher the surer, for ``truth`` (N,) bool; NaN without a positive.

    >>> average_precision(torch.tensor([0.9, 0.8, 0.7]), torch.tensor([True, False, True]), "all-point")
    0.8333333333333333
    """
    if scores.dim() != 1:
        raise ShapeError("scores", "(N,)", scores.shape)
    return float(average_precisions(scores[:, None], truth[:, None], interpolation)[0])


def average_precisions(scores: Tensor, truth: Tensor, interpolation: Interpolation = "11-point") -> Tensor:
    """Average precision of every attribute (K,) from ``scores`` (N,K); NaN for one that is never true."""
    if interpolation not in get_args(Interpolation):
        raise ConfigError(f"interpolation '{interpolation}': {nearest(interpolation, get_args(Interpolation))}")
    scores, truth = _checked(scores, truth)
    columns = [_interpolated(*column, interpolation) for column in zip(scores.T, truth.T)]  # each ()
    found = torch.stack(columns) if columns else scores.new_zeros(0)  # (K,)
    return where_defined(found, truth.any(0))


def weighted_map(scores: Tensor, truth: Tensor, interpolation: Interpolation = "11-point") -> float:
    """Mean of the attributes' average precisions, each weighted by how often it is true; NaN if none ever is.

    Args:
        scores: (N,K); only their order within an attribute counts.
        truth: (N,K) bool, or 0 and 1.
        interpolation: see the module.
    """
    found = average_precisions(scores, truth, interpolation)  # (K,)
    positives = truth.to(found).sum(0)  # (K,)
    return float((found.nan_to_num() * positives).sum() / positives.sum())


def _interpolated(scores: Tensor, truth: Tensor, interpolation: Interpolation) -> Tensor:
    """Average precision () of one attribute; meaningless without a positive."""
    if not len(scores):
        return scores.new_zeros(())
    ranked, order = scores.sort(descending=True)  # (N,)
    hits = truth[order].cumsum(0).double()  # (N,)
    called = torch.arange(1, len(scores) + 1, dtype=torch.float64, device=scores.device)  # (N,)
    ends = torch.cat([ranked[1:] != ranked[:-1], ranked.new_ones(1, dtype=torch.bool)])  # (N,) last of each tie
    precision, recall = (hits / called)[ends], (hits / hits[-1].clamp(min=1))[ends]  # (T,) at falling thresholds
    highest = precision.flip(0).cummax(0).values.flip(0)  # (T,) p̂ at each recall
    if interpolation == "all-point":
        return (recall.diff(prepend=recall.new_zeros(1)) * highest).sum()
    levels = torch.arange(11, dtype=torch.float64, device=scores.device) / 10  # (11,)
    at = torch.searchsorted(recall, levels).clamp(max=len(recall) - 1)  # (11,) the first threshold with that recall
    return highest[at].mean()


def _checked(scores: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Scores (N,K) in float64 and truth (N,K) bool, once they are known to be that."""
    if scores.dim() != 2:
        raise ShapeError("scores", "(N,K)", scores.shape)
    if truth.shape != scores.shape:
        raise ShapeError("truth", f"{tuple(scores.shape)} as the scores", truth.shape)
    scores = scores.detach().double()
    if bool(scores.isnan().any()):
        row, column = scores.isnan().nonzero()[0].tolist()
        raise DataError(f"the score of example {row} for attribute {column} is NaN; look at what the model was given")
    if truth.dtype != torch.bool and not bool(((truth == 0) | (truth == 1)).all()):
        raise DataError(f"truth: expected bool, or 0 and 1, found other values of {truth.dtype}")
    return scores, truth.to(scores.device) > 0
