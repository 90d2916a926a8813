"""What a frozen encoder makes of the pictures of a split, computed once and kept on disk.

Xu et al. (2015, arXiv:1502.03044, Section 4.3) do not train the encoder. Its features are then the same in every epoch:
with them a step costs the decoder alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from saccade.cache import cache_home
from saccade.data.caption_files import CaptionFiles
from saccade.data.captions import CaptionData
from saccade.data.feature_cache import FeatureCache, feature_key, files_digest, weights_digest
from saccade.errors import DataError
from saccade.models.sat import SatModel
from saccade.tasks.forward_passes import at_once

FOLDER = "features"
"""Where in the cache folder they are."""


class CaptionFeatures:
    """One split of captions with the annotation vectors of their pictures, by the number of the caption.

    Args:
        data: the captions, of files.
        model: its encoder as it is now; what later becomes of it is not noticed.
    """

    def __init__(self, data: CaptionData, model: SatModel) -> None:
        if not isinstance(data.source, CaptionFiles):
            raise DataError("features are kept of files: generated scenes are new each time")
        self.source, self.split, self.device = data.source, data.split, data.device
        self.size, self.lengths = self.source.size, self.source.lengths
        key = feature_key(
            pictures=files_digest(row.image for row in self.source.rows),
            backbone=model.config.backbone,
            weights=weights_digest(model.backbone.state_dict()),
            stage=model.look_stage,
            size=model.config.input_size,
        )
        self.cache = FeatureCache(
            cache_home() / FOLDER,
            shape=(model.grid[0] * model.grid[1], model.channels),
            count=self.source.picture_count,
            key=key,
            limit_bytes=data.config.features_mb << 20,
        )
        if not self.cache.is_complete:
            self._fill(model)

    def take(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """The captions ``indices`` (B,): features (B,L,D) and words (B,T), on the device."""
        words, pictures = self.source.captions(indices.long().cpu())
        return self.cache.take(pictures).to(self.device).float(), words.to(self.device)

    def _fill(self, model: SatModel) -> None:
        """Compute what is missing with the encoder as it answers, without dropout or moving statistics."""
        first = self.source.pictures(torch.tensor([0])).images
        was_training = {module: module.training for module in model.backbone.modules()}

        @torch.no_grad()
        def encode(numbers: Tensor) -> Tensor:
            return model.encode(self.source.pictures(numbers).images)  # (b,L,D)

        model.backbone.eval()
        try:
            self.cache.fill(encode, batch_size=at_once(first))
        finally:
            for module, training in was_training.items():
                module.training = training
