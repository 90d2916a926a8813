"""Features of a frozen backbone: computed once for each picture, and what each kind of rival reads of them.

Axes: N pictures, B pictures of a batch, C channels, H and W cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import cast

import torch
from torch import Tensor

from saccade.backbones.stages import Level, Stages, folded, levels_of, unfolded
from saccade.errors import ConfigError
from saccade.models.base import ImageModel
from saccade.models.probe import standardised
from saccade.models.probe_heads import LINEAR, PYRAMID
from saccade.probing.pictures import ProbedPictures
from saccade.progress import OnProgress
from saccade.tasks.cached_features import CachedFeatures

CLASS_TOKEN = "class-token"  # noqa: S105
"""A linear head on the class token of a transformer: a rival that looks nowhere, so no model is made of it."""
FEATURES, FINER = "features", "features of finer stages"  # What progress calls them
RESIDENT = 1 << 30
"""Bytes up to which features are kept in memory, as they are and once more standardised; of more, batches are read."""

Encode = Callable[[Tensor], Tensor]  # Numbers of pictures (B,) → features (B,C,H,W)
Input = Callable[[Tensor], Tensor | list[Tensor]]
"""The same, standardised as a head reads them: of a pyramid the maps of its levels."""


class Reading:
    """What one kind of rival reads of the pictures, by number: ``read`` makes features (B,C,H,W) of numbers (B,).

    ``cells`` makes those that statistics are from (None: the same). ``levels`` are the maps of a pyramid that are
    folded into one.
    """

    def __init__(self, read: Encode, count: int, *, cells: Encode | None = None, levels: Sequence[Level] = ()) -> None:
        self._count, self._levels = count, levels
        first = read(torch.tensor([0]))
        self.shape: tuple[int, ...] = tuple(first.shape[1:])  # (C,H,W)
        self.device = first.device
        """Where features are, and where heads learn from them; numbers of pictures are in main memory."""
        self.take = self._kept(read)  # Numbers (B,) → (B,C,H,W), channels together in memory
        self._cells = cells or self.take
        self._statistics: dict[bytes, tuple[Tensor, Tensor]] = {}

    @property
    def _is_kept(self) -> bool:
        return 4 * self._count * math.prod(self.shape) <= RESIDENT

    def _kept(self, read: Encode) -> Encode:
        """The same, read once for all pictures where that fits into memory."""
        if not self._is_kept:
            return lambda numbers: channels_together(read(numbers))
        parts = torch.split(torch.arange(self._count), 64)
        whole = torch.cat([channels_together(read(part)) for part in parts])
        return lambda numbers: whole[numbers]

    def statistics(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation (C,) of each channel over all cells of the pictures ``numbers``."""
        key = numbers.numpy().tobytes()
        if key not in self._statistics:
            (total, squares), cells = torch.zeros(2, self.shape[0], dtype=torch.float64), 0  # not every GPU has it
            for part in torch.split(numbers, 64):
                values = self._cells(part).permute(0, 2, 3, 1).flatten(0, 2).cpu().double()  # (n,C)
                total += values.sum(0)
                squares += values.square().sum(0)
                cells += len(values)
            centre = total / cells
            spread = (squares / cells - centre.square()).clamp_min(0).sqrt()
            least = 1e-3 * float(spread.max().clamp_min(1e-6))
            self._statistics[key] = centre.float().to(self.device), spread.clamp_min(least).float().to(self.device)
        return self._statistics[key]

    def batches(self, centre: Tensor, spread: Tensor) -> Input:
        """Numbers (B,) → standardised features (B,C,H,W), of a pyramid a list of the maps of its levels.

        They are standardised and unfolded once, where they fit.
        """

        def values(numbers: Tensor) -> Tensor:
            return standardised(self.take(numbers), centre, spread)

        levels = len(self._levels)
        if not levels:
            return self._kept(values)
        if not self._is_kept:
            return lambda numbers: unfolded(values(numbers), self._levels)
        maps = [self._kept(partial(lambda at, n: unfolded(values(n), self._levels)[at], at)) for at in range(levels)]
        return lambda numbers: [take(numbers) for take in maps]


