"""Scores of answers that are one label each: accuracy, calibration, confusions, and the temperature of confidences.

Calibration is the expected calibration error of Guo et al. 2017 (arXiv:1706.04599): answers are put into bins by their
confidence, and the distance between mean confidence and accuracy is averaged over the answers.

Temperature scaling (the same paper): T minimises the mean of −log p(label) on held-out answers with p = softmax(logits
/ T), or, where several answers may hold, the sigmoid of each logit / T. The answer itself stays. For a calibrated model
T differs from 1 by chance alone, which makes new answers worse as often as better. So :func:`helpful_temperature`
scales the answers of each fold by the T of the others, and keeps T if the mean loss falls, by the 95 % interval of the
paired difference, and the calibration error falls too. Otherwise T is 1, also where every answer is right.

Axes: N answers, K classes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.errors import DataError
from saccade.metrics.intervals import mean_interval
from saccade.metrics.result import Part, without_nan

SCALE_EDGES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""Edges of the paper's five bins of object scale; bins are open on the left, except that 0.5 itself is inside."""


class ScaleBin(NamedTuple):
    """Accuracy on the objects of one range of scales."""

    low: float
    high: float
    accuracy: float  # NaN when no object fell into the bin
    n: int


def correct(answers: Tensor, truth: Tensor) -> Tensor:
    """1.0 where two ids (B,) agree, else 0.0: (B,)."""
    return (answers == truth.to(answers.device)).float()


def accuracy_by_scale(answers: Tensor, truth: Tensor, scales: Tensor) -> tuple[ScaleBin, ...]:
    """Accuracy in the five bins [0.5,1], (1,1.5], (1.5,2], (2,2.5], (2.5,3] of the asked object's scale.

    Args:
        answers: ids (B,).
        truth: ids (B,).
        scales: (B,) in 0.5..3; anything else is a :class:`DataError`, because leaving it out would hide it.
    """
    right = correct(answers, truth).cpu().double()  # (B,)
    edges, at = torch.tensor(SCALE_EDGES, dtype=torch.float64), scales.detach().cpu().double()
    if not bool(((at >= edges[0]) & (at <= edges[-1])).all()):  # NaN is outside too
        raise DataError(f"scales: found {float(at.min()):g} … {float(at.max()):g}, and the bins go from 0.5 to 3")
    bins = (torch.bucketize(at, edges) - 1).clamp(min=0)  # bucketize: edges[i-1] < x ≤ edges[i]; 0.5 itself into bin 0
    n = torch.bincount(bins, minlength=len(edges) - 1)  # (5,)
    hits = torch.bincount(bins, weights=right, minlength=len(edges) - 1)  # (5,)
    share = hits / n  # 0/0 = NaN: an empty bin has no accuracy
    return tuple(
        ScaleBin(low, high, float(share[i]), int(n[i])) for i, (low, high) in enumerate(itertools.pairwise(SCALE_EDGES))
    )


BINS = 15


def top_k_correct(logits: Tensor, truth: Tensor, count: int) -> Tensor:
    """1.0 where the true id is among the ``count`` likeliest: (B,) from logits (B,K) and truth (B,).

    Among equal logits the true class comes last. NaN logits give 0.
    """
    truth = truth.to(logits.device)
    true_logit = logits.gather(1, truth[:, None])  # (B,1)
    before = torch.arange(logits.shape[1], device=logits.device) < truth[:, None]  # (B,K)
    better = (logits > true_logit) | ((logits == true_logit) & before)  # (B,K)
    return ((better.sum(1) < count) & ~logits.isnan().any(1)).float()


def calibration_error(confidence: Tensor, right: Tensor) -> float:
    """The expected calibration error of answers (N,) with confidences in 0..1; NaN without answers.

    >>> round(calibration_error(torch.tensor([0.9, 0.9, 0.9, 0.9]), torch.tensor([1.0, 1.0, 1.0, 0.0])), 4)
    0.15
    """
    sure, right = confidence.double().cpu(), right.double().cpu()
    if not len(sure):
        return float("nan")
    bin_of = (sure * BINS).ceil().long().clamp(1, BINS) - 1  # (N,): bins are open on the left, 0 lies in the first
    gap = torch.bincount(bin_of, weights=sure - right, minlength=BINS)  # (BINS,) sums of what is too much
    return float(gap.abs().sum() / len(sure))


WORST = 20  # Most mistakes listed
CONFUSIONS = 30  # Most pairs of classes listed, the most confused first
MATRIX = 50  # Most classes of a confusion matrix


