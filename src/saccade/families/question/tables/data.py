"""Questions about pictures as batches: decoded pictures, queries, labels, and the evidence where the network sees it.

Pictures are decoded when a split is opened. Those that cannot be read, and questions whose box, point or mask does not
fit their picture, are then left out with one warning that counts and names them, so a batch always has its full size.
Boxes, points and masks go through the same canvas as the picture.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

import torch
from torch import Tensor

from saccade.config import Within
from saccade.data.pictures.augment import Augmentation, augment
from saccade.data.pictures.feature_cache import FEATURES_MB
from saccade.data.pictures.label_evidence import evidence_of
from saccade.data.pictures.prepared import ByteStore, PreparedPictures, prepared_mask
from saccade.data.pictures.reading import SIDE_LIMIT
from saccade.data.tables.doubts import pluralise, summarised
from saccade.data.tables.references import split_reference
from saccade.data.tables.sampling import checked_numbers
from saccade.data.tables.splits import checked_split, split_sizes
from saccade.errors import ConfigError, DataError
from saccade.families.question.readers import READERS, read_questions
from saccade.families.question.table import Question, QuestionTable, with_known_words
from saccade.geometry import Size, apply, apply_to_boxes, compose, invert, sample, touched


@dataclass(frozen=True, eq=False)
class TableBatch:
    """Questions with their pictures, and where their evidence is, in pixels of the network input."""

    images: Tensor
    """(B, 3, H, W) float32 in 0..1."""
    query: Tensor
    """(B,) number of the query."""
    label: Tensor
    """(B,) number of the answer, or (B, K) float 0 or 1 where there may be several."""
    canvas: Tensor
    """(B, 2, 3) network input → original picture."""
    image_size: Tensor
    """(B, 2) height and width of the original picture."""
    picture: Tensor
    """(B,) number of the picture in its split; several questions may share one."""
    box: Tensor
    """(B, 4) xyxy, NaN where there is none."""
    point: Tensor
    """(B, 2) (x, y), NaN where there is none."""
    mask: Tensor | None = None
    """(B, H, W) bool, false everywhere for a question without one; None if no question has one."""

    def __len__(self) -> int:
        return len(self.query)

    def evidence(self) -> Tensor:
        """(B, H, W) bool: the mask, else a disc round the point, else the pixels that the box touches, else nothing."""
        return evidence_of(self.box, self.point, self.mask, (self.images.shape[-2], self.images.shape[-1]))

    def region(self) -> Tensor:
        """(B, H, W) bool: the object, where its outline is known: the mask, else the pixels of the box, else nothing.

        A point marks a part, and says nothing of how far the object goes.
        """
        height, width = self.images.shape[-2:]
        inside = touched(self.box, (height, width))  # (B,H,W)
        if self.mask is None:
            return inside
        return torch.where(self.mask.flatten(1).any(-1)[:, None, None], self.mask, inside)

    def to(self, device: torch.device | str) -> TableBatch:
        """The same questions on another device."""
        present = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        return TableBatch(**{name: tensor.to(device) for name, tensor in present.items()})


__all__ = ["Question", "QuestionTable", "TableBatch", "TableData", "TableDataConfig"]

_NO_BOX, _NO_POINT = (float("nan"),) * 4, (float("nan"),) * 2


@dataclass(frozen=True)
class TableDataConfig:
    """Which questions, and how their pictures are prepared."""

    name: str
    """READER:PATH, see ``question_readers.py``."""
    size: Annotated[Size, Within(1, SIDE_LIMIT)] = (224, 224)
    """(height, width) of the network input."""
    augment: Augmentation | None = field(default_factory=Augmentation)
    """How training pictures are varied; None: not at all."""
    options: dict[str, Any] = field(default_factory=dict)
    """Settings of the reader."""
    cache_mb: Annotated[int, Within(0)] = 4096
    """Decoded pictures of a split kept on the device at most; 7,000 of 224 × 224 need 1,010."""
    features_mb: Annotated[int, Within(0)] = FEATURES_MB
    """What kept features of a frozen backbone may take on disk, those of other trainings among them; 0: keep none. Of
    pictures that are not varied; 7,000 on 14 × 14 × 96 need 251."""

    def __post_init__(self) -> None:
        try:
            split_reference(self.name, READERS)
        except DataError as error:
            raise ConfigError(f"name: {error}") from error


class TableData:
    """One split of a table of questions: numbers of questions to batches.

    Args:
        config: which questions.
        split: train, val or test.
        device: where pictures are kept and batches made.
        table: the questions of ``config``, where they are read already.
        queries: the queries of a trained model, in its order; those of the table if not given.
        answers: the answers of a trained model, in its order. Questions with other words are left out.
        progress: called with (pictures decoded, pictures in all).
    """

    def __init__(
        self,
        config: TableDataConfig,
        split: str,
        device: torch.device | str = "cpu",
        table: QuestionTable | None = None,
        queries: Sequence[str] | None = None,
        answers: Sequence[str] | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.config, self.split, self.device = config, checked_split(split), torch.device(device)
        self.table = read_questions(config.name, config.options) if table is None else table
        self.queries = self.table.queries if queries is None else tuple(queries)
        self.answers = self.table.answers if answers is None else tuple(answers)
        self.multi_label = self.table.multi_label
        given = queries is not None or answers is not None  # the words that count are then not the table's
        candidates = self.table.as_found if given and self.table.as_found else self.table.rows
        found = [(f"{row.image.name}, {row.query}", row) for row in candidates if row.split == split]
        rows, skipped = with_known_words(found, self.queries, self.answers, "unknown to the model")
        self._open(rows, progress)
        usable = self._usable(rows, skipped)
        if not usable:
            sizes = split_sizes(self.table.count)
            why = f"left out {summarised(skipped)}" if skipped else self.table.if_empty
            raise DataError(f"{config.name}: no question in split '{split}' can be used (the table has {sizes}); {why}")
        self.skipped = tuple(skipped)
        """Questions left out here, each with its reason; what the reader left out is in ``table.skipped``."""
        if skipped:
            left_out = summarised(skipped)
            warnings.warn(
                f"{config.name} {split}: {pluralise(len(usable), 'question')}, left out {left_out}", stacklevel=2
            )
        self._index(rows, usable)

    @property
    def size(self) -> int:
        """Number of questions."""
        return len(self.rows)

    def __len__(self) -> int:
        return self.size

    def take(self, indices: Tensor, augment_seed: int | None = None, *, masks: bool = False) -> TableBatch:
        """The questions ``indices`` (B,), in that order.

        Args:
            indices: numbers of questions.
            augment_seed: for training, vary the pictures by it, if ``config.augment`` says how. Boxes and points follow
                them; masks are left out, unless they are asked for.
            masks: whether masks follow varied pictures, too.
        """
        query, label, picture = self.questions(indices)
        indices = indices.long().to(self.device)
        images, canvas = self.pictures.take(picture), self.pictures.canvas[picture]  # (B,3,H,W), (B,2,3)
        mask = None
        if augment_seed is not None and self.config.augment is not None:
            images, frames = augment(images, self.config.augment, augment_seed)
            canvas = compose(canvas, frames)
            if masks and self._has_masks:
                laid = self._mask_batch(self._mask[indices]).float().unsqueeze(1)  # (B,1,H,W)
                mask = sample(laid, frames, self.config.size, padding_mode="zeros")[:, 0] > 0.5  # (B,H,W)
        elif self._has_masks:
            mask = self._mask_batch(self._mask[indices])
        to_input = invert(canvas)  # (B,2,3)
        return TableBatch(
            images=images,
            query=query,
            label=label,
            canvas=canvas,
            image_size=self.pictures.image_size[picture],
            picture=picture,
            box=apply_to_boxes(to_input, self._box[indices]).float(),
            point=apply(to_input, self._point[indices]).float(),
            mask=mask,
        )

    def evidence(self, indices: Tensor) -> Tensor:
        """The evidence (B,H,W) bool of the questions ``indices`` (B,), on pictures that are not varied."""
        _, _, picture = self.questions(indices)
        indices = indices.long().to(self.device)
        to_input = invert(self.pictures.canvas[picture])  # (B,2,3)
        box = apply_to_boxes(to_input, self._box[indices]).float()
        point = apply(to_input, self._point[indices]).float()
        mask = self._mask_batch(self._mask[indices]) if self._has_masks else None
        return evidence_of(box, point, mask, self.config.size)

    def questions(self, indices: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The questions ``indices`` (B,) alone: query (B,), label (B,) or (B,K), number of the picture (B,)."""
        indices = checked_numbers(indices, self.size, self.split, "questions").to(self.device)
        label = self._label[indices]
        return self._query[indices], label.float() if self.multi_label else label, self._picture[indices]

    def one_per_picture(self, count: int) -> Tensor:
        """(count,) or fewer: numbers of questions that are all about different pictures, from the first on."""
        first: dict[int, int] = {}
        for number, picture in enumerate(self._picture.tolist()):
            first.setdefault(picture, number)
        return torch.tensor(list(first.values())[:count])

    def _open(self, rows: list[Question], progress: Callable[[int, int], None] | None) -> None:
        """Decode the pictures and masks of ``rows``."""
        paths = list(dict.fromkeys(row.image for row in rows))
        size, limit = self.config.size, self.config.cache_mb << 20
        self.pictures = PreparedPictures(paths, size, self.device, limit=limit, progress=progress)
        """The pictures of the split; a question's ``picture`` is the number of one."""
        number_of = {path: number for number, path in enumerate(paths)}
        self._picture_of_row = [number_of[row.image] for row in rows]
        placed = zip(rows, self._picture_of_row)
        masked = [(row.mask, row.mask_grey, picture) for row, picture in placed if row.mask is not None]
        numbers = iter(range(len(masked)))
        self._mask_of_row = [-1 if row.mask is None else next(numbers) for row in rows]
        sizes = self.pictures.image_size.tolist()

        def decode_mask(number: int) -> Tensor:
            path, grey, picture = masked[number]
            if picture in self.pictures.unreadable:
                return torch.zeros(size, dtype=torch.uint8)  # the picture is what is named
            return prepared_mask(path, tuple(sizes[picture]), size, grey)

        self._masks = ByteStore(len(masked), decode_mask, size, self.device, limit=limit)

    def _usable(self, rows: list[Question], skipped: list[str]) -> list[int]:
        """Which rows have a readable picture and evidence inside it; why not is added to ``skipped`` for the others."""
        sizes = self.pictures.image_size.tolist()
        usable = []
        for place, row in enumerate(rows):
            picture, mask = self._picture_of_row[place], self._mask_of_row[place]
            if picture in self.pictures.unreadable:
                skipped.append(f"unreadable picture: {self.pictures.unreadable[picture]}")
            elif mask in self._masks.unreadable:
                skipped.append(f"unreadable mask: {self._masks.unreadable[mask]}")
            elif what := _outside(row, *sizes[picture]):
                height, width = sizes[picture]
                skipped.append(f"{what} outside the picture: {row.image.name}, {row.query}, {width}×{height}")
            else:
                usable.append(place)
        return usable

    def _index(self, rows: list[Question], usable: list[int]) -> None:
        """The usable rows as columns on the device."""
        query_of = {query: number for number, query in enumerate(self.queries)}
        answer_of = {answer: number for number, answer in enumerate(self.answers)}
        self.rows = tuple(rows[place] for place in usable)
        """The questions, by number."""
        answers = [[answer_of[label] for label in row.labels] for row in self.rows]
        if self.multi_label:
            label = torch.zeros(len(answers), len(self.answers), dtype=torch.bool)  # (N,K)
            label[[n for n, each in enumerate(answers) for _ in each], [a for each in answers for a in each]] = True
        else:
            label = torch.tensor([first for first, *_ in answers])  # (N,)
        picture = torch.tensor([self._picture_of_row[place] for place in usable])
        height, width = self.pictures.image_size.cpu()[picture].double().unbind(-1)
        box = torch.tensor([row.box or _NO_BOX for row in self.rows], dtype=torch.float64)  # (N,4)
        box = box.clamp(min=0).minimum(torch.stack([width, height, width, height], dim=-1))  # NaN stays NaN
        point = torch.tensor([row.point or _NO_POINT for row in self.rows], dtype=torch.float64)  # (N,2)
        mask = torch.tensor([self._mask_of_row[place] for place in usable])
        query = torch.tensor([query_of[row.query] for row in self.rows])
        self._has_masks = bool((mask >= 0).any())
        columns = (column.to(self.device) for column in (query, label, picture, box, point, mask))
        self._query, self._label, self._picture, self._box, self._point, self._mask = columns

    def _mask_batch(self, numbers: Tensor) -> Tensor:
        """(B, H, W) bool: the masks ``numbers`` (B,), nothing where the number is −1."""
        masks = torch.zeros(len(numbers), *self.config.size, dtype=torch.bool, device=self.device)
        masks[numbers >= 0] = self._masks.take(numbers[numbers >= 0]).bool()
        return masks


def _outside(row: Question, height: int, width: int) -> str:
    """Which of box and point has nothing of the picture, if any."""
    if row.point is not None and not (0 <= row.point[0] <= width and 0 <= row.point[1] <= height):
        return "point"
    if row.box is not None:
        x0, y0, x1, y1 = row.box
        if min(x1, width) <= max(x0, 0) or min(y1, height) <= max(y0, 0):
            return "box"
    return ""
