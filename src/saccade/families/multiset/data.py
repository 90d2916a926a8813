"""Pictures with a set, multiset or list of labels: generated scenes, SVHN, and your own tables.

=============== ====================================================================================================
mnist-multiset   1 to 4 digits that may repeat, ``scenes.py``
mnist-set        1 to 4 different digits
mnist-single     one digit of such a scene: what a backbone learns digits from
READER:PATH      your own tables and folders, and svhn (``readers.py``)
=============== ====================================================================================================

Protocols of generated scenes:

========== =========================================================================================================
authors     the paper's 60,000 pictures: 55,000 to learn from, the same for every seed, and 5,000 to choose weights by;
            10,000 to test. The authors' generator takes the glyphs of all of them from the training part of MNIST;
            which glyphs each split has here, ``glyphs`` says
unlimited   training never ends: picture i is scene i. Val has 5,000 scenes, test the same 10,000
========== =========================================================================================================

As in the paper, no scene of val and test is empty unless the option ``empty_held_out`` asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, cast, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.config import Seed, Share, Within, from_dict
from saccade.data.examples import Example, seen_masks
from saccade.data.pictures.augment import Augmentation, augment
from saccade.data.pictures.image_split import ImageSplit
from saccade.data.pictures.reading import SIDE_LIMIT, as_float
from saccade.data.scenes.glyphs import CLASSES, GlyphPolicy, glyphs_for
from saccade.data.scenes.hashing import derive_seed, hash_u32
from saccade.data.scenes.layout import GlyphLayout
from saccade.data.tables.references import check_reference, read_reference
from saccade.data.tables.sampling import first_numbers
from saccade.data.tables.splits import SPLITS, Split, checked_split
from saccade.data.tables.table import Table
from saccade.errors import DataError
from saccade.families.multiset.readers import MULTISET_READERS
from saccade.families.multiset.scenes import MultisetSpec, MultisetStream
from saccade.geometry import Size, apply_to_boxes, invert, touched

SCENES: dict[str, dict[str, bool]] = {
    "mnist-multiset": {},
    "mnist-set": {"repeats": False},
    "mnist-single": {"repeats": False, "alone": True},
}
"""Generated sets by name: in what they differ from the defaults of ``MultisetSpec``."""

_STREAMS = {"mnist-multiset": 0, "mnist-set": 1, "mnist-single": 2}
"""A number for each set, part of the seed of its scenes. A set keeps its number for good: with another one it would be
other scenes. A new set takes a number that is not here, and not 7, which is that of scenes with captions."""

ALONE, AMONG = "mnist-single", "mnist-set"
"""What a backbone learns digits from: lone ones, or each beside others."""

_NO_BOX = (float("nan"),) * 4
DIGITS = tuple(str(digit) for digit in range(CLASSES))

MultisetProtocol = Literal["authors", "unlimited"]
PROTOCOLS = get_args(MultisetProtocol)
"""Sizes of generated splits by name."""

SIZES: dict[str, dict[str, int | None]] = {
    "authors": {"train": 55_000, "val": 5_000, "test": 10_000},
    "unlimited": {"train": None, "val": 5_000, "test": 10_000},
}
"""Scenes by protocol and split; None: without end."""


@dataclass(frozen=True)
class SceneOptions:
    """Options of generated scenes."""

    clutter: Annotated[int, Within(0, 400)] = 8
    """Patches of clutter in a scene."""
    empty_held_out: Share = 0.0
    """Share of empty scenes in val and test."""
    among: bool = False
    """Teach the backbone digits among others: scenes of different digits, one of the labels each time. Else scenes of
    one digit, as the paper has it."""


@dataclass(frozen=True)
class MultisetDataConfig:
    """Which pictures."""

    name: str = "mnist-multiset"
    """A key of ``SCENES``, or READER:PATH."""
    glyphs: GlyphPolicy = "disjoint"
    """Which digits each split of a generated set is made of, see ``glyphs.py``."""
    size: Annotated[int, Within(1, SIDE_LIMIT)] = 100
    """Side of the pictures: of generated scenes, or of the square that files are laid into."""
    empty: Share = 0.03
    """Share of empty scenes in generated training; mnist-single has none."""
    protocol: MultisetProtocol = "unlimited"
    """How many scenes each split of a generated set has, see the module; files have as many as there are."""
    seed: Seed = 0
    """Seed of generated scenes."""
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of the reader, or of the scenes (``SceneOptions``)."""
    cache_mb: Annotated[int, Within(0)] = 4096
    """Decoded pictures of a split kept on the device at most; the 33,402 of SVHN need 300 at 56 × 56."""
    augment: Augmentation | None = None
    """How training pictures are varied; None: not at all."""

    def __post_init__(self) -> None:
        if self.is_generated:
            self.scenes("train")
            self.scenes("test")
        else:
            check_reference(self.name, MULTISET_READERS, self.options, SCENES)

    @property
    def is_generated(self) -> bool:
        """Whether the pictures are generated scenes."""
        return self.name in SCENES

    @property
    def teaches_objects(self) -> str:
        """The name of the pictures that a backbone learns objects from; those of files are these very ones.

        Never scenes where a digit may occur twice. What cells say is added up, so that of 3, 3, 8 nearly always 3 would
        be said, while it is drawn in two cases of three: cells would learn to know of one another, those between the
        digits most of all, and saliency would lie on them.
        """
        if not self.is_generated:
            return self.name
        return AMONG if from_dict(SceneOptions, self.options, where="options").among else ALONE

    def scenes(self, split: str) -> MultisetSpec:
        """How the scenes of a split are drawn."""
        options = from_dict(SceneOptions, self.options, where="options")
        kind = SCENES[self.name]
        empty = self.empty if split == "train" else options.empty_held_out
        return MultisetSpec(self.size, clutter=options.clutter, empty=0.0 if kind.get("alone") else empty, **kind)


