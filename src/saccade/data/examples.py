"""The first pictures of a split, whatever is asked of them: each with the question, the truth in words, and its place.

For contact sheets and reports; training and scoring read batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch

import torch
from torch import Tensor

from saccade.families.caption.data import CaptionData
from saccade.families.multiset.data import MultisetData
from saccade.families.question.scene_data import SceneData
from saccade.families.question.table_data import TableData

Data = SceneData | TableData | MultisetData | CaptionData
"""One split of any kind."""


@dataclass(frozen=True, eq=False)
class Example:
    """One picture and what is true of it."""

    image: Tensor
    """(3,H,W) float in 0..1."""
    truth: str
    masks: tuple[Tensor, ...] = ()
    """Each (H,W) bool: where what the truth is about can be seen; none where nobody knows."""
    question: str | None = None

    @property
    def caption(self) -> str:
        """The question, if there is one, and the truth."""
        return self.truth if self.question is None else f"{self.question} → {self.truth}"


def examples_of(data: Data, count: int) -> list[Example]:
    """The first ``count`` pictures of ``data``, fewer where it has fewer; of each the first question."""
    return _examples(data, count)


@singledispatch
def _examples(data: Data, count: int) -> list[Example]:
    raise TypeError(f"no examples of {type(data).__name__}")


@_examples.register
def _(data: SceneData, count: int) -> list[Example]:
    batch = data.take(data.one_per_scene(count))
    asked = zip(batch.query.tolist(), batch.label.tolist())
    return [
        Example(image, data.answers[label], _seen(mask[None]), data.queries[query])
        for image, mask, (query, label) in zip(batch.images, batch.evidence(), asked)
    ]


@_examples.register
def _(data: TableData, count: int) -> list[Example]:
    numbers = data.one_per_picture(count)
    batch = data.take(numbers)
    rows = [data.rows[number] for number in numbers.tolist()]
    return [
        Example(image, ", ".join(row.labels), _seen(mask[None]), row.query)
        for image, mask, row in zip(batch.images, batch.evidence(), rows)
    ]


@_examples.register
def _(data: MultisetData, count: int) -> list[Example]:
    batch = data.take(torch.arange(_at_most(count, data.size)))
    words = [[data.classes[label] for label in row if label >= 0] for row in batch.labels.tolist()]
    truths = [", ".join(said) if data.kind == "list" else f"{{{', '.join(sorted(said))}}}" for said in words]
    return [Example(*each) for each in zip(batch.images, truths, map(_seen, batch.masks()))]


@_examples.register
def _(data: CaptionData, count: int) -> list[Example]:
    numbers = torch.arange(_at_most(count, data.picture_count))
    batch = data.pictures(numbers)
    truths = [data.references(number)[0] for number in numbers.tolist()]
    masks = [()] * len(truths) if batch.layout is None else [_seen(each) for each in batch.layout.masks()]
    return [Example(*each) for each in zip(batch.images, truths, masks)]


def _at_most(count: int, size: int | None) -> int:
    return count if size is None else min(count, size)


def _seen(masks: Tensor) -> tuple[Tensor, ...]:
    """Those of (K,H,W) that show something, each (H,W)."""
    return tuple(mask for mask in masks.cpu() if mask.any())