def details_of(
    answers: Tensor,
    labels: Tensor,
    confidence: Tensor,
    of_true: Tensor,
    classes: Sequence[str],
    place: Callable[[int], Part] | None = None,
) -> Part:
    """``confusion``, ``per_class`` and the worst ``mistakes`` as plain values, the surest wrong answer first.

    All but ``classes``, the K names, are about N answers: ids, true ids, and the probabilities of the answer and of the
    right one. ``place`` identifies an answer by its number, such as its picture; None: no mistakes are listed.
    """
    count = len(classes)
    pairs = labels.to(answers.device) * count + answers  # (N,): a number for each pair of label and answer
    matrix = torch.bincount(pairs, minlength=count**2).reshape(count, count)  # (K,K)
    confusion: Part = {"classes": list(classes), "matrix": matrix.tolist()} if count <= MATRIX else {}
    wrong = matrix.clone().fill_diagonal_(0)
    most = torch.argsort(wrong.flatten(), descending=True, stable=True)[:CONFUSIONS].tolist()
    confusion["mistakes"] = [
        {"true": classes[at // count], "said": classes[at % count], "n": int(wrong.flatten()[at])}
        for at in most
        if wrong.flatten()[at]
    ]
    answered, actual, hits = matrix.sum(0), matrix.sum(1), matrix.diagonal()  # (K,) each
    per_class = {
        name: {
            "pictures": int(actual[number]),
            "recall": float(hits[number] / actual[number]),  # 0/0 is NaN
            "precision": float(hits[number] / answered[number]),
        }
        for number, name in enumerate(classes)
        if actual[number] or answered[number]
    }
    mistakes = []
    if place is not None:
        false = (answers != labels).nonzero()[:, 0]
        for n in false[(confidence - of_true)[false].argsort(descending=True, stable=True)][:WORST].tolist():
            names = {"true": classes[int(labels[n])], "said": classes[int(answers[n])]}
            mistakes.append({**place(n), **names, "confidence": float(confidence[n]), "of_true": float(of_true[n])})
    return without_nan({"confusion": confusion, "per_class": per_class, "mistakes": mistakes})


_RANGE = (0.05, 20.0)
_STEPS = 60  # golden-section steps; each leaves 62 % of the range
_ABOVE = 1.01  # nearer to the low end of the range, the loss has no minimum
FOLDS = 5
"""Parts of the answers in :func:`helpful_temperature`."""


def fitted_temperature(logits: Tensor, labels: Tensor) -> float:
    """T for logits (N,K) and labels (N,), or (N,K) if several answers may hold.

    >>> import torch
    >>> logits = torch.tensor([[4.0, 0.0]] * 3 + [[4.0, 0.0]])
    >>> round(fitted_temperature(logits, torch.tensor([0, 0, 0, 1])), 2)  # 75 % right: 4 / T = log 3
    3.64
    """
    logits, labels = logits.detach().double().cpu(), labels.cpu()

    def loss(log_t: float) -> float:
        return float(_losses(logits / math.exp(log_t), labels).mean())

    low, high = map(math.log, _RANGE)
    share = (math.sqrt(5) - 1) / 2
    for _ in range(_STEPS):  # the loss has one minimum in 1/T
        left, right = high - share * (high - low), low + share * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    return math.exp((low + high) / 2)


def helpful_temperature(logits: Tensor, labels: Tensor) -> float:
    """The fitted T if it helps on answers that it was not fitted on, else 1.0; arguments as above."""
    logits, labels = logits.detach().double().cpu(), labels.cpu()
    fold = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0)) % FOLDS  # (N,)
    scaled = logits.clone()  # (N,K): each by the T of the other folds
    for number in range(FOLDS):
        inside = fold == number
        if not bool(inside.any()) or bool(inside.all()):
            return 1.0  # too few answers to tell
        scaled[inside] /= fitted_temperature(logits[~inside], labels[~inside])
    gain = mean_interval(_losses(logits, labels) - _losses(scaled, labels), ends=None)
    helps = gain.low > 0 and error_of(scaled, labels) < error_of(logits, labels)
    temperature = fitted_temperature(logits, labels)
    return temperature if helps and temperature > _RANGE[0] * _ABOVE else 1.0


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    if labels.dim() == 2:
        return F.binary_cross_entropy_with_logits(logits, labels.double(), reduction="none").mean(1)
    return F.cross_entropy(logits, labels.long(), reduction="none")


def error_of(logits: Tensor, labels: Tensor) -> float:
    """Expected calibration error of the likeliest answers; arguments as above."""
    logits = logits.detach().double().cpu()
    shares = logits.sigmoid() if labels.dim() == 2 else logits.softmax(-1)  # (N,K)
    best = shares.max(-1)
    labels = labels.cpu()
    right = best.indices == labels if labels.dim() == 1 else labels.gather(1, best.indices[:, None])[:, 0] > 0
    return calibration_error(best.values, right.double())


def right_answers(logits: Tensor, label: Tensor) -> Tensor:
    """Whether the likeliest answer is the label (B,), or one of the labels (B,K): (B,) bool."""
    answer = logits.argmax(-1)  # (B,)
    return answer == label if label.dim() == 1 else torch.take_along_dim(label, answer[:, None], 1)[:, 0] > 0
