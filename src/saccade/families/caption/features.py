"""Captions for pictures whose features a frozen encoder has already computed and stored.

Xu et al. (2015, arXiv:1502.03044, Section 4.3) do not train the encoder: with stored features, a step costs only the
decoder.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from saccade.errors import DataError
from saccade.families.caption.data import CaptionData
from saccade.families.caption.files import CaptionFiles
from saccade.models.sat import SatModel
from saccade.tasks.cached_features import CachedFeatures


class CaptionFeatures:
    """One split of captions with the annotation vectors of their pictures, by the number of the caption.

    Args:
        data: the captions, of files.
        model: its encoder as it is now; what later becomes of it is not noticed.
        on_progress: as in :class:`CachedFeatures`.
    """

    def __init__(
        self,
        data: CaptionData,
        model: SatModel,
        on_progress: Callable[[str, int, int], None] = lambda what, done, total: None,
    ) -> None:
        if not isinstance(data.source, CaptionFiles):
            raise DataError("features can be stored for files only: generated scenes are new each time")
        self.source = source = data.source
        self.split, self.device, self.size, self.lengths = data.split, data.device, source.size, source.lengths
        self._features = CachedFeatures(
            [row.image for row in source.rows],
            lambda numbers: source.pictures(numbers).images,
            model,
            limit_mb=data.config.features_mb,
            on_progress=on_progress,
        )

    def take(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The captions ``indices`` (B,): features (B,L,D) and words (B,T), on the device."""
        words, pictures = self.source.captions(indices.long().cpu())
        return self._features.take(pictures), words.to(self.device)
