"""One split of a table of captions: pictures decoded up to a limit of memory, captions as numbers of words.

Pictures that cannot be read are left out when the split is opened, and captions of which the vocabulary knows no word
are not among the pairs, counted and named in one warning. References stay as they were written: such a caption is still
one of the ``references`` for scoring.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import accumulate

import torch
from torch import Tensor

from saccade.data.pictures.prepared import PreparedPictures
from saccade.data.tables.doubts import pluralise, summarised
from saccade.data.tables.splits import split_sizes
from saccade.errors import DataError
from saccade.families.caption.batch import CaptionBatch
from saccade.families.caption.table import CaptionTable
from saccade.families.caption.vocabulary import END, NO_WORD, UNKNOWN, Vocabulary
from saccade.geometry import Size


class CaptionFiles:
    """The captions and the pictures of one split by number.

    Args:
        table: all captions.
        split: train, val or test.
        size: (height, width) of the network input.
        device: where pictures are kept and batches made.
        vocabulary: the words, by number.
        limit: bytes of decoded pictures kept at most.
        progress: called with (pictures decoded, pictures in all).
    """

    def __init__(
        self,
        table: CaptionTable,
        split: str,
        size: Size,
        device: torch.device,
        *,
        vocabulary: Vocabulary,
        limit: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.table, self.split, self.device, self.vocabulary = table, split, device, vocabulary
        rows = [row for row in table.rows if row.split == split]
        self._prepared = PreparedPictures([row.image for row in rows], size, device, limit=limit, progress=progress)
        readable = [place for place in range(len(rows)) if place not in self._prepared.unreadable]
        self.rows = tuple(rows[place] for place in readable)
        """The pictures, by number."""
        self._place = torch.tensor(readable, dtype=torch.long, device=device)  # (P,)
        skipped = [f"unreadable picture: {found}" for found in self._prepared.unreadable.values()]
        self._index(skipped)
        self.skipped = tuple(skipped)
        """What was left out here, each with its reason; what the reader left out is in ``table.skipped``."""
        self._say_what_is_wrong()

    @property
    def size(self) -> int:
        """Number of captions."""
        return len(self.lengths)

    @property
    def picture_count(self) -> int:
        """Number of pictures."""
        return len(self.rows)

    @property
    def longest(self) -> int:
        """Words of the longest caption, without its end."""
        return int(self.lengths.max()) - 1

    @property
    def material(self) -> str:
        """READER:PATH."""
        return self.table.name

    def batch(self, numbers: Tensor) -> CaptionBatch:
        """The captions ``numbers`` (B,) with their pictures."""
        return self._batch(*self.captions(numbers))

    def captions(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """The captions ``numbers`` (B,) alone: their words (B,T), and the number of the picture of each (B,)."""
        return self._words(self._start[numbers], self.lengths[numbers]), self._picture[numbers]

    def pictures(self, numbers: Tensor) -> CaptionBatch:
        """The pictures ``numbers`` (B,), each with the first of its captions."""
        first = [[*self.vocabulary.encode(self.rows[number].captions[0]), END] for number in numbers.tolist()]
        words = torch.full((len(first), max(map(len, first))), NO_WORD)
        for row, ids in enumerate(first):
            words[row, : len(ids)] = torch.tensor(ids)
        return self._batch(words, numbers)

    def references(self, number: int) -> tuple[str, ...]:
        """What people said of the picture ``number``."""
        return self.rows[number].captions

    def _batch(self, words: Tensor, picture: Tensor) -> CaptionBatch:
        picture = picture.to(self.device)
        place = self._place[picture]
        images, canvas = self._prepared.take(place), self._prepared.canvas[place]
        return CaptionBatch(images, words.to(self.device), picture, canvas, self._prepared.image_size[place])

    def _words(self, start: Tensor, lengths: Tensor) -> Tensor:
        """(B, T) the captions that begin at ``start`` (B,) in the row of all words."""
        step = torch.arange(int(lengths.max()))  # (T,)
        inside = step < lengths[:, None]  # (B,T)
        at = (start[:, None] + step).clamp(max=len(self._all_words) - 1)
        return torch.where(inside, self._all_words[at].long(), NO_WORD)

    def _index(self, skipped: list[str]) -> None:
        """All captions one behind the other, and for each of them where it begins, how long it is and its picture."""
        ids: list[list[int]] = []
        pictures: list[int] = []
        for number, row in enumerate(self.rows):
            for caption in row.captions:
                encoded = self.vocabulary.encode(caption)
                if all(word == UNKNOWN for word in encoded):
                    skipped.append(f"no known word: {row.image.name}, '{caption[:40]}'")
                    continue
                ids.append([*encoded, END])
                pictures.append(number)
        lengths = [len(each) for each in ids]
        self._all_words = torch.tensor([word for each in ids for word in each], dtype=torch.int32)
        self._start = torch.tensor([0, *accumulate(lengths)], dtype=torch.long)[:-1]  # (N,)
        self._picture = torch.tensor(pictures, dtype=torch.long)  # (N,)
        self.lengths = torch.tensor(lengths, dtype=torch.long)
        """(N,) steps of each caption: its words and the end."""

    def _say_what_is_wrong(self) -> None:
        name, left_out = f"{self.table.name} {self.split}", summarised(self.skipped)
        if not self.size:
            why = f"left out {left_out}" if left_out else self.table.if_empty
            raise DataError(f"{name}: no caption can be used (pictures: {split_sizes(self.table.count)}); {why}")
        if left_out:
            counts = f"{pluralise(self.size, 'caption')} of {pluralise(self.picture_count, 'picture')}"
            warnings.warn(f"{name}: {counts}, left out {left_out}", stacklevel=4)