def read_table(config: MultisetDataConfig) -> Table | None:
    """The rows of a table; None of generated scenes."""
    return None if config.is_generated else read_reference(config.name, MULTISET_READERS, config.options)


NO_LABEL = -1
"""Fills the columns of ``labels`` that a picture has no label for."""


@dataclass(frozen=True, eq=False)
class MultisetBatch:
    """Pictures with their labels, and where the evidence of each label is, in pixels of the pictures given."""

    images: Tensor
    """(B, 3, H, W) float32 in 0..1."""
    labels: Tensor
    """(B, M) numbers of classes, then −1."""
    picture: Tensor
    """(B,) number of the picture in its split."""
    boxes: Tensor = None  # type: ignore[assignment]  # NaN everywhere if not given
    """(B, M, 4) xyxy, NaN where a label has none and where there is no label."""
    layout: GlyphLayout | None = None
    """The scenes, where the pictures were generated."""
    slot: Tensor | None = None
    """(B, M) which object of its scene each label stands for."""

    def __post_init__(self) -> None:
        if self.boxes is None:
            nowhere = torch.full((*self.labels.shape, 4), float("nan"), device=self.labels.device)
            object.__setattr__(self, "boxes", nowhere)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def present(self) -> Tensor:
        """(B, M) bool: where there is a label."""
        return self.labels != NO_LABEL

    def counts(self, classes: int) -> Tensor:
        """(B, classes) int64: how often each class is on each picture."""
        counts = self.labels.new_zeros(len(self), classes + 1)
        return counts.scatter_add_(1, self.labels + 1, torch.ones_like(self.labels))[:, 1:]

    def masks(self) -> Tensor:
        """(B, M, H, W) bool: the pixels of each label's object, or those its box touches; none where none is known."""
        if self.layout is None or self.slot is None:
            return touched(self.boxes, (self.images.shape[-2], self.images.shape[-1]))
        rows = torch.arange(len(self), device=self.labels.device)[:, None]
        return self.layout.masks()[rows, self.slot] & self.present[..., None, None]

    def shuffled(self, order_seed: int) -> MultisetBatch:
        """The same pictures with the labels of each, and what belongs to them, in an order drawn from the seed."""
        column = torch.arange(self.labels.shape[1], device=self.labels.device)
        key = hash_u32(order_seed, self.picture[:, None], column)  # (B, M)
        order = torch.argsort(key.masked_fill(~self.present, 1 << 32), dim=1, stable=True)
        return replace(
            self,
            labels=self.labels.gather(1, order),
            boxes=self.boxes.gather(1, order[..., None].expand(-1, -1, 4)),
            slot=None if self.slot is None else self.slot.gather(1, order),
        )

    def framed(self, images: Tensor, frames: Tensor) -> MultisetBatch:
        """Other pictures of the same, where ``frames`` (B,2,3) lead from their pixels back to these; boxes follow."""
        boxes = apply_to_boxes(invert(frames)[:, None], self.boxes.double())  # (B,M,4)
        return replace(self, images=images, boxes=boxes.to(self.boxes.dtype), layout=None, slot=None)


