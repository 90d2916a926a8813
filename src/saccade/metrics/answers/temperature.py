"""Temperature scaling: one number that makes confidences true on held-out answers.

Guo et al. 2017 (arXiv:1706.04599): T minimises the mean of −log p(label) with p = softmax(logits / T). The order of the
answers, and so the answer itself, stays as it is. Where several answers may hold, p is the sigmoid of each logit / T.
"""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor

from saccade.metrics.answers.calibration import calibration_error

_RANGE = (0.05, 20.0)
_STEPS = 60  # golden-section steps; each leaves 62 % of the range


def fitted_temperature(logits: Tensor, labels: Tensor) -> float:
    """T for logits (N,K) and labels (N,), or (N,K) where several answers may hold.

    >>> import torch
    >>> logits = torch.tensor([[4.0, 0.0]] * 3 + [[4.0, 0.0]])
    >>> round(fitted_temperature(logits, torch.tensor([0, 0, 0, 1])), 2)  # 75 % right: 4 / T = log 3
    3.64
    """
    logits, labels = logits.detach().double().cpu(), labels.cpu()

    def loss(log_t: float) -> float:
        scaled = logits / math.exp(log_t)
        if labels.dim() == 2:
            return float(F.binary_cross_entropy_with_logits(scaled, labels.double()))
        return float(F.cross_entropy(scaled, labels.long()))

    low, high = map(math.log, _RANGE)
    share = (math.sqrt(5) - 1) / 2
    for _ in range(_STEPS):  # the loss has one minimum in 1/T
        left, right = high - share * (high - low), low + share * (high - low)
        low, high = (low, right) if loss(left) <= loss(right) else (left, high)
    return math.exp((low + high) / 2)


def error_of(logits: Tensor, labels: Tensor, temperature: float = 1.0) -> float:
    """Expected calibration error of the likeliest answers at a temperature; arguments as above."""
    scaled = logits.detach().double().cpu() / temperature
    shares = scaled.sigmoid() if labels.dim() == 2 else scaled.softmax(-1)  # (N,K)
    best = shares.max(-1)
    labels = labels.cpu()
    right = best.indices == labels if labels.dim() == 1 else labels.gather(1, best.indices[:, None])[:, 0] > 0
    return calibration_error(best.values, right.double())
