"""Rows about pictures, of which Parquet files are made: what was answered, how surely, and where the model looked.

The columns and their types stand in ``docs/how-to/scale.md``. A map lies on the whole picture. Its ``data`` is
``height · width`` numbers, float16, little-endian, row by row, the largest 1; times ``scale`` they are the weights.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import numpy.typing as npt

from saccade import geometry
from saccade.config import Count, Within, from_dict
from saccade.data.pictures.reading import Picture
from saccade.errors import ConfigError, DataError, MissingExtraError
from saccade.families.answering import Question
from saccade.predict import Predictor
from saccade.sighting import Sighting

if TYPE_CHECKING:
    import pyarrow

TOTAL = "total"  # What the map of all looks together is called
KeptMaps = Literal["total", "all", "none"]


def parquet_modules() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("rows in Parquet", "tables") from error


def row_schema() -> pyarrow.Schema:
    """The columns of a row."""
    arrow, _ = parquet_modules()
    text, whole, number = arrow.string(), arrow.int32(), arrow.float32()
    sizes = [(name, whole) for name in ("step", "height", "width")]
    kinds = {
        **dict.fromkeys(("part", "row", "height", "width"), whole),
        **dict.fromkeys(("confidence", "raw", "peak_x", "peak_y", "fit"), number),
        "alternatives": arrow.list_(arrow.struct([("answer", text), ("confidence", number)])),
        "labels": arrow.list_(arrow.struct([("label", text), ("confidence", number)])),
        "boxes": arrow.list_(arrow.struct([("look", text), *((side, number) for side in ("x0", "y0", "x1", "y1"))])),
        "maps": arrow.list_(arrow.struct([("look", text), *sizes, ("scale", number), ("data", arrow.binary())])),
        "notes": arrow.list_(text),
    }
    names = (
        "part row source name model question answer confidence raw alternatives labels height width peak_x peak_y "
        "boxes maps fit notes error"
    )
    return arrow.schema([(name, kinds.get(name, text)) for name in names.split()])


@dataclass(frozen=True)
class FolderJob:
    """What is asked of every picture."""

    model: str
    digest: str  # Of what is known of the model and of its weights: all machines must have the same
    ask: str | None
    options: dict[str, Any]
    batch_size: Count
    maps: KeptMaps
    side: Annotated[int, Within(1, 1024)]
    part: Count = 1  # Pictures in an output file


def job_of(
    predictor: Predictor, model: str, ask: Question | None, options: Mapping[str, object], **settings: object
) -> FolderJob:
    """What is asked, once it is known that the model can answer it; ``settings`` are the other fields of the job."""
    if predictor.facts.preprocessing is None:
        raise ConfigError(f"engine: '{predictor.name}' does not read pictures, and a row is about a picture")
    predictor.question(ask)
    predictor.responder.options(dict(options))
    where = os.path.abspath(model) if os.path.isdir(model) else model
    settings |= {"model": where, "digest": digest_of(predictor), "ask": None if ask is None else str(ask)}
    settings["options"] = {name: value for name, value in options.items() if value is not None}
    return from_dict(FolderJob, settings)


def digest_of(predictor: Predictor) -> str:
    """Digest of the facts of a model, with that of its weights among them."""
    return hashlib.sha256(repr(predictor.facts).encode()).hexdigest()[:32]


def table_of(
    predictor: Predictor, job: FolderJob, pictures: Sequence[tuple[str, str, str | Picture | DataError]], part: int = 0
) -> pyarrow.Table:
    """A row for each picture, in order; one that cannot be read has an error and no answer.

    ``pictures`` are source, name, and the path, the picture or what is wrong with it.
    """
    answers: dict[str, dict[str, object]] = {}

    def skip(source: object, error: DataError) -> None:
        answers[_key(source)] = {"error": str(error)}

    readable = [picture for _, _, picture in pictures if not isinstance(picture, DataError)]
    for sighting in predictor.look_many(readable, job.ask, batch_size=job.batch_size, on_bad=skip, **job.options):
        answers[sighting.source.name] = answer_columns(sighting, job)
    rows = []
    for row, (source, name, picture) in enumerate(pictures):
        answer = {"error": str(picture)} if isinstance(picture, DataError) else answers[_key(picture)]
        about = {"part": part, "row": row, "source": source, "name": name, "model": predictor.name}
        rows.append({**about, "question": job.ask, **answer})
    arrow, _ = parquet_modules()
    return arrow.Table.from_pylist(rows, schema=row_schema())


def _key(source: object) -> str:
    return source.name if isinstance(source, Picture) else str(source)


def answer_columns(sighting: Sighting, job: FolderJob) -> dict[str, object]:
    """What a row says of one sighting."""
    height, width = sighting.picture.size
    pairs = sighting.labels
    labels = None if pairs is None else [{"label": word, "confidence": share} for word, share in pairs]
    columns: dict[str, object] = {
        "question": sighting.question,
        "alternatives": [{"answer": word, "confidence": share} for word, share in sighting.alternatives],
        "labels": labels,
        "height": height,
        "width": width,
        "boxes": [],
        "maps": [],
        "fit": sighting.fit.p,
        "notes": list(sighting.notes),
    }
    if sighting.is_answered:
        columns |= {
            "answer": sighting.answer,
            "confidence": sighting.confidence,
            "raw": sighting.full_answer.raw_confidence,
        }
    if not sighting.has_places:
        return columns
    size = map_size((height, width), job.side)
    total, laid = sighting.trace.image_maps(size) if job.maps == "all" else (sighting.trace.image_map(TOTAL, size), {})
    x, y = geometry.peak(total[0])
    maps = [] if job.maps == "none" else [encode_map(total[0].float().numpy())]
    for name, weights in laid.items():
        steps = weights[0] if weights.dim() == 4 else weights  # (T,H,W)
        maps += [encode_map(values.float().numpy(), name, step) for step, values in enumerate(steps)]
    peak = {"peak_x": (x + 0.5) * width / size[1], "peak_y": (y + 0.5) * height / size[0]}
    return {**columns, **peak, "boxes": list(_boxes(sighting)), "maps": maps}


def _boxes(sighting: Sighting) -> Iterator[dict[str, object]]:
    from saccade.metrics.maps.edits import crop_boxes

    for look in sighting.trace.looks:
        if look.kind == "crop" and look.grid is not None and look.frame is not None:
            frame = sighting.trace.frame_on(look, sighting.picture.size).reshape(1, 2, 3)
            x0, y0, x1, y1 = crop_boxes(frame, look.grid)[0].tolist()
            yield {"look": look.name, "x0": x0, "y0": y0, "x1": x1, "y1": y1}


def map_size(picture: geometry.Size, side: int) -> geometry.Size:
    """(height, width) of a kept map: the shape of the picture, its longer side ``side`` cells at most.

    >>> map_size((480, 640), 64), map_size((20, 30), 64), map_size((1, 5000), 64)
    ((48, 64), (20, 30), (1, 64))
    """
    shrink = min(1.0, side / max(picture))
    height, width = (max(1, math.floor(pixels * shrink + 0.5)) for pixels in picture)
    return height, width


def encode_map(values: npt.NDArray[np.float32], look: str = TOTAL, step: int = 0) -> dict[str, object]:
    r"""A map (H,W) as a value of the column ``maps``.

    >>> stored = encode_map(np.array([[0.0, 4.0]], dtype=np.float32))
    >>> stored["scale"], stored["data"], decode_map(stored).tolist()
    (4.0, b'\x00\x00\x00<', [[0.0, 4.0]])
    """
    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    data = (values / np.float32(scale)).astype("<f2").tobytes()
    height, width = values.shape
    return {"look": look, "step": step, "height": height, "width": width, "scale": scale, "data": data}


def decode_map(stored: Mapping[str, Any]) -> npt.NDArray[np.float32]:
    """The map (H,W) in a value of the column ``maps``."""
    values = np.frombuffer(stored["data"], dtype="<f2").reshape(stored["height"], stored["width"])
    return values.astype(np.float32) * np.float32(stored["scale"])
