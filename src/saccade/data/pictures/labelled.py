"""Generated pictures with one label each, and where it can be seen: picture i is a function of (seed, i).

A family writes a subclass of :class:`DrawnPictures` that says how pictures are drawn; its fields are settings. Draw by
counter (:mod:`saccade.data.scenes.hashing`), so that a picture does not depend on the batch it is made in.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from PIL import Image
from torch import Tensor

from saccade.config import Seed
from saccade.data.examples import SPLITS, Example, Split, first_numbers, seen_masks, to_device
from saccade.data.pictures.reading import SIDE_LIMIT, as_float
from saccade.data.scenes.hashing import derive_seed
from saccade.errors import DataError, OutputError
from saccade.files import folder_in_place
from saccade.geometry import Size
from saccade.progress import OnProgress, no_progress

# Pictures of each split; training never ends.
SIZES: dict[Split, int | None] = {"train": None, "val": 1_000, "test": 2_000}


@dataclass(frozen=True, eq=False)
class LabelledBatch:
    """Pictures, their labels, and where these can be seen."""

    images: Tensor  # (B,3,H,W) float in 0..1, or bytes
    label: Tensor  # (B,) number of the right answer
    evidence: Tensor | None = None  # (B,H,W) bool: the pixels that show it; None if not known

    def __len__(self) -> int:
        return len(self.label)

    def in_float(self) -> LabelledBatch:
        """The same with pictures in 0..1."""
        return self if self.images.is_floating_point() else replace(self, images=as_float(self.images))


@dataclass(frozen=True)
class DrawnPictures(ABC):
    """Settings of generated pictures, and how they are drawn."""

    name: str
    """Name of the generator, as users type it."""
    seed: Seed = 0
    side: int = 64
    """Side of a picture, in pixels."""

    answers: ClassVar[tuple[str, ...]]
    """What the labels are called, by number."""
    is_generated: ClassVar[bool] = True

    def __post_init__(self) -> None:  # a subclass may give the field another default, and so no bounds
        if not 1 <= self.side <= SIDE_LIMIT:
            raise ValueError(f"side must lie in 1 .. {SIDE_LIMIT}, found {self.side}")

    @abstractmethod
    def draw(self, seed: int, numbers: Tensor) -> LabelledBatch:
        """The pictures ``numbers`` (B,) of the stream ``seed``, on the device of ``numbers``."""

    @property
    def size(self) -> Size:
        """(height, width) of a picture."""
        return self.side, self.side


class DrawnSplit:
    """One split of generated pictures, by number."""

    def __init__(self, pictures: DrawnPictures, split: Split, device: torch.device | str = "cpu") -> None:
        self.pictures, self.split, self.device = pictures, split, torch.device(device)
        self.size = SIZES[split]
        self.stream = derive_seed(pictures.seed, SPLITS.index(split))  # The seed from which its pictures are drawn
        self.answers = pictures.answers  # What the labels are called, by number

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of the first ``limit`` pictures; None or 0: of all."""
        return first_numbers(self.size, limit, self.split)

    def take(self, indices: Tensor) -> LabelledBatch:
        """The pictures ``indices`` (B,), in that order."""
        return self.pictures.draw(self.stream, to_device(indices, self.device))

    def described(self) -> dict[str, object]:
        """The name of the generator."""
        return {"data": self.pictures.name}

    def shown(self, count: int) -> list[Example]:
        """The first ``count`` pictures with their labels."""
        return label_examples(self, count)

    def write(self, numbers: range, out: Path, on_progress: OnProgress = no_progress) -> Path:
        """Write these pictures; each line holds image, label, box of the evidence, seed, split and index."""

        def make(some: range, files: list[str]) -> Written:
            batch = self.take(torch.tensor(some))
            labels = [self.answers[label] for label in batch.label.tolist()]
            boxes = [None] * len(batch) if batch.evidence is None else [_box(mask) for mask in batch.evidence]
            images = batch.images  # bytes already, or float in 0..1
            return (images * 255).round().byte() if images.is_floating_point() else images, [
                {"image": file, "label": label, "box": box, "seed": self.pictures.seed, "split": self.split, "index": i}
                for i, file, label, box in zip(some, files, labels, boxes)
            ]

        return write_pictures(make, f"{self.pictures.name} {self.split}", numbers, out, on_progress, length=self.size)


def label_examples(data: Any, count: int) -> list[Example]:
    """The first ``count`` pictures of a split with their labels."""
    batch = data.take(torch.arange(count if data.size is None else min(count, data.size))).in_float()
    return [
        Example(image, data.answers[label], () if batch.evidence is None else seen_masks(batch.evidence[at][None]))
        for at, (image, label) in enumerate(zip(batch.images, batch.label.tolist()))
    ]


def _box(mask: Tensor) -> list[int] | None:
    if not bool(mask.any()):
        return None
    rows, columns = mask.any(1).nonzero(), mask.any(0).nonzero()
    return [int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1]


_BATCH = 256

Written = tuple[Tensor, list[dict[str, object]]]  # Pictures (B,3,H,W) uint8, and what the line of each says


def check_new(out_dir: Path) -> None:
    """Refuse a folder that holds something, before any picture is made."""
    if out_dir.exists() and (not out_dir.is_dir() or any(out_dir.iterdir())):
        raise OutputError(f"{out_dir}: exists and is not an empty folder; name another, or empty it")


def write_pictures(
    make: Callable[[range, list[str]], Written],
    what: str,
    numbers: range,
    out_dir: Path,
    on_progress: OnProgress,
    *,
    length: int | None,
) -> Path:
    """Write the pictures ``numbers``, all or nothing, to a new or empty folder, and return it.

    ``make`` gives the pictures of some numbers and files; ``what`` is the data, which has ``length`` pictures (None:
    without end).
    """
    check_new(out_dir)
    if length is not None and numbers.stop > length:
        wanted = f"asked for {numbers.start}..{numbers.stop - 1}"
        raise DataError(f"{what} has {length} scenes, {wanted}; a training split of fresh scenes has no end")
    with (
        folder_in_place(out_dir, durable=False) as place,
        (place / "scenes.jsonl").open("w", encoding="utf-8") as lines,
    ):
        for first in range(numbers.start, numbers.stop, _BATCH):
            batch = range(first, min(first + _BATCH, numbers.stop))
            files = [f"{number:08d}.png" for number in batch]
            for file, image, facts in zip(files, *make(batch, files)):
                Image.fromarray(image.permute(1, 2, 0).numpy()).save(place / file)
                lines.write(json.dumps(facts) + "\n")
            on_progress("pictures", batch.stop - numbers.start, len(numbers))
    return out_dir
