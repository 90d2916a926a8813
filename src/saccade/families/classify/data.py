"""Pictures with one label each: folders, tables, CIFAR-10 and generated sets, split by split.

================ ===================================================================================================
READER:PATH       ``folder``, ``csv``, ``coco`` … (:mod:`.readers`): picture files
cifar10[:FOLDER]  60,000 pictures of 32 × 32 kept as bytes, :mod:`.cifar`
GENERATORS        pictures that are drawn, by name
================ ===================================================================================================

Every source has the same face (:class:`Source`); :class:`LabelData` varies training pictures on top of it.

The generated set ``details``: pictures whose class depends on a small detail, with the detail as evidence.

What they show and how little a coarse view tells is in :mod:`saccade.data.details`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Protocol, cast

import torch
from torch import Tensor

from saccade.config import Seed, Within, from_dict
from saccade.data import details
from saccade.data.details import SIZE, DetailLayout, render_details, sample_details
from saccade.data.pictures.augment import Augmentation, Shift, augment, shifted
from saccade.data.pictures.evidence import carried
from saccade.data.pictures.image_split import ImageSplit
from saccade.data.pictures.labelled import DrawnPictures, DrawnSplit, LabelledBatch
from saccade.data.pictures.reading import SIDE_LIMIT, as_float
from saccade.data.tables.references import check_reference, read_reference
from saccade.data.tables.sampling import checked_numbers, first_numbers
from saccade.data.tables.splits import Split
from saccade.data.tables.table import Table
from saccade.errors import ConfigError, DataError
from saccade.families.classify.cifar import CLASSES, CifarPictures
from saccade.families.classify.cifar import NAME as CIFAR
from saccade.families.classify.readers import LABEL_READERS
from saccade.geometry import Size

DETAILS = "details"


@dataclass(frozen=True)
class Details(DrawnPictures):
    """Pictures of 224×224 pixels in twelve classes."""

    name: str = DETAILS
    side: int = SIZE
    """They have one size, for which the stripes are made."""

    answers: ClassVar[tuple[str, ...]] = details.CLASSES

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.side != SIZE:
            raise ValueError(f"size: pictures of '{DETAILS}' are {SIZE} × {SIZE}, found {self.side}; set it to {SIZE}")

    def layout(self, seed: int, numbers: Tensor) -> DetailLayout:
        """What the pictures ``numbers`` (B,) of the stream ``seed`` show, to be changed and drawn again."""
        return sample_details(seed, numbers)

    def draw(self, seed: int, numbers: Tensor) -> LabelledBatch:
        """The pictures ``numbers`` (B,) of the stream ``seed`` as bytes, with the pixels of the mark."""
        return drawn(self.layout(seed, numbers))


def drawn(layout: DetailLayout) -> LabelledBatch:
    """The pictures of a layout (B,3,H,W) as bytes, their classes, and the pixels of the mark (B,H,W)."""
    return LabelledBatch(render_details(layout), layout.label, layout.masks)


GENERATORS: dict[str, type[DrawnPictures]] = {DETAILS: Details}
"""Generated sets by name."""


class Source(Protocol):
    """One split of pictures by number."""

    answers: tuple[str, ...]
    """What the labels are called, by number."""

    @property
    def size(self) -> int | None:
        """Number of pictures; None for a stream without end."""

    def take(self, numbers: Tensor) -> LabelledBatch:
        """The pictures ``numbers`` (B,), all in range: float in 0..1 or bytes, with evidence where it is known."""


class LabelFiles(ImageSplit):
    """The pictures of a table; arguments as of :class:`ImageSplit`."""

    def __init__(self, *arguments: Any, **how: Any) -> None:
        super().__init__(*arguments, **how)
        self._label = self.ids(self.answers, lambda row: row.label)  # (N,)

    def take(self, numbers: Tensor) -> LabelledBatch:
        """The pictures ``numbers`` (B,), with evidence where any picture of the split has some."""
        numbers = self.numbers(numbers)
        evidence = self.marks(numbers).evidence() if self.has_evidence else None  # (B,H,W)
        return LabelledBatch(self.images(numbers)[0], self._label[numbers], evidence)


@dataclass(frozen=True)
class LabelDataConfig:
    """Which pictures, and how they are prepared."""

    name: str = CIFAR
    """``cifar10``, ``cifar10:FOLDER``, a generated set, or READER:PATH."""
    size: Annotated[Size, Within(1, SIDE_LIMIT)] = (32, 32)
    """(height, width) of the network input."""
    seed: Seed = 0
    """Seed of generated pictures."""
    shift: Shift | None = None
    """Move and mirror training pictures by whole pixels; None: not at all."""
    augment: Augmentation | None = None
    """Resample training pictures; None: not at all. Either this or ``shift``."""
    hold_out: bool = True
    """For CIFAR-10: whether val, every tenth training picture, is left out of training."""
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of the reader or of the generated set."""
    cache_mb: Annotated[int, Within(0)] = 4096
    """Decoded pictures of a split kept on the device at most; 7,000 of 224 × 224 need 1,010."""

    def __post_init__(self) -> None:
        if self.shift is not None and self.augment is not None:
            raise ConfigError("shift and augment both change training pictures; give one of them")
        if self.is_generated:
            self.drawn()
        elif self.is_cifar:
            if self.options:
                raise ConfigError(f"options: {CIFAR} has none, found {', '.join(self.options)}; leave them out")
        else:
            check_reference(self.name, LABEL_READERS, self.options, (CIFAR, *GENERATORS))

    @property
    def is_generated(self) -> bool:
        """Whether the pictures are drawn."""
        return self.name in GENERATORS

    @property
    def is_cifar(self) -> bool:
        """Whether these are the pictures of CIFAR-10."""
        return self.name.partition(":")[0] == CIFAR

    @property
    def is_table(self) -> bool:
        """Whether there is a table of files."""
        return not self.is_generated and not self.is_cifar

    @property
    def answers(self) -> tuple[str, ...]:
        """What the labels are called, by number; not of a table, which must be read first."""
        return CLASSES if self.is_cifar else self.drawn().answers

    @property
    def learns_val(self) -> bool:
        """Whether val is a part of the pictures that are learned from."""
        return self.is_cifar and not self.hold_out

    @property
    def remark(self) -> str:
        """What must be known of the splits before a score of val is read; empty where there is nothing."""
        if not self.learns_val:
            return ""
        return f"{CIFAR}: val is a part of the 50,000 pictures that are learned from; choose nothing by its scores"

    def drawn(self) -> DrawnPictures:
        """The generated set: its ``side`` is the height of the network input, unless the options say another."""
        settings = {"name": self.name, "seed": self.seed, "side": self.size[0], **self.options}
        return from_dict(GENERATORS[self.name], settings, where="options")


