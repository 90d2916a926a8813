"""All localisation scores of many maps, added up batch by batch: one object for the model and one for each baseline."""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.metrics.intervals import mean_defined
from saccade.metrics.maps.localisation import iou, pointing, selectivity, true_positive_strength
from saccade.metrics.maps.precision_recall import PrCounts, PrCurve, no_counts, pr_counts


class PictureValues:
    """Named values of many pictures, one each, added up batch by batch."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Tensor]] = {}

    def add_values(self, values: dict[str, Tensor]) -> None:
        """Keep values (B,) of a batch under their names."""
        for name, part in values.items():
            self._parts.setdefault(name, []).append(part.detach().cpu().double())

    def values(self) -> dict[str, Tensor]:
        """All values (N,), by name."""
        return {name: torch.cat(parts) for name, parts in self._parts.items()}

    def means(self) -> dict[str, float]:
        """The mean of each over the pictures where it is defined."""
        return {name: mean_defined(values).mean for name, values in self.values().items()}


class MapScores(PictureValues):
    """Collects maps (B,H,W) with their truth; keeps one value per picture and score, and pooled pixel counts.

    >>> scores = MapScores()
    >>> target = torch.zeros(1, 2, 2, dtype=torch.bool); target[0, 0, 0] = True
    >>> scores.add(torch.ones(1, 2, 2), target, torch.ones_like(target))
    >>> scores.means()["true_positive_strength"], scores.means()["selectivity"]
    (0.25, 0.25)
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: PrCounts = no_counts()

    def add(self, maps: Tensor, evidence: Tensor, objects: Tensor | None = None) -> None:
        """Score a batch: ``evidence`` is the target's mask, ``objects`` that of all objects (B,H,W) bool."""
        found = {
            "true_positive_strength": true_positive_strength(maps, evidence),
            "pointing": pointing(maps, evidence),
            "iou": iou(maps, evidence),
        }
        if objects is not None:
            found["selectivity"] = selectivity(maps, evidence, objects)
        self.add_values(found)
        self._counts = self._counts + pr_counts(maps, evidence)

    def means(self) -> dict[str, float]:
        """The mean of every score over the pictures where it is defined, and the pooled ``pr_auc``."""
        has_maps = self._counts.pictures + self._counts.undefined > 0
        return super().means() | ({"pr_auc": self.curve().auc} if has_maps else {})

    def curve(self) -> PrCurve:
        """Precision and recall of the pooled pixels."""
        return self._counts.curve()
