"""Scores of answers that hold several labels: average precision of ranked labels, and multisets.

**Average precision** after PASCAL VOC (Everingham et al., IJCV 2010, Section 4.2), weighted over attributes as in Seo
et al. 2016 (arXiv:1606.02393), Section 5.2. Deviation from the challenge's code: examples with one score are called
together, so that no order of rows can flatter a model that cannot tell them apart.

=============  ==============================================================================================
interpolated   p̂(r) = the highest precision at any recall of r or more
11-point       mean of p̂ at recall 0, 0.1, …, 1: the challenges up to 2009
all-point      ∫ p̂(r) dr: the challenges from 2010 on
weighted mAP   Σ_a n_a AP_a / Σ_a n_a with n_a positives of attribute a; one without positives does not count
=============  ==============================================================================================

**Multisets** are counts (B,K), how often each class is in a picture, so that no order can matter. Paper: Welleck et al.
2017 (arXiv:1711.05165), Section 5.

=======================  =====================================================================================
exact match              the predicted multiset is the true one, the paper's "0-1"
macro-F1                 of counts pooled over pictures: TP_c = Σ min(pred_c, true_c), F1_c = 2 TP_c / Σ (pred_c +
                         true_c), mean over the classes that occur
overall precision, OP    Σ_c TP_c / Σ_c pred_c: of all predicted labels, how many are right
overall recall, OR       Σ_c TP_c / Σ_c true_c: of all true labels, how many were predicted
macro-F1 by presence     as in the later released code of the paper's first author (Welleck et al. 2018): precision
                         and recall are averaged over the pictures that *have* the class, "stop" is a class too, and
                         the scores of batches are averaged. Labels of absent classes cost nothing. It may lie
                         above macro-F1 or below; kept to compare with numbers from there
=======================  =====================================================================================

Axes: N examples, K attributes or classes, B pictures, T steps.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from saccade.errors import DataError, check_alike
from saccade.metrics.intervals import Interval, jackknife_interval
from saccade.metrics.maps.localisation import where_defined

Interpolation = Literal["11-point", "all-point"]


def average_precisions(scores: Tensor, truth: Tensor, interpolation: Interpolation = "11-point") -> Tensor:
    """Average precision of every attribute (K,) from ``scores`` (N,K); NaN for one that is never true.

    >>> average_precisions(torch.tensor([[0.9], [0.8], [0.7]]), torch.tensor([[1], [0], [1]]), "all-point").tolist()
    [0.8333333333333333]
    """
    check_alike("truth", truth, scores)
    scores, truth = scores.detach().double(), truth.to(scores.device) > 0
    if bool(scores.isnan().any()):
        row, column = scores.isnan().nonzero()[0].tolist()
        raise DataError(f"the score of example {row} for attribute {column} is NaN; look at what the model was given")
    columns = [_interpolated(*column, interpolation) for column in zip(scores.T, truth.T)]  # each ()
    precisions = torch.stack(columns) if columns else scores.new_zeros(0)  # (K,)
    return where_defined(precisions, truth.any(0))


def weighted_map(scores: Tensor, truth: Tensor, interpolation: Interpolation = "11-point") -> float:
    """Mean of the attributes' average precisions, each weighted by how often it is true; NaN if none ever is.

    Args:
        scores: (N,K); only their order within an attribute counts.
        truth: (N,K) bool, or 0 and 1.
        interpolation: see the module.
    """
    precisions = average_precisions(scores, truth, interpolation)  # (K,)
    positives = truth.to(precisions).sum(0)  # (K,)
    return float((precisions.nan_to_num() * positives).sum() / positives.sum())


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


AUTHORS_BATCH = 64  # Batch size of the author's later code, over which its F1 is averaged


def before_stop(predicted: Tensor, stop: int) -> Tensor:
    """The steps (B,T) before the first ``stop``."""
    return (predicted == stop).cumsum(-1) == 0


def multiset_counts(labels: Tensor, classes: int) -> Tensor:
    """How often each class is among the labels (B,M): (B,K) whole numbers.

    Args:
        labels: class ids in any order; labels after a stop (id ``classes``) and padding (−1) do not count.
        classes: K.
    """
    counted = torch.where(before_stop(labels, classes) & (labels >= 0), labels, classes)  # (B,M)
    return F.one_hot(counted, classes + 1).sum(1)[:, :classes]  # (B,K)


def exact_match(predicted: Tensor, truth: Tensor) -> Tensor:
    """1.0 where the predicted counts (B,K) are the true ones, else 0.0: (B,)."""
    check_alike("true counts", truth, predicted)
    return (predicted == truth).all(-1).float()


def macro_f1(predicted: Tensor, truth: Tensor) -> float:
    """Macro-F1 of pooled counts (B,K); NaN if no class occurs.

    >>> macro_f1(torch.tensor([[1, 0], [0, 1]]), torch.tensor([[1, 1], [0, 0]]))  # the right label, the wrong picture
    0.5
    """
    return float(_f1_of(_tallies(predicted, truth).sum(0, keepdim=True)))


def overall_precision(predicted: Tensor, truth: Tensor) -> float:
    """The share of all predicted labels (B,K) that are right; NaN without any. Recall: swap the arguments.

    >>> overall_precision(torch.tensor([[2, 1]]), torch.tensor([[1, 1]]))  # one of three too many
    0.6666666666666666
    """
    total = int(predicted.sum())
    return int(torch.minimum(predicted, truth).sum()) / total if total else float("nan")


def macro_f1_interval(predicted: Tensor, truth: Tensor) -> Interval:
    """Macro-F1 with its interval by leaving out one picture at a time (:mod:`saccade.metrics.intervals`)."""
    tallies, pictures = _tallies(predicted, truth), len(predicted)  # (B,2,K)
    pooled = tallies.sum(0, keepdim=True)  # (1,2,K)
    score = _f1_of(pooled)[0]
    low, high = jackknife_interval(score, _f1_of(pooled - tallies))
    return Interval(float(score), float(low), float(high), pictures, pictures, 0)


def macro_f1_by_presence(predicted: Tensor, truth: Tensor) -> float:
    """The macro-F1 of the author's later code, from counts (B,K); NaN without pictures.

    That code has a column for "stop" too, with one true stop per picture.
    """
    scores = []
    for one, other in zip(torch.split(predicted.double(), AUTHORS_BATCH), torch.split(truth.double(), AUTHORS_BATCH)):
        right = torch.minimum(one, other)  # (b,K)
        present = other > 0  # (b,K)
        pictures = present.sum(0).clamp(min=1)  # (K,)
        precision = (right / one.clamp(min=1) * present).sum(0) / pictures  # (K,)
        recall = (right / other.clamp(min=1)).sum(0) / pictures  # (K,): 0 where the class is absent
        f1 = 2 * precision * recall / (precision + recall).clamp(min=1e-12)  # (K,)
        scores.append(f1[present.any(0)].mean())
    return float(torch.stack(scores).nanmean()) if scores else float("nan")


def _tallies(predicted: Tensor, truth: Tensor) -> Tensor:
    """Right labels, and predicted plus true labels, for each picture and class: (B,2,K)."""
    check_alike("true counts", truth, predicted)
    return torch.stack([torch.minimum(predicted, truth), predicted + truth], dim=1).cpu().double()


def _f1_of(tallies: Tensor) -> Tensor:
    """Macro-F1 (N,) of N pooled tallies (N,2,K); absent classes (0/0) are left out."""
    right, in_all = tallies.unbind(1)  # (N,K)
    return (2 * right / in_all).nanmean(-1)  # (N,)
