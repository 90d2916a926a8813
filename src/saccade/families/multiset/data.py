"""Pictures with a set, multiset or list of labels: generated scenes (``scenes.py``), SVHN, and your own tables.

``mnist-multiset`` has 1 to 4 digits that may repeat, ``mnist-set`` different ones, ``mnist-single`` one of them, from
which a backbone learns digits. Protocols of generated scenes:

========== =========================================================================================================
authors     the paper's 60,000 pictures: 55,000 to learn from, the same for every seed, and 5,000 to choose weights by;
            10,000 to test. The authors' generator takes the glyphs of all of them from the training part of MNIST;
            which glyphs each split has here, ``glyphs`` says
unlimited   training never ends: picture i is scene i. Val has 5,000 scenes, test the same 10,000
========== =========================================================================================================

As in the paper, no scene of val and test is empty unless the option ``empty_held_out`` asks for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.config import Seed, Share, Within, from_dict
from saccade.data.examples import Example, Split, seen_masks
from saccade.data.pictures.augment import Augmentation, augment
from saccade.data.pictures.image_split import ImageSplit
from saccade.data.pictures.reading import SIDE_LIMIT, as_float
from saccade.data.scenes.glyphs import CLASSES, GlyphPolicy
from saccade.data.scenes.hashing import hash_u32
from saccade.data.scenes.layout import GlyphLayout
from saccade.data.scenes.stream import SplitStream
from saccade.data.tables.readers import check_reference
from saccade.data.tables.table import Table
from saccade.families.multiset.readers import MULTISET_READERS
from saccade.families.multiset.scenes import MultisetSpec, paint, sample_multisets
from saccade.geometry import Size, apply_to_boxes, invert, touched
from saccade.losses.multiset import label_counts

# generated sets by name: in what they differ from the defaults of ``MultisetSpec``
SCENES: dict[str, dict[str, bool]] = {
    "mnist-multiset": {},
    "mnist-set": {"repeats": False},
    "mnist-single": {"repeats": False, "alone": True},
}

# A number for each set, part of the seed of its scenes: it never changes. 7 is that of scenes with captions.
_STREAMS = {"mnist-multiset": 0, "mnist-set": 1, "mnist-single": 2}

ALONE = "mnist-single"
_NO_BOX = (float("nan"),) * 4
DIGITS = tuple(str(digit) for digit in range(CLASSES))

MultisetProtocol = Literal["authors", "unlimited"]

# scenes by protocol and split; None: without end
SIZES: dict[str, dict[str, int | None]] = {
    "authors": {"train": 55_000, "val": 5_000, "test": 10_000},
    "unlimited": {"train": None, "val": 5_000, "test": 10_000},
}


@dataclass(frozen=True)
class SceneOptions:
    """Options of generated scenes."""

    clutter: Annotated[int, Within(0, 400)] = 8  # Patches of clutter
    empty_held_out: Share = 0.0  # Share of empty scenes in val and test
    # Teach the backbone with scenes of different digits, one label at a time; else with scenes of one digit, as in the
    # paper.
    among: bool = False


@dataclass(frozen=True)
class MultisetDataConfig:
    """Which pictures."""

    name: str = "mnist-multiset"  # A key of ``SCENES``, or READER:PATH.
    glyphs: GlyphPolicy = "disjoint"  # The digits of each split, see ``glyphs.py``.
    size: Annotated[int, Within(1, SIDE_LIMIT)] = 100  # Side of scenes, or of the square that files are fitted into.
    empty: Share = 0.03  # Share of empty scenes in generated training; mnist-single has none.
    protocol: MultisetProtocol = "unlimited"  # Number of generated scenes per split, see the module.
    seed: Seed = 0  # Seed of generated scenes.
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of the reader, or of the scenes (``SceneOptions``)."""
    cache_mb: Annotated[int, Within(0)] = 4096
    """Most decoded pictures of a split on the device in MB; the 33,402 of SVHN need 300 at 56 × 56."""
    augment: Augmentation | None = None  # How training pictures are varied; None: not at all.

    def __post_init__(self) -> None:
        if self.is_generated:
            self.scenes("train")  # or an error
        else:
            check_reference(self.name, MULTISET_READERS, self.options, SCENES)

    @property
    def is_generated(self) -> bool:
        """Whether the pictures are generated scenes."""
        return self.name in SCENES

    @property
    def teaches_objects(self) -> str:
        """The pictures that a backbone learns objects from; for files the same ones.

        Never scenes with equal digits: cells' scores are summed, so saliency would lie between them.
        """
        if not self.is_generated:
            return self.name
        return "mnist-set" if from_dict(SceneOptions, self.options, where="options").among else ALONE

    def scenes(self, split: str) -> MultisetSpec:
        """How the scenes of a split are drawn."""
        options = from_dict(SceneOptions, self.options, where="options")
        kind = SCENES[self.name]
        empty = self.empty if split == "train" else options.empty_held_out
        return MultisetSpec(self.size, clutter=options.clutter, empty=0.0 if kind.get("alone") else empty, **kind)