def at_size(images: Tensor, size: Size) -> Tensor:
    """Pictures (B,3,H,W) at ``size``, as they are if they have it; the paper enlarges 100 × 100 to 224 × 224."""
    if tuple(images.shape[-2:]) == tuple(size):
        return images
    return F.interpolate(images, size, mode="bilinear", align_corners=False, antialias=True).clamp(0, 1)


def boxes_at_size(boxes: Tensor, images: Tensor, size: Size) -> Tensor:
    """Boxes (B,M,4) of pictures (B,3,H,W) where :func:`at_size` puts them."""
    height, width = images.shape[-2:]
    x, y = boxes.view(*boxes.shape[:-1], 2, 2).unbind(-1)  # (B,M,2) each
    return torch.stack([x * (size[1] / width), y * (size[0] / height)], dim=-1).flatten(-2)  # (B,M,4)


class MultisetData:
    """One split of pictures and their labels: numbers of pictures to batches.

    Args:
        config: which pictures.
        split: train, val or test.
        device: where pictures are made or kept.
        table: the rows of ``config``, where they are read already.
        answers: the labels of a trained model, in its order; those of the data if not given.
        most: how many labels that model was trained to say at most.
        allow_pack: let the test split of generated scenes use the shipped glyphs when MNIST is not there.
        progress: called with (pictures decoded, pictures in all).
    """

    def __init__(
        self,
        config: MultisetDataConfig,
        split: Split,
        device: torch.device | str = "cpu",
        table: Table | None = None,
        answers: Sequence[str] | None = None,
        most: int | None = None,
        *,
        allow_pack: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.config, self.split, self.device = config, checked_split(split), torch.device(device)
        self.source: MultisetScenes | MultisetFiles
        if config.is_generated:
            self.source = MultisetScenes(config, split, self.device, allow_pack=allow_pack)
            if answers is not None and tuple(answers) != DIGITS:
                raise DataError(f"{config.name}: its labels are 0..9, those of the model are {', '.join(answers)}")
        else:
            self.source = MultisetFiles(
                read_table(config) if table is None else table,
                split,
                (config.size, config.size),
                self.device,
                answers=answers,
                most=most,
                cache_mb=config.cache_mb,
                progress=progress,
            )
        self.size, self.answers = self.source.size, self.source.answers
        self.is_list = self.source.is_list
        """Whether the order of the labels is part of the answer."""
        self.asks_objects = False
        """Whether single objects are learned from these pictures."""

    def __len__(self) -> int:
        return cast(int, self.size)  # training scenes have no end and no length

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers of at most ``limit`` pictures: of files a sample, else the first."""
        if isinstance(self.source, MultisetFiles):
            return self.source.sampled(limit)
        return first_numbers(self.size, limit, self.split)

    def take(self, indices: Tensor, *, vary: int | None = None) -> MultisetBatch:
        """The pictures ``indices`` (B,), in that order, labels in reading order or as their table has them.

        Args:
            indices: numbers of pictures.
            vary: for training, vary the pictures by it, if ``config.augment`` says how.
        """
        batch = self.source.batch(indices.cpu())
        if vary is None or self.config.augment is None:
            return batch
        return batch.framed(*augment(batch.images, self.config.augment, vary))


class MultisetScenes(MultisetStream):
    """Generated scenes of one split by number; arguments as of :class:`MultisetData`."""

    answers, is_list = DIGITS, False

    def __init__(
        self, config: MultisetDataConfig, split: Split, device: torch.device, *, allow_pack: bool = False
    ) -> None:
        self.data_seed, self.split, self.size = config.seed, split, SIZES[config.protocol][split]
        glyphs = glyphs_for(split, config.glyphs, allow_pack=allow_pack)
        seed = derive_seed(config.seed, SPLITS.index(split), _STREAMS[config.name])
        super().__init__(config.scenes(split), glyphs, seed, device, length=self.size)

    def facts(self, layout: GlyphLayout, scene: int, file: str) -> dict[str, object]:
        """What is true of a ``scene`` of a layout, whose picture is ``file``; labels and boxes in reading order."""
        present = layout.present[scene]
        labels = [DIGITS[label] for label in layout.classes[scene][present].tolist()]
        named = {"image": file, "labels": labels, "boxes": layout.boxes[scene][present].tolist()}
        index = int(layout.index[scene])
        return {**named, "seed": self.data_seed, "split": self.split, "index": index, "glyphs": self.glyphs.name}

    def batch(self, numbers: Tensor) -> MultisetBatch:
        """The scenes ``numbers`` (B,), labels in reading order."""
        layout, images = self.scenes(numbers)
        boxes = layout.boxes.float().masked_fill(~layout.present[..., None], float("nan"))  # (B,N,4)
        slot = torch.arange(self.spec.slots, device=layout.device).expand(len(layout), -1).contiguous()  # (B,N)
        labels = layout.classes.masked_fill(~layout.present, NO_LABEL)  # (B,N)
        return MultisetBatch(as_float(images), labels, layout.index, boxes, layout, slot)


class MultisetFiles(ImageSplit):
    """The pictures of a table by number; arguments as of :class:`ImageSplit`."""

    def __init__(self, *arguments: Any, **how: Any) -> None:
        super().__init__(*arguments, **how)
        self.is_list = self.table.kind == "list"
        number_of = {label: number for number, label in enumerate(self.answers)}
        width = max(self.most, *(len(row.labels) for row in self.rows))
        labels = torch.full((self.size, width), NO_LABEL)  # (N,M)
        boxes = torch.full((self.size, width, 4), float("nan"), dtype=torch.float64)  # (N,M,4)
        for number, row in enumerate(self.rows):
            labels[number, : len(row.labels)] = torch.tensor([number_of[label] for label in row.labels]).long()
            if row.boxes:
                boxes[number, : len(row.boxes)] = torch.tensor([box or _NO_BOX for box in row.boxes]).double()
        picture = self.picture.cpu()
        size = self.pictures.image_size.cpu()[picture].double().flip(-1)  # (N,2) width and height
        boxes = boxes.clamp(min=0).minimum(size.repeat(1, 2)[:, None])  # NaN stays NaN
        to_input = invert(self.pictures.canvas.cpu()[picture])[:, None]  # (N,1,2,3)
        self._labels = labels.to(self.device)
        self._boxes = apply_to_boxes(to_input, boxes).float().to(self.device)  # (N,M,4)

    def batch(self, numbers: Tensor) -> MultisetBatch:
        """The pictures ``numbers`` (B,), labels as the table has them."""
        numbers = self.numbers(numbers)
        return MultisetBatch(self.images(numbers)[0], self._labels[numbers], numbers, self._boxes[numbers])


def examples(data: MultisetData, count: int) -> list[Example]:
    """The first ``count`` pictures with their labels."""
    batch = data.take(torch.arange(count if data.size is None else min(count, data.size)))
    words = [[data.answers[label] for label in row if label >= 0] for row in batch.labels.tolist()]
    truths = [", ".join(said) if data.is_list else f"{{{', '.join(sorted(said))}}}" for said in words]
    return [Example(*each) for each in zip(batch.images, truths, map(seen_masks, batch.masks()))]
