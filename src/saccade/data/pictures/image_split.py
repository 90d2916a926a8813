"""One split of a table: its pictures decoded once and kept as bytes, and where the truth of each row can be seen.

A picture is laid in undistorted; of one that is to be cut, the part that counts fills the whole input.

A mask is the evidence where there is one, else a disc round the point, else the box. All go through the same canvas as
their picture, and boxes end where it ends. A box beside a mask or a point is that of the object they lie on.

Unreadable pictures, words that a model does not know, and evidence that does not fit its picture are left out when the
split is opened, and named in one warning. So a batch always has its full size.

Axes: N rows, P pictures, B rows of a batch, H and W pixels of the network input.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from saccade.data.examples import checked_split, sample_rows, split_sizes, table_folder
from saccade.data.pictures.augment import Augmentation, augment
from saccade.data.pictures.reading import Picture, as_float, prepare, read_picture
from saccade.data.tables.doubts import pluralise, summarised
from saccade.data.tables.rows import Box
from saccade.data.tables.table import Row, Table
from saccade.errors import DataError
from saccade.geometry import Size, apply, apply_to_boxes, compose, crop_frame, invert, sample, touched
from saccade.progress import OnProgress, no_progress


class PreparedPictures:
    """The pictures ``paths`` by number, decoded once when this is made, as network inputs of ``size`` (height, width).

    ``limit`` bytes are kept at most (:class:`ByteStore`). ``crops`` are the parts xyxy to cut out, None for all of a
    picture.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        size: Size,
        device: torch.device,
        *,
        limit: int,
        crops: Sequence[Box | None] | None = None,
        on_progress: OnProgress = no_progress,
    ) -> None:
        self.paths, self.size, self.crops = tuple(paths), size, crops or (None,) * len(paths)
        canvas = torch.zeros(len(paths), 2, 3, dtype=torch.float64)
        image_size = torch.zeros(len(paths), 2, dtype=torch.long)

        def decode(number: int) -> Tensor:
            picture, crop = read_picture(self.paths[number]), self.crops[number]
            laid_in = prepare(picture, size) if crop is None else cut_out(picture, crop, size)
            pixels, canvas[number], image_size[number] = laid_in
            return pixels.mul(255).round().to(torch.uint8)  # (3,H,W)

        self._bytes = ByteStore(len(paths), decode, (3, *size), device, limit=limit, on_progress=on_progress)
        self.unreadable = self._bytes.unreadable  # Number → what is wrong with the file
        self.canvas = canvas.to(device)  # (n, 2, 3) network input → original picture
        self.image_size = image_size.to(device)  # (n, 2) height and width of the original picture

    def take(self, numbers: Tensor) -> Tensor:
        """The pictures ``numbers`` (B,): (B, 3, H, W) float32 in 0..1."""
        return as_float(self._bytes.take(numbers))


def cut_out(picture: Picture, box: Box, size: Size) -> tuple[Tensor, Tensor, Tensor]:
    """The part ``box`` xyxy of ``picture``, as far as the picture goes, stretched to ``size``; returns as ``prepare``.

    Raises:
        DataError: the box has nothing of the picture.
    """
    height, width = picture.size
    x0, y0, x1, y1 = max(0.0, box[0]), max(0.0, box[1]), min(float(width), box[2]), min(float(height), box[3])
    if x1 <= x0 or y1 <= y0:
        part = ", ".join(f"{number:g}" for number in box)
        raise DataError(f"{picture.name}: the part ({part}) has nothing of its {width}×{height} pixels; check its box")
    stretched = picture.image.resize((size[1], size[0]), Image.Resampling.BILINEAR, box=(x0, y0, x1, y1))
    pixels = torch.from_numpy(np.array(stretched)).permute(2, 0, 1).float() / 255  # (3,h,w)
    canvas = crop_frame(torch.tensor([x0, y0, x1, y1], dtype=torch.float64), size)  # (2,3)
    return pixels, canvas, torch.tensor(picture.size)