NO_LABEL = -1  # fills the columns of ``labels`` that a picture has no label for


@dataclass(frozen=True, eq=False)
class MultisetBatch:
    """Pictures with their labels and the boxes of these, in pixels of the pictures."""

    images: Tensor  # (B, 3, H, W) float32 in 0..1
    labels: Tensor  # (B, M) numbers of classes, then −1
    picture: Tensor  # (B,) number of the picture in its split
    boxes: Tensor  # (B, M, 4) xyxy, NaN where there is none
    layout: GlyphLayout | None = None  # the scenes, where the pictures were generated
    slot: Tensor | None = None  # (B, M) which object of its scene each label stands for

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def present(self) -> Tensor:
        """(B, M) bool: where there is a label."""
        return self.labels != NO_LABEL

    def counts(self, classes: int) -> Tensor:
        """(B, classes) int64: how often each class is on each picture."""
        return label_counts(self.labels, classes)

    def masks(self) -> Tensor:
        """(B, M, H, W) bool: the pixels of each label's object or box; none if unknown."""
        if self.layout is None or self.slot is None:
            return touched(self.boxes, (self.images.shape[-2], self.images.shape[-1]))
        rows = torch.arange(len(self), device=self.labels.device)[:, None]
        return self.layout.masks()[rows, self.slot] & self.present[..., None, None]

    def shuffled(self, order_seed: int) -> MultisetBatch:
        """The same with the labels of each picture, and their boxes, in a random order by seed."""
        column = torch.arange(self.labels.shape[1], device=self.labels.device)
        key = hash_u32(order_seed, self.picture[:, None], column)  # (B, M)
        order = torch.argsort(key.masked_fill(~self.present, 1 << 32), dim=1, stable=True)
        return replace(
            self,
            labels=self.labels.gather(1, order),
            boxes=self.boxes.gather(1, order[..., None].expand(-1, -1, 4)),
            slot=None if self.slot is None else self.slot.gather(1, order),
        )

    def varied(self, config: MultisetDataConfig, seed: int | None) -> MultisetBatch:
        """The same varied by ``seed``, as ``config.augment`` says."""
        if seed is None or config.augment is None:
            return self
        return self.framed(*augment(self.images, config.augment, seed))

    def framed(self, images: Tensor, frames: Tensor) -> MultisetBatch:
        """Other pictures of the same; ``frames`` (B,2,3) lead from their pixels to these; boxes follow."""
        boxes = apply_to_boxes(invert(frames)[:, None], self.boxes.double())  # (B,M,4)
        return replace(self, images=images, boxes=boxes.to(self.boxes.dtype), layout=None, slot=None)


def at_size(images: Tensor, size: Size) -> Tensor:
    """Pictures (B,3,H,W) at ``size``; the paper enlarges 100 × 100 to 224 × 224."""
    if tuple(images.shape[-2:]) == tuple(size):
        return images
    return F.interpolate(images, size, mode="bilinear", align_corners=False, antialias=True).clamp(0, 1)


