"""The scores as torchmetrics ``Metric`` classes: state that adds up over batches and synchronises over processes.

Thin on purpose: everything is computed by the functions of this package, and all states are sums. Every ``compute``
returns a dictionary of scalars with ``n`` and ``undefined`` beside the score. Importing this file imports torchmetrics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from saccade.metrics.answers.accuracy import correct
from saccade.metrics.maps.precision_recall import LEVELS, PrCounts, pr_counts


class MeanScore(Metric):
    """Mean over pictures of any function that returns one score per picture.

    >>> from saccade.metrics import pointing
    >>> metric = MeanScore(pointing)
    >>> metric.update(torch.eye(2).unsqueeze(0), torch.eye(2).unsqueeze(0) > 0)
    >>> float(metric.compute()["mean"])
    1.0
    """

    is_differentiable = False
    full_state_update = False
    total: Tensor
    n: Tensor
    undefined: Tensor

    def __init__(self, score: Callable[..., Tensor], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.score = score
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("n", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")
        self.add_state("undefined", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, *inputs: Tensor) -> None:
        """Score a batch; the arguments are those of the score function."""
        scores = self.score(*inputs).detach().to(self.total)  # (B,)
        defined = ~scores.isnan()
        self.total += scores[defined].sum()
        self.n += defined.sum()
        self.undefined += (~defined).sum()

    def compute(self) -> dict[str, Tensor]:
        """``mean`` of the defined scores (NaN when there are none), ``n`` and ``undefined``."""
        return {"mean": self.total / self.n, "n": self.n, "undefined": self.undefined}


class Accuracy(MeanScore):
    """Share of right answers; ``update(answers, truth)`` takes ids (B,)."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(correct, **kwargs)


class PrAuc(Metric):
    """Average precision of maps as detectors of evidence pixels; ``update(maps, evidence)``, both (B,H,W)."""

    is_differentiable = False
    full_state_update = False
    higher_is_better = True
    positives: Tensor
    negatives: Tensor
    n: Tensor
    undefined: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        for name in ("positives", "negatives"):
            self.add_state(name, torch.zeros(LEVELS, dtype=torch.int64), dist_reduce_fx="sum")
        for name in ("n", "undefined"):
            self.add_state(name, torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, maps: Tensor, evidence: Tensor) -> None:
        """Count the pixels of a batch."""
        counts = pr_counts(maps, evidence)
        self.positives += counts.positives.to(self.positives)
        self.negatives += counts.negatives.to(self.negatives)
        self.n += counts.pictures
        self.undefined += counts.undefined

    def compute(self) -> dict[str, Tensor]:
        """``pr_auc`` (NaN when no picture had evidence), ``n`` pictures counted and ``undefined``."""
        counts = PrCounts(self.positives, self.negatives, int(self.n), int(self.undefined))
        area = torch.tensor(counts.auc, dtype=torch.float64, device=self.positives.device)
        return {"pr_auc": area, "n": self.n, "undefined": self.undefined}
