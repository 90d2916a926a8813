"""Pictures with one label each: folders, tables, CIFAR-10 and generated sets, split by split.

================ ===================================================================================================
READER:PATH       ``folder``, ``csv``, ``coco`` …, and ``cub`` (Wah et al. 2011, CNS-TR-2011-001): picture files
cifar10[:FOLDER]  60,000 pictures of 32 × 32 kept as bytes, :mod:`.cifar`
details           pictures whose class depends on a small detail, which is the evidence: :mod:`saccade.data.details`
================ ===================================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from saccade.config import Seed, Within, from_dict
from saccade.data import details
from saccade.data.details import SIZE, DetailLayout, render_details, sample_details
from saccade.data.examples import hashed_share
from saccade.data.pictures.augment import Augmentation, Shift, augment, shifted
from saccade.data.pictures.image_split import ImageSplit, carried
from saccade.data.pictures.labelled import DrawnPictures, LabelledBatch, label_examples
from saccade.data.pictures.reading import SIDE_LIMIT
from saccade.data.tables.published import CubFiles
from saccade.data.tables.readers import Reader, check_reference, own_readers
from saccade.data.tables.table import Columns, Found, Row, Table, TableOptions
from saccade.errors import ConfigError
from saccade.families.classify.cifar import CLASSES
from saccade.families.classify.cifar import NAME as CIFAR
from saccade.geometry import Size

DETAILS = "details"
COLUMNS = Columns()  # One label a picture; boxes and masks are evidence


def read_cub_species(path: Path, options: TableOptions) -> Table:
    """The birds in ``path``, the folder CUB_200_2011 or its parent: which of 200 species is it?

    A tenth of the official training pictures are val.
    """
    files = CubFiles(path)
    rows: list[Found] = []
    skipped: list[str] = []
    # Not in the order of the species, so that the first pictures of a split are a fair sample of it.
    for number, name in sorted(files.images.items(), key=lambda item: hashed_share(item[1])):
        image = files.folder / "images" / name
        if not image.is_file():
            skipped.append(f"no such picture: {image.name}")
            continue
        species = _in_words(files.species[files.species_of[number]])
        rows.append((image.name, Row(image, (species,), files.splits[number], box=files.boxes[number])))
    return Table.of(f"cub:{path}", rows, COLUMNS, skipped=skipped, strict=options.strict)


def _in_words(folder: str) -> str:
    """The name of a species from that of its folder.

    >>> _in_words("001.Black_footed_Albatross")
    'Black footed Albatross'
    """
    number, dot, name = folder.partition(".")
    return (name if dot and number.isdigit() else folder).replace("_", " ")


LABEL_READERS: dict[str, Reader] = {"cub": Reader(read_cub_species), **own_readers(COLUMNS)}


@dataclass(frozen=True)
class Details(DrawnPictures):
    """Pictures of 224×224 pixels in twelve classes."""

    name: str = DETAILS
    side: int = SIZE  # Fixed, as the stripes need it

    answers: ClassVar[tuple[str, ...]] = details.CLASSES

    def __post_init__(self) -> None:
        if self.side != SIZE:
            raise ValueError(f"size: pictures of '{DETAILS}' are {SIZE} × {SIZE}, found {self.side}; set it to {SIZE}")

    def draw(self, seed: int, numbers: Tensor) -> LabelledBatch:
        """The pictures ``numbers`` (B,) of the stream ``seed`` as bytes; the mark is the evidence."""
        return drawn(sample_details(seed, numbers))


def drawn(layout: DetailLayout) -> LabelledBatch:
    """The pictures (B,3,H,W) of a layout as bytes, their classes, and the pixels of the mark (B,H,W)."""
    return LabelledBatch(render_details(layout), layout.label, layout.masks)


class LabelFiles(ImageSplit):
    """The pictures of a table; ``how`` as of :class:`ImageSplit`."""

    def __init__(self, config: LabelDataConfig, table: Table, split: str, **how: Any) -> None:
        super().__init__(table, split, config.size, cache_mb=config.cache_mb, **how)
        self.label = self.ids(self.answers, lambda row: row.label)  # (N,)

    def take(self, indices: Tensor) -> LabelledBatch:
        """The pictures ``indices`` (B,), with evidence if any picture of the split has it."""
        numbers = indices.to(self.device)
        evidence = self.marks(numbers).evidence() if self.has_evidence else None  # (B,H,W)
        return LabelledBatch(self.images(numbers)[0], self.label[numbers], evidence)

    shown = label_examples


@dataclass(frozen=True)
class LabelDataConfig:
    """Which pictures, and how they are prepared."""

    name: str = CIFAR  # ``cifar10``, ``cifar10:FOLDER``, a generated set, or READER:PATH.
    size: Annotated[Size, Within(1, SIDE_LIMIT)] = (32, 32)  # (height, width) of the network input.
    seed: Seed = 0  # Seed of generated pictures.
    shift: Shift | None = None  # Move and mirror training pictures by whole pixels; None: not at all.
    augment: Augmentation | None = None  # Resample training pictures; None: not at all. Either this or ``shift``.
    hold_out: bool = True  # For CIFAR-10: whether every tenth training picture is val and left out of training.
    options: dict[str, Any] = field(default_factory=dict)  # Settings of the reader or of the generated set.
    cache_mb: Annotated[int, Within(0)] = 4096
    """Most decoded pictures of a split on the device in MB; 7,000 of 224 × 224 need 1,010."""

    def __post_init__(self) -> None:
        if self.shift is not None and self.augment is not None:
            raise ConfigError("shift and augment both change training pictures; give one of them")
        if self.is_generated:
            self.drawn()
        elif self.is_cifar:
            if self.options:
                raise ConfigError(f"options: {CIFAR} has none, found {', '.join(self.options)}; leave them out")
        else:
            check_reference(self.name, LABEL_READERS, self.options, (CIFAR, DETAILS))

    @property
    def is_generated(self) -> bool:
        """Whether the pictures are drawn."""
        return self.name == DETAILS

    @property
    def is_cifar(self) -> bool:
        """Whether these are the pictures of CIFAR-10."""
        return self.name.partition(":")[0] == CIFAR

    @property
    def answers(self) -> tuple[str, ...]:
        """The names of the labels; a table must be read first."""
        return CLASSES if self.is_cifar else self.drawn().answers

    @property
    def learns_val(self) -> bool:
        """Whether the model learns from val."""
        return self.is_cifar and not self.hold_out

    def drawn(self) -> Details:
        """The generated set; ``side`` is the input height, unless the options set it."""
        return from_dict(Details, {"seed": self.seed, "side": self.size[0], **self.options}, where="options")


def varied(batch: LabelledBatch, config: LabelDataConfig, seed: int) -> LabelledBatch:
    """Training pictures, varied as ``config`` says; evidence follows, except with ``shift``.

    Pictures that are not resampled stay bytes.
    """
    if config.shift is not None:
        images = batch.images
        if images.is_floating_point():
            images = (images * 255).round().to(torch.uint8)
        return LabelledBatch(shifted(images, config.shift, seed), batch.label)
    if config.augment is None:
        return batch
    images, frames = augment(batch.in_float().images, config.augment, seed)
    return LabelledBatch(images, batch.label, None if batch.evidence is None else carried(batch.evidence, frames))
