"""Features of a frozen encoder, computed once and stored on disk, so that training steps skip the encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from saccade.backbones import Stages
from saccade.data.pictures.feature_cache import FeatureCache, feature_key, weights_digest
from saccade.data.pictures.files import files_digest
from saccade.data.pictures.image_split import PreparedPictures
from saccade.data.tables.rows import Box
from saccade.files import cache_home
from saccade.models.base import ImageModel
from saccade.progress import OnProgress, no_progress
from saccade.tasks.evaluate import at_once, encoded

Split = TypeVar("Split")
FOLDER = "features"  # Folder inside the cache folder


class CachedFeatures:
    """``model.encode`` of the pictures of a split, by picture number; ``images`` maps numbers (B,) to network inputs.

    ``limit_mb`` bounds the disk space of all cached features, those of other trainings included. ``crops`` are the
    parts of the pictures that are seen. ``what`` names the features, if they are not just the encoder's last map.
    """

    def __init__(
        self,
        files: Sequence[Path],
        images: Callable[[Tensor], Tensor],
        model: Any,
        *,
        limit_mb: int,
        crops: Sequence[Box | None] = (),
        what: str | None = None,
        on_progress: OnProgress = no_progress,
    ) -> None:
        encoder = model.encoder
        first = images(torch.tensor([0]))  # (1,3,H,W)
        self._encode = as_it_answers(model, encoder)
        self._cache = FeatureCache(
            cache_home() / FOLDER,
            shape=tuple(self._encode(first).shape[1:]),
            count=len(files),
            key=feature_key(
                pictures=files_digest(files, crops),
                backbone=model.config.backbone,
                weights=weights_digest(encoder.state_dict()),
                stage=what or encoder.names[-1],
                size=(first.shape[-2], first.shape[-1]),
            ),
            limit_bytes=limit_mb << 20,
        )
        self._device = first.device
        if not self._cache.is_complete:
            self._cache.fill(
                lambda numbers: self._encode(images(numbers)),
                batch_size=at_once(first),
                on_progress=on_progress,
                begin=_fill_start(),
            )

    def take(self, numbers: Tensor) -> Tensor:
        """The features (B,…) of the pictures ``numbers`` (B,), repeats allowed, on the pictures' device."""
        return self._cache.take(numbers).to(self._device).float()


class PictureFeatures(CachedFeatures):
    """The features of those ``pictures`` that are ``chosen`` (P,), by their place there."""

    def __init__(
        self, pictures: PreparedPictures, chosen: Tensor, model: Any, limit_mb: int, on_progress: OnProgress
    ) -> None:
        super().__init__(
            [pictures.paths[number] for number in chosen.tolist()],
            lambda numbers: pictures.take(chosen[numbers.to(chosen.device)]),
            model,
            limit_mb=limit_mb,
            crops=[pictures.crops[number] for number in chosen.tolist()],
            what=model.encoding_name,
            on_progress=on_progress,
        )


class RowFeatures(PictureFeatures):
    """The features of a split by row number; rows about one picture share them."""

    def __init__(self, split: Any, model: ImageModel, on_progress: OnProgress) -> None:
        pictures, self._which = torch.unique(split.picture, return_inverse=True)  # (P,), (N,)
        super().__init__(split.pictures, pictures, model, split.config.features_mb, on_progress)

    def take(self, numbers: Tensor) -> Tensor:
        """The features (B,…) of rows (B,), repeats allowed, on the pictures' device."""
        return super().take(self._which[numbers.to(self._which.device)])


def with_features(split: Split, model: ImageModel, on_progress: OnProgress = no_progress) -> Split:
    """The same rows, with the outputs of the encoder of ``model`` as ``features``."""
    rows: Any = copy(split)
    rows.features = RowFeatures(split, model, on_progress)
    return cast(Split, rows)


def _fill_start() -> float:
    """Rank ÷ number of ranks: where this process begins, so that processes share the work."""
    group = torch.distributed
    if not (group.is_available() and group.is_initialized()):
        return 0.0
    return group.get_rank() / group.get_world_size()


def is_frozen(part: nn.Module) -> bool:
    """Whether training leaves ``part`` unchanged: no weights learn, no statistics move, no dropout."""
    learns = any(parameter.requires_grad for parameter in part.parameters())
    return not learns and not any(module.training and _differs_in_training(module) for module in part.modules())


def _differs_in_training(layer: nn.Module) -> bool:
    return isinstance(layer, _NormBase) or (isinstance(layer, _DropoutNd) and layer.p > 0)


def as_it_answers(model: ImageModel, encoder: Stages) -> Callable[[Tensor], Tensor]:
    """``model.encode`` in eval mode without gradients; the encoder's mode is restored after each call."""

    @torch.no_grad()
    def encode(images: Tensor) -> Tensor:
        was_training = {module: module.training for module in encoder.modules()}
        encoder.eval()
        try:
            return encoded(model.encode, images)  # (B,…)
        finally:
            for module, training in was_training.items():
                module.training = training

    return encode
