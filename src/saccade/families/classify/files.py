"""One split of a table of labels: its pictures decoded once and kept as bytes, labels and evidence as columns.

Pictures that cannot be read, labels that the model does not know, and boxes and masks that do not fit their picture are
left out when the split is opened, counted and named in one warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from saccade.data.pictures.byte_store import ByteStore
from saccade.data.pictures.labelled import LabelledBatch
from saccade.data.pictures.prepared import PreparedPictures, prepared_mask
from saccade.data.tables.labelled import LabelRow, LabelTable, with_known_label
from saccade.data.tables.numbered import sent
from saccade.data.tables.splits import split_sizes
from saccade.data.tables.wording import counted, summarised
from saccade.errors import DataError
from saccade.geometry import Size, apply_to_boxes, invert, touched

_NO_BOX = (float("nan"),) * 4


class LabelFiles:
    """The pictures of one split by number.

    Args:
        table: all pictures.
        split: train, val or test.
        size: (height, width) of the network input.
        device: where pictures are kept and batches made.
        classes: the labels of a trained model, in its order; those of the table if not given.
        limit: bytes of decoded pictures kept at most.
        progress: called with (pictures decoded, pictures in all).
    """

    def __init__(
        self,
        table: LabelTable,
        split: str,
        size: Size,
        device: torch.device,
        *,
        classes: Sequence[str] | None = None,
        limit: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.table, self.split, self.device, self._shape = table, split, device, size
        self.classes = table.classes if classes is None else tuple(classes)
        candidates = table.as_found if classes is not None and table.as_found else table.rows
        found = [(row.image.name, row) for row in candidates if row.split == split]
        rows, skipped = with_known_label(found, self.classes, "unknown to the model")
        pictures = PreparedPictures([row.image for row in rows], size, device, limit=limit, progress=progress)
        masks = _Masks(rows, pictures, size, device, limit)
        usable = _usable(rows, pictures, masks, skipped)
        self.rows = tuple(rows[place] for place in usable)
        """The pictures, by number."""
        self.skipped = tuple(skipped)
        """Pictures left out here, each with its reason; what the reader left out is in ``table.skipped``."""
        self._say_what_is_wrong()
        self._pictures, self._masks = pictures, masks
        self._place = torch.tensor(usable, device=device)
        self._index()

    @property
    def size(self) -> int:
        """Number of pictures."""
        return len(self.rows)

    def take(self, numbers: Tensor) -> LabelledBatch:
        """The pictures ``numbers`` (B,), with evidence where any picture of the split has some."""
        numbers = sent(numbers, self.device)
        place = self._place[numbers]
        evidence = None
        if self._has_evidence:
            evidence = touched(self._boxes[numbers], self._shape)  # (B,H,W)
            evidence = self._masks.laid_over(evidence, place)
        return LabelledBatch(self._pictures.take(place), self._labels[numbers], evidence)

    def _say_what_is_wrong(self) -> None:
        name = f"{self.table.name} {self.split}"
        left_out = summarised(self.skipped)
        if not self.rows:
            why = f"left out {left_out}" if left_out else "add some, or score another split"
            raise DataError(f"{name}: no picture can be used (the table has {split_sizes(self.table.count)}); {why}")
        if left_out:
            warnings.warn(f"{name}: {counted(len(self.rows), 'picture')}, left out {left_out}", stacklevel=5)

    def _index(self) -> None:
        """Labels and boxes as columns on the device; a box goes through the same canvas as its picture."""
        number_of = {label: number for number, label in enumerate(self.classes)}
        self._labels = torch.tensor([number_of[row.label] for row in self.rows], device=self.device)  # (N,)
        boxes = torch.tensor([row.box or _NO_BOX for row in self.rows], dtype=torch.float64)  # (N,4)
        to_input = invert(self._pictures.canvas[self._place].cpu())  # (N,2,3)
        self._boxes = apply_to_boxes(to_input, boxes).float().to(self.device)  # (N,4)
        self._has_evidence = any(row.box is not None or row.mask is not None for row in self.rows)


class _Masks:
    """The masks of a split's rows, as bytes in the network input."""

    def __init__(
        self, rows: Sequence[LabelRow], pictures: PreparedPictures, size: Size, device: torch.device, limit: int
    ) -> None:
        held = [(place, row.mask) for place, row in enumerate(rows) if row.mask and place not in pictures.unreadable]
        holders = [place for place, _ in held]
        self._at = torch.full((len(rows),), -1)  # (n,) which mask each row has
        self._at[holders] = torch.arange(len(holders))
        self._at = self._at.to(device)
        sizes = pictures.image_size.tolist()

        def decode(number: int) -> Tensor:
            place, mask = held[number]
            height, width = sizes[place]
            return prepared_mask(mask, (height, width), size)

        self._bytes = ByteStore(len(holders), decode, size, device, limit=limit)
        self.unreadable = {holders[number]: why for number, why in self._bytes.unreadable.items()}
        """Number of the row → what is wrong with its mask."""

    def laid_over(self, evidence: Tensor, rows: Tensor) -> Tensor:
        """The evidence (B,H,W), in the place of which a mask comes where a row (B,) has one."""
        at = self._at[rows]  # (B,)
        has = at >= 0
        if bool(has.any()):
            evidence = evidence.clone()
            evidence[has] = self._bytes.take(at[has]).bool()
        return evidence


def _usable(rows: Sequence[LabelRow], pictures: PreparedPictures, masks: _Masks, skipped: list[str]) -> list[int]:
    """Which rows have a readable picture and evidence inside it; why not is added to ``skipped`` for the others."""
    sizes = pictures.image_size.tolist()
    usable = []
    for place, row in enumerate(rows):
        height, width = sizes[place]
        box = row.box
        if place in pictures.unreadable:
            skipped.append(f"unreadable picture: {pictures.unreadable[place]}")
        elif place in masks.unreadable:
            skipped.append(f"unreadable mask: {masks.unreadable[place]}")
        elif box is not None and (min(box[2], width) <= max(box[0], 0) or min(box[3], height) <= max(box[1], 0)):
            skipped.append(f"box outside the picture: {row.image.name}, {width}×{height}")
        else:
            usable.append(place)
    return usable