def prepared_mask(path: Path, picture_size: Size, size: Size, grey: int | None) -> Tensor:
    """The mask of a picture of ``picture_size``, as bytes 0 or 1 in a network input of ``size``: (H,W).

    Pixels of the value ``grey`` are the evidence; None: all that are not black. After resizing, a pixel counts that is
    at least half evidence; where none is, every one that has some. A mask of another size, or an empty one, is a
    DataError.
    """
    mask = read_picture(path)
    if mask.size != picture_size:
        (height, width), (found_height, found_width) = picture_size, mask.size
        raise DataError(f"{path}: {found_width}×{found_height} pixels for a picture of {width}×{height}; redraw it")
    pixels = np.asarray(mask.image)  # (H,W,3)
    marked = pixels.any(axis=-1) if grey is None else (pixels == grey).all(axis=-1)  # (H,W) bool
    if not marked.any():
        what = "black all over" if grey is None else f"no pixel of the grey value {grey}"
        raise DataError(f"{path}: {what}, so it marks nothing; leave the cell empty where there is no evidence")
    share = prepare(Picture(Image.fromarray(marked).convert("RGB"), mask.name), size)[0][0]  # (h,w) in 0..1
    half = share >= 0.5
    return (half if bool(half.any()) else share > 0).to(torch.uint8)


_DECODED_AT_ONCE = 256  # decoded before they go to the device together


