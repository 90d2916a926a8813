"""The rows that looking at many pictures writes: one row a picture, in Parquet, with a version.

=============  ===========================================================================================
column         what it holds
=============  ===========================================================================================
part, row      int32: the part of the job, and the row in it; together they number the pictures
source         string: path or URI of the picture; ``SHARD#MEMBER`` in a tar, ``TABLE#ROW`` in a Parquet file
name           string: the path from what all sources have in common, without its suffix
model          string
question       string, null where the model takes none
answer         string, null where there is none
confidence     float32, calibrated where the model is
raw            float32: the confidence before calibration
alternatives   list of {answer: string, confidence: float32}, likeliest first
labels         list of {label: string, confidence: float32}: what was said one after the other; null for one label
height, width  int32: of the picture, upright
peak_x, peak_y float32: the middle of the highest cell of the total map, in pixels of the picture
boxes          list of {look: string, x0, y0, x1, y1: float32}: crops, in pixels of the picture
maps           list of {look: string, step: int32, height: int32, width: int32, scale: float32, data: binary}
fit            float32: p-value of the picture among those that the model learned from; null: not known
notes          list of string: what was done to the picture, and what the model could not use
error          string: why there is no answer; null where there is one
=============  ===========================================================================================

A map lies on the whole picture. ``data`` is ``height · width`` numbers, float16, little-endian, row by row; times
``scale`` they are the weights. The largest is 1, so that small weights keep their digits. Parquet
compresses them (zstd). The metadata of each file has ``saccade``: JSON with the format, the version and the counts of
its rows.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from saccade.errors import DataError, MissingExtraError
from saccade.untrusted import MAX_PIXELS

FORMAT = "saccade-looks"
SCHEMA_VERSION = 1
METADATA = b"saccade"
TOTAL = "total"
"""What the map of all looks together is called."""


def pyarrow() -> tuple[Any, Any]:
    """The modules ``pyarrow`` and ``pyarrow.parquet``."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingExtraError("rows in Parquet", "tables") from error


def arrow_schema(told: Mapping[str, object] | None = None) -> Any:
    """The columns; ``told`` goes into the metadata beside format and version."""
    arrow, _ = pyarrow()
    text, whole, number = arrow.string(), arrow.int32(), arrow.float32()
    pair = [("confidence", number)]
    box = arrow.struct([("look", text), *((side, number) for side in ("x0", "y0", "x1", "y1"))])
    sizes = [(name, whole) for name in ("step", "height", "width")]
    encoded = arrow.struct([("look", text), *sizes, ("scale", number), ("data", arrow.binary())])
    columns = [
        ("part", whole),
        ("row", whole),
        *((name, text) for name in ("source", "name", "model", "question", "answer")),
        ("confidence", number),
        ("raw", number),
        ("alternatives", arrow.list_(arrow.struct([("answer", text), *pair]))),
        ("labels", arrow.list_(arrow.struct([("label", text), *pair]))),
        ("height", whole),
        ("width", whole),
        ("peak_x", number),
        ("peak_y", number),
        ("boxes", arrow.list_(box)),
        ("maps", arrow.list_(encoded)),
        ("fit", number),
        ("notes", arrow.list_(text)),
        ("error", text),
    ]
    values = {"format": FORMAT, "schema_version": SCHEMA_VERSION, **(told or {})}
    return arrow.schema(columns, metadata={METADATA: json.dumps(values).encode()})


def encode_map(values: npt.NDArray[np.float32], look: str = TOTAL, step: int = 0) -> dict[str, object]:
    r"""A map (H,W) as a value of the column ``maps``.

    >>> told = encode_map(np.array([[0.0, 4.0]], dtype=np.float32))
    >>> told["scale"], told["data"], decode_map(told).tolist()
    (4.0, b'\x00\x00\x00<', [[0.0, 4.0]])
    """
    scale = float(np.abs(values).max(initial=0.0)) or 1.0
    data = (values / np.float32(scale)).astype("<f2").tobytes()
    height, width = values.shape
    return {"look": look, "step": step, "height": height, "width": width, "scale": scale, "data": data}


def decode_map(told: Mapping[str, Any]) -> npt.NDArray[np.float32]:
    """The map (H,W) in a value of the column ``maps``; a DataError where its size and its bytes disagree."""
    height, width, data = told["height"], told["width"], told["data"]
    if min(height, width) < 1 or height * width > MAX_PIXELS or len(data) != 2 * height * width:
        raise DataError(
            f"map '{told['look']}': {height}×{width} values and {len(data)} bytes do not fit together; look again"
        )
    values = np.frombuffer(data, dtype="<f2").reshape(height, width).astype(np.float32)
    return values * np.float32(told["scale"])


def parse_metadata(metadata: Mapping[bytes, bytes] | None, where: str) -> dict[str, Any]:
    """What the metadata of a file says, if it is of this format and of a version that is known here."""
    try:
        told = json.loads((metadata or {})[METADATA])
        is_ours, version = told["format"] == FORMAT, int(told["schema_version"])
    except (KeyError, ValueError, TypeError) as error:
        raise DataError(f"{where}: no rows that 'saccade look --engine' wrote; name its folder") from error
    if not is_ours or version > SCHEMA_VERSION or version < 1:
        raise DataError(
            f"{where}: rows of version {version}, and this saccade reads up to {SCHEMA_VERSION}; update saccade"
        )
    return dict(told)
