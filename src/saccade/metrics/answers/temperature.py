"""Temperature scaling: one number that makes confidences true on held-out answers.

Guo et al. 2017 (arXiv:1706.04599): T minimises the mean of −log p(label) with p = softmax(logits / T). The order of the
answers, and so the answer itself, stays as it is. Where several answers may hold, p is the sigmoid of each logit / T.

A model that is calibrated already has T near 1 by chance, and such a T makes new answers worse as often as better. So
:func:`helpful_temperature` asks whether T helps answers that it was not fitted on: they are cut into folds, and those
of each fold are scaled by the T of the others. T is kept if the mean loss of these answers falls, by the 95 % interval
of the paired difference, and their calibration error falls too. Otherwise it is 1. It is 1 as well where every
answer is right, as then no T is small enough: these answers do not tell how sure a wrong one may be.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.metrics.answers.calibration import calibration_error
from saccade.metrics.intervals import mean_interval

_RANGE = (0.05, 20.0)
_STEPS = 60  # golden-section steps; each leaves 62 % of the range
_ABOVE = 1.01  # nearer to the low end of the range, the loss has no minimum
FOLDS = 5
"""In which :func:`helpful_temperature` cuts the answers."""


def fitted_temperature(logits: Tensor, labels: Tensor) -> float:
    """T for logits (N,K) and labels (N,), or (N,K) where several answers may hold.

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
    """The fitted T where it helps answers that it was not fitted on, else 1.0; arguments as above."""
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
    found = fitted_temperature(logits, labels)
    return found if helps and found > _RANGE[0] * _ABOVE else 1.0


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    """−log p of each label, (N,); where several answers may hold the mean over them."""
    if labels.dim() == 2:
        return F.binary_cross_entropy_with_logits(logits, labels.double(), reduction="none").mean(1)
    return F.cross_entropy(logits, labels.long(), reduction="none")


def error_of(logits: Tensor, labels: Tensor, temperature: float = 1.0) -> float:
    """Expected calibration error of the likeliest answers at a temperature; arguments as above."""
    scaled = logits.detach().double().cpu() / temperature
    shares = scaled.sigmoid() if labels.dim() == 2 else scaled.softmax(-1)  # (N,K)
    best = shares.max(-1)
    labels = labels.cpu()
    right = best.indices == labels if labels.dim() == 1 else labels.gather(1, best.indices[:, None])[:, 0] > 0
    return calibration_error(best.values, right.double())
