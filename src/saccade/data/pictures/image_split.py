"""One split of a table: its pictures decoded once and kept as bytes, and where the truth of each row can be seen.

What cannot be used is left out when the split is opened, counted and named in one warning: pictures that cannot be
read, words that a model does not know, and evidence that does not fit its picture. So a batch always has its full size.
A family adds its columns: the numbers of labels, questions or words.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property

import torch
from torch import Tensor

from saccade.data.pictures.augment import Augmentation, augment
from saccade.data.pictures.evidence import Evidence, Marks
from saccade.data.pictures.prepared import PreparedPictures
from saccade.data.tables.doubts import pluralise, summarised
from saccade.data.tables.sampling import sample_rows, table_folder
from saccade.data.tables.splits import checked_split, split_sizes
from saccade.data.tables.table import Row, Table
from saccade.errors import DataError
from saccade.geometry import Size


class ImageSplit:
    """The rows of one split by number.

    Args:
        table: all rows.
        split: train, val or test.
        size: (height, width) of the network input.
        device: where pictures are kept and batches made.
        queries: the queries of a trained model, in its order; those of the table if not given.
        answers: the answers of a trained model, in its order; rows with other words are left out.
        most: labels of a row that a model says at most; as many as the table's training rows have if not given. Of
            training rows those with more are left out; elsewhere they stay, as leaving out what must fail would flatter
            the score.
        cache_mb: decoded pictures kept at most.
        progress: called with (pictures decoded, pictures in all).
    """

    def __init__(
        self,
        table: Table,
        split: str,
        size: Size,
        device: torch.device | str = "cpu",
        *,
        queries: Sequence[str] | None = None,
        answers: Sequence[str] | None = None,
        most: int | None = None,
        cache_mb: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.table, self.split, self.device = table, checked_split(split), torch.device(device)
        self.queries = table.queries if queries is None else tuple(queries)
        self.answers = table.answers if answers is None else tuple(answers)
        self.most = table.most if most is None else most
        given = queries is not None or answers is not None  # the words that count are then not the table's
        own = [row for row in (table.as_found if given else table.rows) if row.split == split]
        found = [(", ".join(filter(None, [row.image.name, row.query])), row) for row in own]
        rows, skipped = table.columns.known(found, self.queries, self.answers, "unknown to the model")
        if table.kind and split == "train":
            skipped += [f"more than {self.most} labels: {row.image.name}" for row in rows if self.is_beyond(row)]
            rows = [row for row in rows if not self.is_beyond(row)]
        places = dict.fromkeys((row.image, row.crop) for row in rows)  # each picture once
        number_of = {place: number for number, place in enumerate(places)}
        limit, crops = cache_mb << 20, [crop for _, crop in places]
        # The pictures of the split; a row's ``picture`` is the number of one.
        self.pictures = PreparedPictures(
            [image for image, _ in places], size, self.device, limit=limit, crops=crops, progress=progress
        )
        pictures = [number_of[row.image, row.crop] for row in rows]
        self._evidence = Evidence(rows, self.pictures, self.device, limit=limit, picture_of=pictures)
        usable = []
        for place, picture in enumerate(pictures):
            if picture in self.pictures.unreadable:
                skipped.append(f"unreadable picture: {self.pictures.unreadable[picture]}")
            elif place in self._evidence.wrong:
                skipped.append(self._evidence.wrong[place])
            else:
                usable.append(place)
        self.rows: tuple[Row, ...] = tuple(rows[place] for place in usable)  # By number
        # What was left out here, each with its reason; what the reader left out is in ``table.skipped``.
        self.skipped: tuple[str, ...] = ()
        self._place = torch.tensor(usable, dtype=torch.long, device=self.device)  # (N,)
        # (N,) the number of each row's picture; several rows may share one.
        self.picture = torch.tensor([pictures[place] for place in usable], dtype=torch.long, device=self.device)
        self.leave_out(skipped, len(self.rows), table.columns.thing)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def __len__(self) -> int:
        return self.size

    @property
    def name(self) -> str:
        """READER:PATH."""
        return self.table.name

    def described(self) -> dict[str, object]:
        """The reader; where the table lies is private."""
        return {"data": self.name.partition(":")[0]}

    @cached_property
    def beyond(self) -> int:
        """Rows with more labels than ``most``, so that no answer can be right."""
        return sum(map(self.is_beyond, self.rows))

    def is_beyond(self, row: Row) -> bool:
        """Whether a row has more labels than can be said."""
        return bool(self.table.kind) and len(row.labels) > self.most

    @cached_property
    def has_evidence(self) -> bool:
        """Whether any row says where its truth can be seen."""
        return any(row.box is not None or row.point is not None or row.mask is not None for row in self.rows)

    def images(self, numbers: Tensor, how: Augmentation | None = None, seed: int = 0) -> tuple[Tensor, Tensor | None]:
        """The pictures (B,3,H,W) of rows; and, where they are varied, the frames (B,2,3) that lead back."""
        images = self.pictures.take(self.picture[numbers])
        return (images, None) if how is None else augment(images, how, seed)

    def marks(self, numbers: Tensor, frames: Tensor | None = None, *, masks: bool = True) -> Marks:
        """Where the truth of rows can be seen; see :meth:`Evidence.marks`."""
        return self._evidence.marks(self._place[numbers], frames, masks=masks)

    def boxes_of_objects(self, numbers: Tensor) -> Tensor:
        """The boxes (B,4) of objects whose masks or points are the evidence; see :class:`Evidence`."""
        return self._evidence.boxes_of_objects(self._place[numbers.to(self.device)])

    def ids(self, words: Sequence[str], of: Callable[[Row], str]) -> Tensor:
        """The number (N,) of one word of each row among ``words``."""
        number_of = {word: number for number, word in enumerate(words)}
        return torch.tensor([number_of[of(row)] for row in self.rows], device=self.device)

    def sampled(self, limit: int | None) -> Tensor:
        """Numbers (n,) of at most ``limit`` rows, of a sample of the pictures."""
        words = [row.query for row in self.rows] if self.queries else ()
        return sample_rows([row.image for row in self.rows], table_folder(self.table.name), limit, words)

    def leave_out(self, reasons: Sequence[str], usable: int, thing: str) -> None:
        """Note what cannot be used, and say so in one warning.

        Raises:
            DataError: nothing is left.
        """
        self.skipped += tuple(reasons)
        name, left_out = f"{self.table.name} {self.split}", summarised(reasons)
        if not usable:
            why = f"left out {left_out}" if left_out else "add some, or name another split"
            raise DataError(f"{name}: no {thing} can be used (the table has {split_sizes(self.table.count)}); {why}")
        notes = [f"left out {left_out}"] if left_out else []
        if self.beyond:
            notes.append(f"{self.beyond:,} with more than the {self.most} labels that training had count as wrong")
        if notes:
            warnings.warn(f"{name}: {pluralise(usable, thing)}, {'; '.join(notes)}", stacklevel=4)