def read_table(config: LabelDataConfig) -> Table | None:
    """The rows of a table; None of other data."""
    return read_reference(config.name, LABEL_READERS, config.options) if config.is_table else None


class LabelData:
    """One split of pictures and their labels: numbers of pictures to batches.

    Args:
        config: which pictures.
        split: train, val or test.
        device: where pictures are made or kept.
        table: the rows of ``config``, where they are read already.
        answers: the labels of a trained model, in its order; those of the data if not given.
        progress: called with (pictures decoded, pictures in all).
    """

    def __init__(
        self,
        config: LabelDataConfig,
        split: Split,
        device: torch.device | str = "cpu",
        table: Table | None = None,
        answers: Sequence[str] | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.config, self.split, self.device = config, split, torch.device(device)
        self.source: Source
        if config.is_table:
            table = read_table(config) if table is None else table
            self.source = LabelFiles(
                table, split, config.size, device, answers=answers, cache_mb=config.cache_mb, progress=progress
            )
        elif config.is_generated:
            self.source = DrawnSplit(config.drawn(), split, device)
        else:
            self.source = CifarPictures(config.name, split, config.size, self.device, hold_out=config.hold_out)
        self.size, self.answers = self.source.size, self.source.answers
        if answers is not None and tuple(answers) != self.answers:
            mine, theirs = (", ".join(words[:5]) for words in (self.answers, tuple(answers)))
            raise DataError(
                f"{config.name}: its labels are {mine}, …; those of the model are {theirs}, …; name other data"
            )

    def __len__(self) -> int:
        return cast(int, self.size)  # training scenes have no end and no length

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of at most ``limit`` pictures: of files a sample, else the first."""
        if isinstance(self.source, LabelFiles):
            return self.source.sampled(limit)
        return first_numbers(self.size, limit, self.split)

    def take(self, indices: Tensor, vary: int | None = None) -> LabelledBatch:
        """The pictures ``indices`` (B,), in that order, float in 0..1.

        Args:
            indices: numbers of pictures.
            vary: for training, vary the pictures by this seed, as ``config`` says; evidence goes with its pixels, but
                not where pictures are shifted.
        """
        found = self.as_kept(indices, vary)
        images = found.images if found.images.is_floating_point() else as_float(found.images)
        evidence = found.evidence
        if vary is not None and self.config.augment is not None:
            images, frames = augment(images, self.config.augment, vary)
            evidence = None if evidence is None else carried(evidence, frames)
        return LabelledBatch(images, found.label, evidence)

    def as_kept(self, indices: Tensor, vary: int | None = None) -> LabelledBatch:
        """As :meth:`take`, but before anything that needs floats: bytes stay bytes, which are a quarter as many."""
        found = self.source.take(checked_numbers(indices, self.size, self.split, "pictures"))
        if vary is None or self.config.shift is None:
            return found
        images = found.images
        if images.is_floating_point():
            images = (images * 255).round().to(torch.uint8)
        return LabelledBatch(shifted(images, self.config.shift, vary), found.label)
