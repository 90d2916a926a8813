"""Readers whose answers are known beforehand, and short splits of generated scenes on shipped glyphs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import saccade.families.multiset.data as multisets
from saccade import geometry
from saccade.families.multiset.data import MultisetBatch
from saccade.models.hsal import HsalConfig
from saccade.models.multiset_reader import LabelReader
from saccade.trace import Act, Look, MultisetOutput

SMALL = {
    "backbone": "small", "through": "stage2", "hidden": 8, "meta_hidden": 8, "location_hidden": 8,
}  # fmt: skip
PACK = {"name": "mnist-multiset", "glyphs": "pack"}


@contextmanager
def short_splits(val: int = 12, test: int = 20) -> Iterator[None]:
    """Fewer held-out scenes, so that a validation takes a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(multisets.SIZES["unlimited"], "val", val)
        patch.setitem(multisets.SIZES["unlimited"], "test", test)
        yield


class Known(LabelReader):
    """Says ``said`` (B,T) of the batch it was made for, glimpsing at ``cells`` (B,T,k) of a grid over the picture."""

    total = "mean"

    def __init__(self, batch: MultisetBatch, said: Tensor, cells: Tensor, grid: tuple[int, int] = (5, 5)) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(1))
        self.batch, self.said, self.cells, self.grid = batch, said, cells, grid
        self.saliency = torch.rand(*said.shape, *grid, generator=torch.Generator().manual_seed(3))
        height, width = batch.images.shape[-2:]
        self.frame = geometry.scale_shift((width / grid[1], height / grid[0]), (0.0, 0.0))
        self.config: Any = HsalConfig(input_size=(height, width))
        self.done = 0

    def encode(self, images: Tensor) -> Tensor:
        return images

    def answer(self, encoding: Tensor) -> MultisetOutput:
        mine = slice(self.done, self.done + len(encoding))  # pictures come in order, a few at a time
        self.done += len(encoding)
        said = self.said[mine]
        logits = torch.zeros(*said.shape, int(self.said.max()) + 1)
        saliency = self.saliency[mine]
        return MultisetOutput(
            logits,
            {"saliency": Act(weights=saliency)},
            said=said,
            location=self.cells[mine],
            energy=10 * saliency[:, 0] + 1,
        )

    def looks(self, output: MultisetOutput) -> tuple[Look, ...]:
        active = (output.said == 10).cumsum(1) == 0
        return (Look("covert", "soft", "multiplier", output.acts["saliency"].weights, frame=self.frame, active=active),)
