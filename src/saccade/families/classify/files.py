"""One split of a table of labels: its pictures decoded once and kept as bytes, labels and evidence as columns.

Pictures that cannot be read, labels that the model does not know, and boxes and masks that do not fit their picture are
left out when the split is opened, counted and named in one warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from saccade.data.pictures.label_evidence import LabelEvidence
from saccade.data.pictures.labelled import LabelledBatch
from saccade.data.pictures.prepared import PreparedPictures
from saccade.data.tables.doubts import pluralise, summarised
from saccade.data.tables.labelled import LabelRow, LabelTable, with_known_label
from saccade.data.tables.sampling import to_device
from saccade.data.tables.splits import split_sizes
from saccade.errors import DataError
from saccade.geometry import Size


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
        self.table, self.split, self.device = table, split, device
        self.classes = table.classes if classes is None else tuple(classes)
        candidates = table.as_found if classes is not None and table.as_found else table.rows
        found = [(row.image.name, row) for row in candidates if row.split == split]
        rows, skipped = with_known_label(found, self.classes, "unknown to the model")
        pictures = PreparedPictures([row.image for row in rows], size, device, limit=limit, progress=progress)
        evidence = LabelEvidence(rows, pictures, device, limit=limit)
        usable = _usable(rows, pictures, evidence, skipped)
        self.rows = tuple(rows[place] for place in usable)
        """The pictures, by number."""
        self.skipped = tuple(skipped)
        """Pictures left out here, each with its reason; what the reader left out is in ``table.skipped``."""
        self._say_what_is_wrong()
        self._pictures, self._evidence = pictures, evidence
        self._place = torch.tensor(usable, device=device)
        number_of = {label: number for number, label in enumerate(self.classes)}
        self._labels = torch.tensor([number_of[row.label] for row in self.rows], device=device)  # (N,)
        self._has_evidence = any(row.box is not None or row.mask is not None for row in self.rows)

    @property
    def size(self) -> int:
        """Number of pictures."""
        return len(self.rows)

    def take(self, numbers: Tensor) -> LabelledBatch:
        """The pictures ``numbers`` (B,), with evidence where any picture of the split has some."""
        numbers = to_device(numbers, self.device)
        place = self._place[numbers]
        evidence = self._evidence.take(place) if self._has_evidence else None  # (B,H,W)
        return LabelledBatch(self._pictures.take(place), self._labels[numbers], evidence)

    def boxes_of_masks(self, numbers: Tensor) -> Tensor:
        """The boxes (B,4) of objects whose masks are the evidence; see :class:`LabelEvidence`."""
        return self._evidence.boxes_of_objects(self._place[to_device(numbers, self.device)])

    def _say_what_is_wrong(self) -> None:
        name = f"{self.table.name} {self.split}"
        left_out = summarised(self.skipped)
        if not self.rows:
            why = f"left out {left_out}" if left_out else self.table.if_empty
            raise DataError(f"{name}: no picture can be used (the table has {split_sizes(self.table.count)}); {why}")
        if left_out:
            warnings.warn(f"{name}: {pluralise(len(self.rows), 'picture')}, left out {left_out}", stacklevel=5)


def _usable(
    rows: Sequence[LabelRow], pictures: PreparedPictures, evidence: LabelEvidence, skipped: list[str]
) -> list[int]:
    """Which rows have a readable picture and evidence inside it; why not is added to ``skipped`` for the others."""
    usable = []
    for place in range(len(rows)):
        if place in pictures.unreadable:
            skipped.append(f"unreadable picture: {pictures.unreadable[place]}")
        elif place in evidence.wrong:
            skipped.append(evidence.wrong[place])
        else:
            usable.append(place)
    return usable
