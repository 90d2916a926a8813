"""Reads pictures for a family: files, PIL images, arrays and tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor

from saccade.data.pictures.decoding import SUFFIXES
from saccade.data.pictures.reading import Picture, Source, prepare, read_picture, stream_pictures
from saccade.errors import CheckpointError, DataError
from saccade.families.reading import InputReader, Prepared, ReadItem
from saccade.models.facts import ModelFacts


class Pictures(InputReader):
    """How pictures are read."""

    thing = "picture"
    suffixes = SUFFIXES

    def read(self, source: Source) -> Picture:
        """One picture."""
        return read_picture(source)

    def stream(
        self, sources: Iterable[Source], batch: int, on_bad: Callable[[Source, DataError], None] | None = None
    ) -> Iterator[Sequence[Picture]]:
        """Pictures in lists of at most ``batch``, fewer when they are very large."""
        return stream_pictures(sources, batch, on_bad)

    def prepare(self, items: Sequence[Picture], facts: ModelFacts) -> Prepared:
        """The pictures laid into the network input: one tensor (B,3,H,W)."""
        if (wanted := facts.preprocessing) is None:
            raise CheckpointError(f"'{facts.architecture}' has no preprocessing, so its input size is unknown")
        inputs, canvas, sizes = zip(*(prepare(picture, wanted.size, wanted.fill) for picture in items))
        stacked = torch.stack(inputs)  # (B,3,H,W)
        # With the channels together a CPU's convolutions are twice as fast.
        stacked = stacked.to(memory_format=torch.channels_last)
        return Prepared((stacked,), tuple(map(ReadItem, items, canvas, sizes)))

    def examples(self, count: int, facts: ModelFacts, seed: int) -> dict[str, Tensor]:
        """Noisy pictures (B,3,H,W), bright ones and dark ones."""
        if facts.preprocessing is None:
            raise CheckpointError(f"'{facts.architecture}' has no preprocessing, so its input size is unknown")
        generator = torch.Generator().manual_seed(seed)
        images = torch.rand(count, 3, *facts.preprocessing.size, generator=generator)
        return {"images": images * torch.rand(count, 3, 1, 1, generator=generator)}

    def input_spec(self, facts: ModelFacts) -> dict[str, object]:
        """Size, border and colours of the network input."""
        if facts.preprocessing is None:
            return {}
        return {
            "size": list(facts.preprocessing.size),
            "fill": facts.preprocessing.fill,
            "colours": "RGB",
            "range": [0.0, 1.0],
            "fit": "resized undistorted to fit inside (bilinear, antialiased), centred, the border filled",
        }


PICTURES = Pictures()