class ByteStore:
    """Numbers 0 … count − 1 to byte tensors of ``shape``.

    ``decode`` makes one, in several threads; a DataError makes that number unreadable. ``limit`` bytes are kept at
    most; the others are decoded whenever they are taken.
    """

    def __init__(
        self,
        count: int,
        decode: Callable[[int], Tensor],
        shape: tuple[int, ...],
        device: torch.device | str = "cpu",
        *,
        limit: int,
        on_progress: OnProgress = no_progress,
    ) -> None:
        self._decode = decode
        # Number → what is wrong with it. Asking for one of these is the caller's mistake.
        self.unreadable: dict[int, str] = {}
        capacity = min(count, limit // max(1, math.prod(shape)))
        self._kept = torch.zeros((capacity, *shape), dtype=torch.uint8, device=device)
        self._all_kept = capacity == count
        for start in range(0, count, _DECODED_AT_ONCE):
            stop = min(start + _DECODED_AT_ONCE, count)
            decoded = dict(zip(range(start, stop), self._pool.map(self._try, range(start, stop))))
            self.unreadable |= {number: error for number, error in decoded.items() if isinstance(error, str)}
            tensors = {at: tensor for at, tensor in decoded.items() if not isinstance(tensor, str) and at < capacity}
            if tensors:
                self._kept[list(tensors)] = torch.stack(list(tensors.values())).to(device)
            on_progress("pictures", stop, count)

    def take(self, numbers: Tensor) -> Tensor:
        """The tensors ``numbers`` (B,), repeats allowed: (B, *shape) uint8 on the device."""
        if self._all_kept:
            return self._kept[numbers.to(self._kept.device)]
        numbers = numbers.cpu()
        to_decode = numbers >= len(self._kept)  # (B,)
        taken = self._kept.new_empty(len(numbers), *self._kept.shape[1:])
        taken[~to_decode] = self._kept[numbers[~to_decode].to(self._kept.device)]
        decoded = list(self._pool.map(self._decode, numbers[to_decode].tolist()))
        if decoded:
            taken[to_decode] = torch.stack(decoded).to(self._kept.device)
        return taken

    def _try(self, number: int) -> Tensor | str:
        try:
            return self._decode(number)
        except DataError as error:
            return str(error)

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(min(16, os.cpu_count() or 1), thread_name_prefix="decode")


# Radius of the disc that stands for a point, in shorter sides of the network input: 16 of 224 pixels.
POINT_RADIUS = 1 / 14
_NO_BOX, _NO_POINT = (float("nan"),) * 4, (float("nan"),) * 2


@dataclass(frozen=True, eq=False)
class Marks:
    """What marks the truth of a batch."""

    size: Size  # (height, width) of the network input
    box: Tensor  # (B,4) xyxy, NaN where there is none
    point: Tensor  # (B,2) (x, y), NaN where there is none
    mask: Tensor | None = None  # (B,H,W) bool, false everywhere for a row without one; None if no row has one

    def evidence(self) -> Tensor:
        """(B,H,W) bool: the mask, else a disc round the point, else the pixels that the box touches, else nothing."""
        height, width = self.size
        x = torch.arange(width, device=self.box.device)  # (W,) left edges
        y = torch.arange(height, device=self.box.device)[:, None]  # (H,1) upper edges
        at_x, at_y = self.point[:, :, None, None].unbind(1)
        radius = POINT_RADIUS * min(height, width)
        near = (x + 0.5 - at_x) ** 2 + (y + 0.5 - at_y) ** 2 <= radius**2  # (B,H,W)
        return self._or_mask(torch.where(at_x.isfinite(), near, touched(self.box, self.size)))

    def region(self) -> Tensor:
        """(B,H,W) bool: the object, where its outline is known: the mask, else the pixels of the box, else nothing."""
        return self._or_mask(touched(self.box, self.size))

    def _or_mask(self, marked: Tensor) -> Tensor:
        if self.mask is None:
            return marked
        return torch.where(self.mask.flatten(1).any(-1)[:, None, None], self.mask, marked)


class Evidence:
    """The evidence of ``rows`` about ``pictures``, by the number of the row.

    ``picture_of`` is the number of each row's picture; ``limit`` bounds the bytes of decoded masks.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        pictures: PreparedPictures,
        device: torch.device,
        *,
        limit: int,
        picture_of: Sequence[int],
    ) -> None:
        self.size = pictures.size  # (height, width) of the network input
        self._canvas, self._picture = pictures.canvas, torch.tensor(picture_of, device=device)
        size_of = [(int(height), int(width)) for height, width in pictures.image_size[picture_of].tolist()]
        readable = [picture not in pictures.unreadable for picture in picture_of]
        masks = [(at, row.mask, row.mask_grey) for at, row in enumerate(rows) if row.mask and readable[at]]
        masked = [at for at, *_ in masks]

        def decode(number: int) -> Tensor:
            at, path, grey = masks[number]
            return prepared_mask(path, size_of[at], self.size, grey)

        self._masks = ByteStore(len(masked), decode, self.size, device, limit=limit)
        # Number of the row → what is wrong with its evidence.
        self.wrong = {masked[number]: f"unreadable mask: {why}" for number, why in self._masks.unreadable.items()}
        for at, row in enumerate(rows):
            if readable[at] and (why := _outside(row, size_of[at])):
                self.wrong.setdefault(at, why)
        unusable = [at for at, is_readable in enumerate(readable) if not is_readable or at in self.wrong]
        mask = torch.full((len(rows),), -1)  # (N,) which mask each row has
        mask[masked] = torch.arange(len(masked))
        box = torch.tensor([row.box or _NO_BOX for row in rows], dtype=torch.float64).reshape(-1, 4)
        point = torch.tensor([row.point or _NO_POINT for row in rows], dtype=torch.float64).reshape(-1, 2)
        mask[unusable], box[unusable], point[unusable] = -1, torch.nan, torch.nan
        most = pictures.image_size.cpu()[picture_of].double().flip(-1).repeat(1, 2)  # (N,4): width, height, twice
        self._mask_of, self._point = mask.to(device), point.to(device)
        self._box = box.clamp(min=0).minimum(most).to(device)  # NaN stays NaN
        # Whether any row has evidence.
        self.is_there = bool((mask >= 0).any() or (~box.isnan()).any() or (~point.isnan()).any())

    def marks(self, rows: Tensor, frames: Tensor | None = None, *, masks: bool = True) -> Marks:
        """The evidence of the ``rows`` (B,), without masks if not asked for.

        ``frames`` (B,2,3) of varied pictures lead from their pixels to those of the pictures as they are.
        """
        canvas = self._canvas[self._picture[rows]]  # (B,2,3)
        to_input = invert(canvas if frames is None else compose(canvas, frames))  # (B,2,3)
        mask = self._mask(rows) if masks else None
        if mask is not None and frames is not None:
            mask = carried(mask, frames)
        box, point = apply_to_boxes(to_input, self._box[rows]), apply(to_input, self._point[rows])
        return Marks(self.size, box.float(), point.float(), mask)

    def boxes_of_objects(self, rows: Tensor) -> Tensor:
        """The box (B,4) xyxy of the object on which a mask or point lies; NaN where the box is the evidence itself."""
        finer = (self._mask_of[rows] >= 0) | ~self._point[rows].isnan().any(1)  # (B,)
        return torch.where(finer[:, None], self.marks(rows, masks=False).box, torch.nan)

    def _mask(self, rows: Tensor) -> Tensor | None:
        """The masks (B,H,W) bool, nothing where a row has none; None where no row of the data has one."""
        at = self._mask_of[rows]  # (B,)
        has = at >= 0
        if not bool(has.any()):
            return None
        masks = torch.zeros(len(rows), *self.size, dtype=torch.bool, device=at.device)
        masks[has] = self._masks.take(at[has]).bool()
        return masks


def carried(marked: Tensor, frames: Tensor) -> Tensor:
    """Marked pixels (B,H,W) as they lie in varied pictures; ``frames`` (B,2,3) lead back from these."""
    size = (marked.shape[-2], marked.shape[-1])
    return sample(marked.float().unsqueeze(1), frames, size, padding_mode="zeros")[:, 0] > 0.5


def _outside(row: Row, size: Size) -> str:
    (height, width), point = size, row.point
    if point is not None and not (0 <= point[0] <= width and 0 <= point[1] <= height):
        return f"point outside the picture: {row.image.name}, {width}×{height}"
    for box in (row.box, *row.boxes):
        if box is not None and (min(box[2], width) <= max(box[0], 0) or min(box[3], height) <= max(box[1], 0)):
            return f"box outside the picture: {row.image.name}, {width}×{height}"
    return ""


class ImageSplit:
    """The rows of one split by number.

    ``queries`` and ``answers`` are those of a trained model, in its order (None: those of the table); rows with other
    words are left out. Rows have ``most`` labels at most (None: as many as any training row). Training rows with more
    are left out; others stay, as leaving out what must fail would flatter the score. ``cache_mb`` bounds the decoded
    pictures that are kept.
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
        on_progress: OnProgress = no_progress,
    ) -> None:
        self.table, self.split, self.device = table, checked_split(split), torch.device(device)
        self.queries = table.queries if queries is None else tuple(queries)
        self.answers = table.answers if answers is None else tuple(answers)
        self.most = table.most if most is None else most
        has_words = queries is not None or answers is not None  # those of a model then count, and not the table's
        of_split = [row for row in (table.as_found if has_words else table.rows) if row.split == split]
        named = [(", ".join(filter(None, [row.image.name, row.query])), row) for row in of_split]
        rows, skipped = table.columns.matching(named, self.queries, self.answers, "unknown to the model")
        if table.kind and split == "train":
            skipped += [f"more than {self.most} labels: {row.image.name}" for row in rows if self.is_beyond(row)]
            rows = [row for row in rows if not self.is_beyond(row)]
        places = dict.fromkeys((row.image, row.crop) for row in rows)  # each picture once
        number_of = {place: number for number, place in enumerate(places)}
        images, crops = [image for image, _ in places], [crop for _, crop in places]
        limit = cache_mb << 20
        # The pictures of the split; a row's ``picture`` is the number of one.
        self.pictures = PreparedPictures(images, size, self.device, limit=limit, crops=crops, on_progress=on_progress)
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
        """Note what cannot be used, and say so in one warning; a DataError where nothing is left."""
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
