"""Pictures with a set, multiset or list of labels: generated scenes, SVHN, and your own tables.

=============== ====================================================================================================
mnist-multiset   1 to 4 digits that may repeat, ``multiset_scenes.py``
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
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, cast, get_args

import torch
from torch import Tensor

from saccade.config import Seed, Share, Within, from_dict
from saccade.data.pictures.augment import Augmentation, augment
from saccade.data.pictures.image_split import ImageSplit
from saccade.data.pictures.reading import SIDE_LIMIT, as_float
from saccade.data.scenes.glyphs import CLASSES, GlyphPolicy, glyphs_for
from saccade.data.scenes.hashing import derive_seed
from saccade.data.tables.references import read_reference, split_reference
from saccade.data.tables.sampling import checked_numbers
from saccade.data.tables.splits import SPLITS, Split, checked_split
from saccade.data.tables.table import Table
from saccade.errors import ConfigError, DataError, nearest
from saccade.families.multiset.batch import NO_LABEL, MultisetBatch
from saccade.families.multiset.readers import MULTISET_READERS, Kind
from saccade.families.multiset.scenes import MultisetSpec, MultisetStream
from saccade.geometry import apply_to_boxes, invert

__all__ = ["SCENES", "MultisetBatch", "MultisetData", "MultisetDataConfig", "SceneOptions"]

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
        if self.name not in SCENES:
            if ":" not in self.name:
                readers = (f"{reader}:PATH" for reader in MULTISET_READERS)
                raise ConfigError(f"name: found '{self.name}'; {nearest(self.name, (*SCENES, *readers))}")
            try:
                split_reference(self.name, MULTISET_READERS)
            except DataError as error:
                raise ConfigError(f"name: {error}") from error
        if self.is_generated:
            self.scenes("train")
            self.scenes("test")
        else:
            reader, _ = split_reference(self.name, MULTISET_READERS)
            from_dict(MULTISET_READERS[reader].options, self.options, where="options")

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


class MultisetData:
    """One split of pictures and their labels: numbers of pictures to batches.

    Args:
        config: which pictures.
        split: train, val or test.
        device: where pictures are made or kept.
        table: the rows of ``config``, where they are read already.
        classes: the labels of a trained model, in its order; those of the data if not given.
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
        classes: Sequence[str] | None = None,
        most: int | None = None,
        *,
        allow_pack: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.config, self.split, self.device = config, checked_split(split), torch.device(device)
        self.source: MultisetScenes | MultisetFiles
        """Where the pictures come from: the ``stream`` of scenes, or the ``rows`` of files."""
        if config.is_generated:
            self.source = MultisetScenes(config, split, self.device, allow_pack=allow_pack)
            if classes is not None and tuple(classes) != DIGITS:
                raise DataError(f"{config.name}: its labels are 0..9, those of the model are {', '.join(classes)}")
            self.kind: Kind = "multiset" if self.source.spec.repeats else "set"
        else:
            table = read_reference(config.name, MULTISET_READERS, config.options) if table is None else table
            self.source = MultisetFiles(
                table,
                split,
                (config.size, config.size),
                self.device,
                answers=classes,
                most=most,
                cache_mb=config.cache_mb,
                progress=progress,
            )
            self.kind = cast(Kind, table.kind)

    @property
    def size(self) -> int | None:
        """Number of pictures; None for a stream without end."""
        return self.source.size

    @property
    def classes(self) -> tuple[str, ...]:
        """What the labels are called."""
        return self.source.answers

    @property
    def most(self) -> int:
        """Labels of a training picture at most."""
        return self.source.most

    @property
    def material(self) -> str:
        """What the pictures are made of, for reports: the glyphs of generated scenes, else READER:PATH."""
        return self.source.name

    @property
    def skipped(self) -> tuple[str, ...]:
        """Pictures of the split left out when it was opened, each with its reason; see ``MultisetFiles``."""
        return self.source.skipped

    @property
    def beyond(self) -> int:
        """Pictures with more labels than ``most``, so that no answer can be right."""
        return self.source.beyond

    def __len__(self) -> int:
        return cast(int, self.size)  # training scenes have no end and no length

    def take(self, indices: Tensor, order_seed: int | None = None, *, augment_seed: int | None = None) -> MultisetBatch:
        """The pictures ``indices`` (B,), in that order.

        Args:
            indices: numbers of pictures.
            order_seed: shuffle the labels of each picture by it; those of a list stay. Else labels are in reading
                order, or as their table has them.
            augment_seed: for training, vary the pictures by it, if ``config.augment`` says how.
        """
        indices = checked_numbers(indices, self.size, self.split, "pictures")
        batch = self.source.batch(indices)
        if augment_seed is not None and self.config.augment is not None:
            batch = batch.framed(*augment(batch.images, self.config.augment, augment_seed))
        return batch if order_seed is None or self.kind == "list" else batch.shuffled(order_seed)


class MultisetScenes:
    """Generated scenes of one split by number; arguments as of :class:`MultisetData`."""

    answers = DIGITS
    skipped: tuple[str, ...] = ()
    beyond = 0

    def __init__(
        self, config: MultisetDataConfig, split: Split, device: torch.device, *, allow_pack: bool = False
    ) -> None:
        self.spec = config.scenes(split)
        self.glyphs = glyphs_for(split, config.glyphs, allow_pack=allow_pack)
        self.size = SIZES[config.protocol][split]
        self.most = self.spec.slots
        seed = derive_seed(config.seed, SPLITS.index(split), _STREAMS[config.name])
        self.stream = MultisetStream(self.spec, self.glyphs, seed, device, length=self.size)

    @property
    def name(self) -> str:
        """The name of the glyphs."""
        return self.glyphs.name

    def batch(self, numbers: Tensor) -> MultisetBatch:
        """The scenes ``numbers`` (B,), labels in reading order."""
        layout, images = self.stream.scenes(numbers)
        boxes = layout.boxes.float().masked_fill(~layout.present[..., None], float("nan"))  # (B,N,4)
        slot = torch.arange(self.spec.slots, device=layout.device).expand(len(layout), -1).contiguous()  # (B,N)
        labels = layout.classes.masked_fill(~layout.present, NO_LABEL)  # (B,N)
        return MultisetBatch(as_float(images), labels, layout.index, boxes, layout, slot)


class MultisetFiles(ImageSplit):
    """The pictures of a table by number; arguments as of :class:`ImageSplit`."""

    def __init__(self, *arguments: Any, **how: Any) -> None:
        super().__init__(*arguments, **how)
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
