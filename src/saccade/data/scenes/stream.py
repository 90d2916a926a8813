"""Scenes by number, made in large aligned chunks; those last used stay on the device as bytes, up to a limit.

Making thousands of scenes at once costs a fraction of making them batch by batch, and a finite set needs the same
scenes in every epoch. A batch of neighbours is a slice of its chunk. On a GPU the next chunk of an endless stream is
made while this one is used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from saccade.data.examples import SPLITS, Split, as_rows, checked_split, first_numbers
from saccade.data.pictures.labelled import Written, write_pictures
from saccade.data.scenes.drawing import render
from saccade.data.scenes.glyphs import GlyphSet, glyphs_for
from saccade.data.scenes.hashing import derive_seed
from saccade.data.scenes.layout import Layout, PictureSpec, SceneLayout, SceneSpec, join_layouts
from saccade.data.scenes.sampler import sample_layout
from saccade.progress import OnProgress

CACHE_BYTES = 256 << 20  # limit for the pictures kept; at least one chunk always is
_CHUNK = {
    "cpu": 512,
    "cuda": 8192,
}  # scenes made at once; without kernels a GPU needs some 3 GB for a moment to make 8192
_SETTLED = 16  # batches before work in the background begins: the first steps compile, and both at once may hang
_FEW = 8  # fewer scenes than this are a look at single pictures, not a pass through the set


class GlyphStream(ABC, Generic[Layout]):
    """Scene numbers to layouts and pictures; what kind of scenes, a subclass says. ``length`` None: without end."""

    def __init__(
        self,
        spec: PictureSpec,
        glyphs: GlyphSet,
        seed: int,
        device: torch.device | str = "cpu",
        *,
        length: int | None = None,
    ) -> None:
        self.spec, self.seed, self.length = spec, seed, length
        self.device = torch.device(device)
        self.glyphs = glyphs.to(self.device)
        chunk = _CHUNK.get(self.device.type, 512)
        self.chunk = chunk if length is None else min(chunk, length)
        self._kept_at_most = max(1, CACHE_BYTES // (self.chunk * 3 * spec.size**2))
        self._chunks: OrderedDict[int, tuple[Layout, Tensor]] = OrderedDict()
        # A CPU has no hands free while it trains, and a finite set is soon made.
        self._ahead = Prefetcher(self._make, self.device) if length is None and self.device.type == "cuda" else None
        self._asked = 0

    @abstractmethod
    def _draw(self, numbers: Tensor) -> tuple[Layout, Tensor]:
        """The scenes ``numbers`` (B,) of the stream, made now: layout and pictures (B, 3, H, W) uint8."""

    def scenes(self, numbers: Tensor) -> tuple[Layout, Tensor]:
        """The scenes ``numbers`` (B,), repeats allowed: layout and pictures (B, 3, H, W) uint8, for reading only."""
        self._asked += 1
        numbers = numbers.cpu()  # chunk arithmetic is host work
        chunks = torch.unique(numbers // self.chunk).tolist()
        missing = [chunk for chunk in chunks if chunk not in self._chunks]
        if missing and not self._worth_making(missing, numbers):
            wanted, row = torch.unique(numbers, return_inverse=True)
            layout, images = self._draw(wanted.to(self.device))
        else:
            layout, images, row = self._from_chunks(chunks, numbers)
            well_in = int(numbers.max()) % self.chunk >= self.chunk // 4
            if self._ahead is not None and self._asked > _SETTLED and well_in:
                self._ahead.start(chunks[-1] + 1)
        rows = as_rows(row, self.device)
        return layout[rows], images[rows]

    def write_scenes(
        self,
        facts: Callable[[Layout, str], dict[str, object]],
        what: str,
        numbers: range,
        out: Path,
        on_progress: OnProgress,
    ) -> Path:
        """Write scenes: pictures, and a line of ``facts`` (layout of the one scene, file) for each."""

        def make(batch: range, files: list[str]) -> Written:
            layout, images = self.scenes(torch.tensor(batch))
            return images, [facts(layout[scene : scene + 1], file) for scene, file in enumerate(files)]

        return write_pictures(make, what, numbers, out, on_progress, length=self.length)

    def _from_chunks(self, chunks: list[int], numbers: Tensor) -> tuple[Layout, Tensor, Tensor]:
        """Layout and pictures in which the scenes ``numbers`` (B,) are, and in which rows (B,)."""
        if len(chunks) == 1:  # nearly every batch of training
            layout, images = self._chunk(chunks[0])
            return layout, images, numbers - chunks[0] * self.chunk
        wanted, row = torch.unique(numbers, return_inverse=True)
        parts = [self._chunk(chunk) for chunk in chunks]
        places = [(wanted[wanted // self.chunk == chunk] - chunk * self.chunk).to(self.device) for chunk in chunks]
        layout = join_layouts([part[0][place] for part, place in zip(parts, places)])
        return layout, torch.cat([part[1][place] for part, place in zip(parts, places)]), row

    def _worth_making(self, missing: list[int], numbers: Tensor) -> bool:
        """Whether to make whole chunks: all can be kept, or the batch is of neighbours and more will follow."""
        if self.length is not None and -(-self.length // self.chunk) <= self._kept_at_most:
            return True
        wanted = len(torch.unique(numbers))
        return wanted >= _FEW and len(missing) * self.chunk <= wanted + 2 * self.chunk

    def _chunk(self, number: int) -> tuple[Layout, Tensor]:
        if number not in self._chunks:
            layout, images = self._make(number) if self._ahead is None else self._ahead.take(number)
            if self._ahead is not None:
                # Memory that another CUDA stream has filled is not given back to it before this one is done with it:
                # batches are slices of it, and may be kept for longer than the chunk is.
                stream = torch.cuda.current_stream(self.device)
                for part in (*layout.tensors().values(), images):
                    part.record_stream(stream)
            self._chunks[number] = layout, images
            while len(self._chunks) > self._kept_at_most:
                self._chunks.popitem(last=False)
        self._chunks.move_to_end(number)
        return self._chunks[number]

    def _make(self, number: int) -> tuple[Layout, Tensor]:
        start = number * self.chunk
        stop = start + self.chunk if self.length is None else min(start + self.chunk, self.length)
        return self._draw(torch.arange(start, stop, device=self.device))


class SplitStream(GlyphStream[Layout]):
    """One split of a set of scenes with a name, settings and glyphs; a subclass says what is true of a scene.

    ``stream`` is a number of the set, so that no other one draws the same scenes from a seed; a ``size`` of None has no
    end.
    """

    def __init__(
        self,
        config: Any,
        split: Split,
        spec: PictureSpec,
        stream: int,
        size: int | None,
        device: torch.device | str = "cpu",
        *,
        allow_pack: bool = False,
    ) -> None:
        self.config, self.split, self.size = config, checked_split(split), size
        glyphs = glyphs_for(split, config.glyphs, allow_pack=allow_pack)
        seed = derive_seed(config.seed, SPLITS.index(split), stream)
        super().__init__(spec, glyphs, seed, device, length=size)

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of the first ``limit`` scenes."""
        return first_numbers(self.size, limit, self.split)

    def described(self) -> dict[str, object]:
        """The name of the set, what its digits are made of, and the seed."""
        return {"data": self.config.name, "glyphs": self.glyphs.name, "seed": self.config.seed}

    @abstractmethod
    def truth(self, layout: Layout) -> dict[str, object]:
        """What is true of the one scene of a layout, as plain values."""

    def write(self, numbers: range, out: Path, on_progress: OnProgress) -> Path:
        """Write these scenes; each line holds image, what is true of it, seed, split, index and glyphs."""

        def facts(layout: Layout, file: str) -> dict[str, object]:
            source = {"seed": self.config.seed, "split": self.split, "index": int(layout.index)}
            return {"image": file, **self.truth(layout), **source, "glyphs": self.glyphs.name}

        return self.write_scenes(facts, f"{self.config.name} {self.split}", numbers, out, on_progress)


