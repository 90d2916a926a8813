"""Makes the rows of a part from its pictures. Every engine calls it, so all engines write the same rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from saccade import geometry
from saccade.data.pictures.reading import PIXEL_LIMIT, Picture
from saccade.errors import ConfigError, DataError
from saccade.geometry import Size
from saccade.predict import Predictor
from saccade.scale.entries import Entry, entries_of
from saccade.scale.job import Job, Part
from saccade.scale.reading_ahead import PictureReader
from saccade.scale.schema import TOTAL, encode_map
from saccade.sighting import Sighting

Row = dict[str, Any]


class RowMaker:
    """Asks a model about the pictures of parts.

    Args:
        predictor: the model.
        job: what is asked.
        reader: who fetches and decodes.
        batch: pictures that go through the model together.
    """

    def __init__(self, predictor: Predictor, job: Job, reader: PictureReader, batch: int) -> None:
        if batch < 1:
            raise ConfigError(f"batch: 1 picture or more, found {batch}")
        self._predictor, self._job, self._reader, self._batch = predictor, job, reader, batch

    def rows(self, part: Part) -> Iterator[Row]:
        """A row for each picture of the part, in order; one that cannot be read has an error and no answer."""
        return self.rows_of(entries_of(part), part.number)

    def rows_of(self, entries: Iterator[Entry], part: int) -> Iterator[Row]:
        """The same of any entries.

        Batches are cut at the same places whoever calls: after ``batch`` pictures that could be read, or when they hold
        too many pixels.
        """
        held: list[tuple[Entry, Picture | DataError]] = []
        count, pixels, number = 0, 0, 0
        for entry, found in self._reader.read(entries, self._batch + 8):
            held.append((entry, found))
            if isinstance(found, Picture):
                count, pixels = count + 1, pixels + found.size[0] * found.size[1]
            if count == self._batch or pixels >= PIXEL_LIMIT or len(held) >= 4 * self._batch:
                for row in self._made(held):
                    yield {"part": part, "row": number, **row}
                    number += 1
                held, count, pixels = [], 0, 0
        for row in self._made(held):
            yield {"part": part, "row": number, **row}
            number += 1

    def _made(self, held: list[tuple[Entry, Picture | DataError]]) -> list[Row]:
        pictures = [found for _, found in held if isinstance(found, Picture)]
        bad: dict[str, DataError] = {}
        try:
            seen = {
                id(each.source): each
                for each in self._predictor.look_many(
                    pictures,
                    self._job.ask,
                    batch_size=max(1, len(pictures)),
                    on_bad=lambda source, error: bad.update({_name_of(source): error}),
                    **self._job.options,
                )
            }
        except (MemoryError, RuntimeError) as error:
            if isinstance(error, RuntimeError) and "memory" not in str(error).lower():
                raise
            raise ConfigError(
                f"{len(pictures)} pictures together do not fit into memory ({' '.join(str(error).split())[:120]}); "
                "take a smaller `batch_size`, or fewer actors on a machine"
            ) from error
        rows = []
        for entry, found in held:
            if isinstance(found, Picture) and id(found) in seen:
                rows.append(row_of(entry, seen[id(found)], self._job))
            else:
                reason = found if isinstance(found, DataError) else bad.get(entry.source, DataError("no answer"))
                rows.append(self._bad(entry, reason))
        return rows

    def _bad(self, entry: Entry, error: DataError) -> Row:
        row: Row = {"source": entry.source, "name": entry.name, "model": self._predictor.name}
        return {**row, "question": self._job.ask, "error": str(error)}


def row_of(entry: Entry, seen: Sighting, job: Job) -> Row:
    """The row of one sighting; see :mod:`saccade.scale.schema` for its columns."""
    height, width = seen.picture.size
    return {
        "source": entry.source,
        "name": entry.name,
        "model": seen.model,
        "question": seen.question,
        "answer": seen.answer if seen.is_answered else None,
        "confidence": seen.confidence if seen.is_answered else None,
        "raw": seen.said.raw_confidence if seen.is_answered else None,
        "alternatives": [{"answer": word, "confidence": share} for word, share in seen.alternatives],
        "labels": None
        if seen.labels is None
        else [{"label": word, "confidence": share} for word, share in seen.labels],
        "height": height,
        "width": width,
        **_places(seen, job),
        "fit": seen.fit.p,
        "notes": list(seen.notes),
        "error": None,
    }


def _places(seen: Sighting, job: Job) -> Mapping[str, object]:
    """Where it looked: maps, the peak of the total, and boxes of crops."""
    if not seen.has_places:
        return {"peak_x": None, "peak_y": None, "boxes": [], "maps": []}
    size = map_size(seen.picture.size, job.side)
    total, laid = seen.trace.image_maps(size) if job.maps == "all" else (seen.trace.image_map(TOTAL, size), {})
    x, y = geometry.peak(total[0])
    height, width = seen.picture.size
    maps = [] if job.maps == "none" else [encode_map(_array(total[0]))]
    for name, found in laid.items():
        steps = found[0] if found.dim() == 4 else found  # (T,H,W)
        maps += [encode_map(_array(each), name, step) for step, each in enumerate(steps)]
    return {
        "peak_x": (x + 0.5) * width / size[1],
        "peak_y": (y + 0.5) * height / size[0],
        "boxes": list(_boxes(seen)),
        "maps": maps,
    }


def _boxes(seen: Sighting) -> Iterator[dict[str, object]]:
    """The crops, in pixels of the picture."""
    from saccade.metrics.maps.edits import crop_boxes

    for look in seen.trace.looks:
        if look.kind == "crop" and look.grid is not None and look.frame is not None:
            frame = seen.trace.frame_on(look, seen.picture.size).reshape(1, 2, 3)
            x0, y0, x1, y1 = crop_boxes(frame, look.grid)[0].tolist()
            yield {"look": look.name, "x0": x0, "y0": y0, "x1": x1, "y1": y1}


def map_size(picture: Size, side: int) -> Size:
    """(height, width) of a kept map: the shape of the picture, its longer side ``side`` cells at most.

    >>> map_size((480, 640), 64), map_size((100, 100), 64), map_size((20, 30), 64), map_size((1, 5000), 64)
    ((48, 64), (64, 64), (20, 30), (1, 64))
    """
    shrink = min(1.0, side / max(picture))
    height, width = (max(1, math.floor(each * shrink + 0.5)) for each in picture)
    return height, width


def _array(values: Tensor) -> Any:
    return values.to(torch.float32).numpy()


def _name_of(source: object) -> str:
    return source.name if isinstance(source, Picture) else str(source)
