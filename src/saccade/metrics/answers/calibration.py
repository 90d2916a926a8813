"""Scores of a classifier beyond its accuracy: the first few answers, how sure it may be, and what it mixes up.

Calibration is the expected calibration error of Guo et al. 2017 (arXiv:1706.04599): answers are put into bins by their
confidence, and the distance between mean confidence and accuracy is averaged over the answers.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.errors import ShapeError
from saccade.metrics.answers.accuracy import check_ids

BINS = 15


def top_k_correct(logits: Tensor, truth: Tensor, count: int) -> Tensor:
    """1.0 where the true id is among the ``count`` likeliest: (B,) from logits (B,K) and truth (B,).

    Of equal logits the ones before the true class come first, so that a constant answer gains nothing. Logits that are
    not numbers answer nothing: 0.
    """
    truth = check_ids("truth", truth, logits[:, 0])
    own = logits.gather(1, truth[:, None])  # (B,1)
    before = torch.arange(logits.shape[1], device=logits.device) < truth[:, None]  # (B,K)
    better = (logits > own) | ((logits == own) & before)  # (B,K)
    return ((better.sum(1) < count) & ~logits.isnan().any(1)).float()


def calibration_error(confidence: Tensor, right: Tensor, bins: int = BINS) -> float:
    """The expected calibration error of answers (N,) with this confidence in 0..1; NaN for none.

    >>> round(calibration_error(torch.tensor([0.9, 0.9, 0.9, 0.9]), torch.tensor([1.0, 1.0, 1.0, 0.0])), 4)
    0.15
    """
    if confidence.shape != right.shape:
        raise ShapeError("right", f"{tuple(confidence.shape)}", right.shape)
    sure, right = confidence.double().cpu(), right.double().cpu()
    if not len(sure):
        return float("nan")
    bin_of = (sure * bins).ceil().long().clamp(1, bins) - 1  # (N,): bins are open on the left, 0 lies in the first
    gap = torch.bincount(bin_of, weights=sure - right, minlength=bins)  # (bins,) sums of what is too much
    return float(gap.abs().sum() / len(sure))


def confusion_matrix(answers: Tensor, truth: Tensor, classes: int) -> Tensor:
    """How often each class (row) was answered as each (column): (K,K) whole numbers."""
    answers = check_ids("answers", answers)
    truth = check_ids("truth", truth, answers)
    return torch.bincount(truth * classes + answers, minlength=classes**2).reshape(classes, classes)