class Features:
    """What a frozen backbone makes of the ``count`` pictures, by number: ``read`` makes (B,C,H,W) of numbers (B,).

    With ``token`` these are (B,C,H+1,W), a class token in the first cell of the last row. ``folded`` makes the finer
    maps of other stages, folded onto the same cells (B,C',H,W), if there are any. ``levels`` are the maps of a pyramid,
    the finest first and that of ``read`` last.
    """

    def __init__(
        self,
        read: Encode,
        count: int,
        *,
        token: bool = False,
        folded: Encode | None = None,
        levels: Sequence[Level] = (),
    ) -> None:
        self.levels = levels
        self.map = Reading((lambda numbers: read(numbers)[:, :, :-1]) if token else read, count)
        parts = torch.split(torch.arange(count), 256)
        self.pooled = torch.cat([self.map.take(part).flatten(2).mean(-1) for part in parts])
        """(N,C): the mean of all cells."""
        self._views: dict[str, Reading] = {
            # the mean of standardised cells is the standardised mean: a linear head needs one cell
            LINEAR: Reading(lambda numbers: self.pooled[numbers][..., None, None], count, cells=self.map.take)
        }
        if token:  # as a map of one cell
            self._views[CLASS_TOKEN] = Reading(lambda numbers: read(numbers)[:, :, -1:, :1], count)
        if folded is not None:  # all maps, folded into one
            self._views[PYRAMID] = Reading(lambda n: torch.cat([folded(n), self.map.take(n)], 1), count, levels=levels)

    def view(self, name: str) -> Reading:
        """What a rival reads."""
        if name in (CLASS_TOKEN, PYRAMID) and name not in self._views:
            lacks = "no class token" if name == CLASS_TOKEN else "one stage only at this size"
            raise ConfigError(f"heads: '{name}' cannot be trained: this backbone has {lacks}; leave it out")
        return self._views.get(name, self.map)

    def encoded(self, head: str, numbers: Tensor) -> Tensor:
        """What a model with that head has encoded of pictures: (B,C,H,W)."""
        return (self.view(PYRAMID) if head == PYRAMID else self.map).take(numbers)


def features_of(
    pictures: ProbedPictures, model: ImageModel, finer: Sequence[str], limit_mb: int, on_progress: OnProgress
) -> Features:
    """What the backbone of ``model`` makes of ``pictures``, kept in the cache folder, or the maps of their folder."""
    paths, folder, device = pictures.paths, pictures.folder, cast(Tensor, model.centre).device
    if folder is not None:

        def maps(numbers: Tensor) -> Tensor:
            return folder.take([paths[number] for number in numbers.tolist()]).to(device)

        return Features(maps, len(paths), token=folder.has_class_token)
    stages = cast(Stages, model.encoder)  # as of every model of a probe

    def kept(encode: Encode, what: str, part: str = FEATURES) -> Encode:
        encoder = SimpleNamespace(config=model.config, encoder=stages, encode=encode)
        what = f"{stages.names[-1]}{what}"
        return CachedFeatures(
            paths,
            lambda n: pictures.inputs(n).to(device),
            encoder,
            limit_mb=limit_mb,
            what=what,
            on_progress=lambda _, done, total: on_progress(part, done, total),
        ).take

    token = stages.has_class_token
    main = kept(stages.with_class_token, "+class token") if token else kept(stages, "")
    if not finer:
        return Features(main, len(paths), token=token)
    levels = levels_of(stages, finer)
    below = kept(lambda images: folded(stages, images, levels, finer_only=True), f" folded {' '.join(finer)}", FINER)
    return Features(main, len(paths), token=token, folded=below, levels=levels)


def channels_together(features: Tensor) -> Tensor:
    """The same with the channels of a cell side by side in memory."""
    return features.contiguous(memory_format=torch.channels_last)