class SceneStream(GlyphStream[SceneLayout]):
    """Scenes of coloured digits."""

    spec: SceneSpec

    def _draw(self, numbers: Tensor) -> tuple[SceneLayout, Tensor]:
        layout = sample_layout(self.spec, self.glyphs, self.seed, numbers)
        return layout, render(layout)


Thing = TypeVar("Thing")


class Prefetcher(Generic[Thing]):
    """Makes one numbered thing in advance on a device; ``make`` is a function of the number alone."""

    def __init__(self, make: Callable[[int], Thing], device: torch.device) -> None:
        self._make, self._device = make, device
        self._worker: ThreadPoolExecutor | None = None
        self._stream: torch.cuda.Stream | None = None
        self._coming: tuple[int, Future[tuple[Thing, torch.cuda.Event | None]]] | None = None

    def start(self, number: int) -> None:
        """Begin to make ``number``, unless that has begun already."""
        if self._coming is not None and self._coming[0] == number:
            return
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="ahead")
        now = None
        if self._device.type == "cuda":
            # torch has no types here
            self._stream = self._stream or torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
            now = torch.cuda.current_stream(self._device).record_event()
        self._coming = number, self._worker.submit(self._work, number, now)

    def take(self, number: int) -> Thing:
        """The thing called ``number``: the one begun, once it is ready, or one made now."""
        coming, self._coming = self._coming, None
        if coming is None or coming[0] != number:
            return self._make(number)
        item, ready = coming[1].result()
        if ready is not None:
            torch.cuda.current_stream(self._device).wait_event(ready)
        return item

    def _work(self, number: int, not_before: torch.cuda.Event | None) -> tuple[Thing, torch.cuda.Event | None]:
        with torch.no_grad(), torch.cuda.stream(self._stream) if self._stream is not None else nullcontext():
            if self._stream is not None and not_before is not None:
                self._stream.wait_event(not_before)
            item = self._make(number)
            return item, None if self._stream is None else self._stream.record_event()
