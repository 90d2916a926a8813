"""Questions about pictures as batches: pictures, queries, labels, and the evidence where the network sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import torch
from torch import Tensor

from saccade.config import Within
from saccade.data.examples import Example, seen_masks
from saccade.data.pictures.augment import Augmentation
from saccade.data.pictures.feature_cache import FEATURES_MB
from saccade.data.pictures.image_split import ImageSplit, Marks
from saccade.data.pictures.reading import SIDE_LIMIT
from saccade.data.tables.readers import check_reference, read_reference
from saccade.data.tables.table import Table
from saccade.families.question.readers import READERS
from saccade.geometry import Size
from saccade.tasks.cached_features import RowFeatures
from saccade.tasks.evaluate import distinct


@dataclass(frozen=True, eq=False)
class TableBatch:
    """Questions with their pictures and evidence, in pixels of the network input."""

    images: Tensor  # (B, 3, H, W) float32 in 0..1
    query: Tensor  # (B,) number of the query
    label: Tensor  # (B,) number of the answer, or (B, K) float 0 or 1 where there may be several
    picture: Tensor  # (B,) number of the picture in its split; several questions may share one
    marks: Marks  # Box, point and mask of each

    def __len__(self) -> int:
        return len(self.query)

    def evidence(self) -> Tensor:
        """(B, H, W) bool: the mask, else a disc around the point, else the box, else nothing."""
        return self.marks.evidence()

    def other_query(self) -> tuple[Tensor, Tensor]:
        """Another query (B,) of the batch about the same picture with another answer, and where there is one (B,)."""
        same = self.picture[:, None] == self.picture  # (B,B)
        unlike = self.query[:, None] != self.query  # (B,B)
        labels = self.label if self.label.dim() == 2 else self.label[:, None]  # (B,K|1)
        fits = same & unlike & (labels[:, None] != labels).any(-1)  # (B,B)
        chosen = self.query[fits.int().argmax(1)]  # (B,)
        return torch.where(fits.any(1), chosen, self.query), fits.any(1)


@dataclass(frozen=True)
class TableDataConfig:
    """Which questions, and how their pictures are prepared."""

    name: str  # READER:PATH, see ``readers.py``.
    size: Annotated[Size, Within(1, SIDE_LIMIT)] = (224, 224)  # (height, width) of the network input.
    augment: Augmentation | None = field(default_factory=Augmentation)
    """How training pictures are varied; None: not at all."""
    options: dict[str, Any] = field(default_factory=dict)  # Settings of the reader.
    cache_mb: Annotated[int, Within(0)] = 4096
    """Most decoded pictures of a split on the device in MB; 7,000 of 224 × 224 need 1,010."""
    features_mb: Annotated[int, Within(0)] = FEATURES_MB
    """Disk space for cached features, other trainings included; 0: no cache. 7,000 pictures on 14 × 14 × 96 need
    251."""

    is_generated: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_reference(self.name, READERS, self.options)


class TableData(ImageSplit):
    """One split of a table of questions by number.

    ``table`` has the rows of ``config``, if already read; ``how`` is as of :class:`ImageSplit`.
    """

    def __init__(self, config: TableDataConfig, split: str, table: Table | None = None, **how: Any) -> None:
        self.config = config
        table = read_reference(config.name, READERS, config.options) if table is None else table
        super().__init__(table, split, config.size, cache_mb=config.cache_mb, **how)
        self.multi_label = table.several
        self.features: RowFeatures | None = None  # Cached features in place of pictures
        self._query = self.ids(self.queries, lambda row: row.query)  # (N,)
        if not self.multi_label:
            self._label = self.ids(self.answers, lambda row: row.label)  # (N,)
            return
        number_of = {answer: number for number, answer in enumerate(self.answers)}
        label = torch.zeros(self.size, len(self.answers), dtype=torch.bool)  # (N,K)
        for number, row in enumerate(self.rows):
            label[number, [number_of[answer] for answer in row.labels]] = True
        self._label = label.to(self.device)

    def take(self, indices: Tensor, vary: int | None = None, *, masks: bool = False) -> TableBatch:
        """The questions ``indices`` (B,), in order.

        For training ``vary`` is the seed of ``config.augment``. Boxes and points follow the pictures, and with
        ``masks`` the masks; else varied pictures have none.
        """
        numbers = indices.to(self.device)
        query, label, picture = self.questions(numbers)
        how = None if vary is None else self.config.augment
        images, frames = self.images(numbers, how, vary or 0)
        return TableBatch(images, query, label, picture, self.marks(numbers, frames, masks=masks or how is None))

    def questions(self, indices: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The questions ``indices`` (B,) alone: query (B,), label (B,) or (B,K), number of the picture (B,)."""
        numbers = indices.to(self.device)
        label = self._label[numbers]
        return self._query[numbers], label.float() if self.multi_label else label, self.picture[numbers]

    def shown(self, count: int) -> list[Example]:
        """The first ``count`` pictures, each with its first question."""
        numbers = distinct(self.picture.cpu())[0][:count]
        batch = self.take(numbers)
        rows = [self.rows[number] for number in numbers.tolist()]
        return [
            Example(image, ", ".join(row.labels), seen_masks(mask[None]), row.query)
            for image, mask, row in zip(batch.images, batch.evidence(), rows)
        ]