def boxes_at_size(boxes: Tensor, images: Tensor, size: Size) -> Tensor:
    """Boxes (B,M,4) of pictures (B,3,H,W) where :func:`at_size` puts them."""
    height, width = images.shape[-2:]
    x, y = boxes.view(*boxes.shape[:-1], 2, 2).unbind(-1)  # (B,M,2) each
    return torch.stack([x * (size[1] / width), y * (size[0] / height)], dim=-1).flatten(-2)  # (B,M,4)


def examples(data: Any, count: int) -> list[Example]:
    """The first ``count`` pictures with their labels."""
    batch = data.take(torch.arange(count if data.size is None else min(count, data.size)))
    words = [[data.answers[label] for label in row if label >= 0] for row in batch.labels.tolist()]
    truths = [", ".join(labels) if data.is_list else f"{{{', '.join(sorted(labels))}}}" for labels in words]
    return [Example(*fields) for fields in zip(batch.images, truths, map(seen_masks, batch.masks()))]


class MultisetScenes(SplitStream[GlyphLayout]):
    """Generated scenes of one split by number; labels are in reading order; arguments as of :class:`SplitStream`."""

    spec: MultisetSpec
    answers, is_list = DIGITS, False
    asks_objects = False  # whether single objects are learned from these pictures

    def __init__(
        self, config: MultisetDataConfig, split: Split, device: torch.device | str = "cpu", **how: bool
    ) -> None:
        size = SIZES[config.protocol][split]
        super().__init__(config, split, config.scenes(split), _STREAMS[config.name], size, device, **how)

    def _draw(self, numbers: Tensor) -> tuple[GlyphLayout, Tensor]:
        layout = sample_multisets(self.spec, self.glyphs, self.seed, numbers)
        return layout, paint(layout)

    def take(self, indices: Tensor, *, vary: int | None = None) -> MultisetBatch:
        """The scenes ``indices`` (B,), perhaps varied by ``vary``."""
        layout, images = self.scenes(indices)
        boxes = layout.boxes.float().masked_fill(~layout.present[..., None], float("nan"))  # (B,N,4)
        slot = torch.arange(self.spec.slots, device=layout.device).expand(len(layout), -1).contiguous()  # (B,N)
        labels = layout.classes.masked_fill(~layout.present, NO_LABEL)  # (B,N)
        return MultisetBatch(as_float(images), labels, layout.index, boxes, layout, slot).varied(self.config, vary)

    shown = examples

    def truth(self, layout: GlyphLayout) -> dict[str, object]:
        """Labels and boxes in reading order."""
        labels = [DIGITS[label] for label in layout.classes[layout.present].tolist()]
        return {"labels": labels, "boxes": layout.boxes[layout.present].tolist()}


class MultisetFiles(ImageSplit):
    """The pictures of a table by number, labels as the table has them; arguments as of :class:`ImageSplit`."""

    asks_objects = False

    def __init__(self, config: MultisetDataConfig, table: Table, split: str, **how: Any) -> None:
        super().__init__(table, split, (config.size, config.size), cache_mb=config.cache_mb, **how)
        self.config = config
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

    def take(self, indices: Tensor, *, vary: int | None = None) -> MultisetBatch:
        """The pictures ``indices`` (B,), perhaps varied by ``vary``."""
        numbers = indices.to(self.device)
        batch = MultisetBatch(self.images(numbers)[0], self._labels[numbers], numbers, self._boxes[numbers])
        return batch.varied(self.config, vary)

    def described(self) -> dict[str, object]:
        """The reader, and for SVHN whether test is not official."""
        described = super().described()
        if described["data"] != "svhn" or self.split != "test" or self.rows[0].image.parent.name != "train":
            return described
        note = "test is a held-out part of the training pictures, not the official one"
        return {**described, "scored_part": "held-out training pictures", "note": note}

    shown = examples


MultisetSplit = MultisetScenes | MultisetFiles  # what a model learns from or is scored on
