"""One split of a table of multisets: its pictures decoded once and kept as bytes, labels and boxes as columns.

Pictures that cannot be read, labels the model does not know and boxes outside their picture are left out when the split
is opened, counted and named in one warning. A picture with more labels than the model was trained to say is left out of
training; everywhere else it stays and is counted, because leaving out what must fail would flatter the score.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from saccade.data.pictures.prepared import PreparedPictures
from saccade.data.tables.doubts import pluralise, summarised
from saccade.data.tables.splits import split_sizes
from saccade.errors import DataError
from saccade.families.multiset.batch import NO_LABEL, MultisetBatch
from saccade.families.multiset.table import MultisetRow, MultisetTable, with_known_labels
from saccade.geometry import Size, apply_to_boxes, invert

_NO_BOX = (float("nan"),) * 4


class MultisetFiles:
    """The pictures of one split by number.

    Args:
        table: all pictures.
        split: train, val or test.
        size: (height, width) of the network input.
        device: where pictures are kept and batches made.
        classes: the labels of a trained model, in its order; those of the table if not given.
        most: how many labels that model was trained to say at most; as many as the table's training pictures have if
            not given.
        limit: bytes of decoded pictures kept at most.
        progress: called with (pictures decoded, pictures in all).
    """

    def __init__(
        self,
        table: MultisetTable,
        split: str,
        size: Size,
        device: torch.device,
        *,
        classes: Sequence[str] | None = None,
        most: int | None = None,
        limit: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.table, self.split, self.device = table, split, device
        self.classes = table.classes if classes is None else tuple(classes)
        self.most = table.most if most is None else most
        found = [(row.image.name, row) for row in table.rows if row.split == split]
        rows, skipped = with_known_labels(found, self.classes, "unknown to the model")
        if split == "train":
            skipped += [f"more than {self.most} labels: {row.image.name}" for row in rows if self._is_beyond(row)]
            rows = [row for row in rows if not self._is_beyond(row)]
        crops = [row.crop for row in rows]
        pictures = PreparedPictures(
            [row.image for row in rows], size, device, limit=limit, crops=crops, progress=progress
        )
        usable = _usable(rows, pictures, skipped)
        self.rows = tuple(rows[place] for place in usable)
        """The pictures, by number."""
        self.skipped = tuple(skipped)
        """Pictures left out here, each with its reason; what the reader left out is in ``table.skipped``."""
        self.beyond = sum(map(self._is_beyond, self.rows))
        """Pictures that have more labels than ``most``, so that no answer can be right."""
        self._say_what_is_wrong()
        self._pictures, self._place = pictures, torch.tensor(usable, device=device)
        self._index()

    @property
    def size(self) -> int:
        """Number of pictures."""
        return len(self.rows)

    @property
    def material(self) -> str:
        """READER:PATH."""
        return self.table.name

    def batch(self, numbers: Tensor) -> MultisetBatch:
        """The pictures ``numbers`` (B,), labels as the table has them."""
        numbers = numbers.to(self.device)
        images = self._pictures.take(self._place[numbers])
        return MultisetBatch(images, self._labels[numbers], numbers, self._boxes[numbers])

    def _is_beyond(self, row: MultisetRow) -> bool:
        return len(row.labels) > self.most

    def _say_what_is_wrong(self) -> None:
        name = f"{self.table.name} {self.split}"
        left_out = summarised(self.skipped)
        if not self.rows:
            why = f"left out {left_out}" if left_out else self.table.if_empty
            raise DataError(f"{name}: no picture can be used (the table has {split_sizes(self.table.count)}); {why}")
        notes = [f"left out {left_out}"] if left_out else []
        if self.beyond:
            notes.append(f"{self.beyond:,} with more than the {self.most} labels that training had count as wrong")
        if notes:
            warnings.warn(f"{name}: {pluralise(self.size, 'picture')}, {'; '.join(notes)}", stacklevel=4)

    def _index(self) -> None:
        """Labels and boxes as columns on the device; a box goes through the same canvas as its picture."""
        number_of = {label: number for number, label in enumerate(self.classes)}
        width = max(self.most, *(len(row.labels) for row in self.rows))
        labels = torch.full((self.size, width), NO_LABEL)  # (N,M)
        boxes = torch.full((self.size, width, 4), float("nan"), dtype=torch.float64)  # (N,M,4)
        for number, row in enumerate(self.rows):
            labels[number, : len(row.labels)] = torch.tensor([number_of[label] for label in row.labels]).long()
            if row.boxes:
                boxes[number, : len(row.boxes)] = torch.tensor([box or _NO_BOX for box in row.boxes]).double()
        size = self._pictures.image_size[self._place].cpu().double().flip(-1)  # (N,2) width and height
        boxes = boxes.clamp(min=0).minimum(size.repeat(1, 2)[:, None])  # NaN stays NaN
        to_input = invert(self._pictures.canvas[self._place].cpu())[:, None]  # (N,1,2,3)
        placed = apply_to_boxes(to_input, boxes)  # (N,M,4)
        self._labels, self._boxes = labels.to(self.device), placed.float().to(self.device)


def _usable(rows: Sequence[MultisetRow], pictures: PreparedPictures, skipped: list[str]) -> list[int]:
    """Which rows have a readable picture and boxes inside it; why not is added to ``skipped`` for the others."""
    sizes = pictures.image_size.tolist()
    usable = []
    for place, row in enumerate(rows):
        height, width = sizes[place]
        if place in pictures.unreadable:
            skipped.append(f"unreadable picture: {pictures.unreadable[place]}")
        elif any(
            box is not None and (min(box[2], width) <= max(box[0], 0) or min(box[3], height) <= max(box[1], 0))
            for box in row.boxes
        ):
            skipped.append(f"box outside the picture: {row.image.name}, {width}×{height}")
        else:
            usable.append(place)
    return usable
