"""Traces on disk: one JSON file that a person can read, one safetensors file that reads back bit-equal.

``NAME.json`` holds the answer in words, the looks' names and kinds, and the digest of ``NAME.safetensors``, which
holds every tensor, and the picture (at most 1,024 pixels a side), so that a record can be shown without its source.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load, save
from torch import Tensor

from saccade import geometry
from saccade.config import from_dict, to_dict
from saccade.errors import CheckpointError, DataError, SaccadeError
from saccade.files import read_header, read_json, write_bytes, write_text
from saccade.geometry import Size, checked_size
from saccade.looks import ShortRepr
from saccade.trace import AttentionTrace, Kind, Look, Norm, Role, Total

PICTURE_LIMIT = 1024


@dataclass(frozen=True, eq=False, repr=False)
class Record(ShortRepr):
    """A trace with what a reader needs beside it."""

    trace: AttentionTrace
    #: Model, question, answer in words, confidence, alternatives …: plain JSON values.
    info: Mapping[str, Any] = field(default_factory=dict)
    picture: Image.Image | None = None


@dataclass(frozen=True)
class _LookEntry:
    name: str
    kind: Kind
    role: Role
    norm: Norm
    grid: Size | None
    base: float = 0.0


@dataclass(frozen=True)
class _TensorFile:
    file: str
    sha256: str


@dataclass(frozen=True)
class _Document:
    format: Literal["saccade-record"]
    schema_version: Literal[1]
    info: dict[str, Any]
    total: Total
    meta: dict[str, Any]
    looks: tuple[_LookEntry, ...]
    tensors: _TensorFile


_FLOATS, _WHOLE = frozenset({"F64", "F32", "F16", "BF16"}), frozenset({"I64", "I32", "U8", "BOOL"})
_COUNTED = frozenset({"choice", "active", "emits", "image_size", "picture"})  # What is counted, not measured.
_ENTRY_FIELDS = tuple(_LookEntry.__dataclass_fields__)
_TENSOR_FIELDS = frozenset(Look.__dataclass_fields__).difference(_ENTRY_FIELDS)


def write_record(stem: Path | str, record: Record) -> Path:
    """Write ``stem.json`` and ``stem.safetensors``, both or neither; returns the path of the JSON file."""
    stem = Path(stem)
    trace = record.trace.detach().cpu()
    data = save({name: tensor.contiguous().clone() for name, tensor in _tensors(trace, record.picture).items()})
    document = _Document(
        format="saccade-record",
        schema_version=1,
        info=dict(record.info),
        total=trace.total,
        meta=dict(trace.meta),
        looks=tuple(_LookEntry(**{name: getattr(look, name) for name in _ENTRY_FIELDS}) for look in trace.looks),
        tensors=_TensorFile(f"{stem.name}.safetensors", hashlib.sha256(data).hexdigest()),
    )
    text = _json_text(document)  # before anything is written: it may be refused
    tensor_file, text_file = stem.with_name(document.tensors.file), stem.with_name(f"{stem.name}.json")
    before = tensor_file.read_bytes() if tensor_file.exists() else None
    write_bytes(tensor_file, data)
    try:
        return write_text(text_file, text)
    except BaseException:  # the old pair is better than a new half
        if before is None:
            tensor_file.unlink(missing_ok=True)
        else:
            tensor_file.write_bytes(before)
        raise


def read_record(path: Path | str) -> Record:
    """Read a record by the path of its JSON file (or the stem); the digest is checked before tensors are parsed."""
    path = Path(path)
    path = path if path.suffix == ".json" else path.with_name(f"{path.name}.json")
    values = read_json(path)
    try:
        document = from_dict(_Document, values)
        tensors = _read_tensors(path, document.tensors)
        picture = tensors.pop("picture", None)
        trace = _trace(document, tensors).validate()
        sizes = [look.grid for look in trace.looks if look.grid is not None]
        for size in [*sizes, *([] if trace.image_size is None else trace.image_size.tolist())]:
            checked_size(size)  # no trace lies on a crop or a picture without pixels
        canvas = geometry.identity() if trace.canvas is None else trace.canvas.double()
        if not bool(canvas.isfinite().all()) or bool((torch.linalg.det(canvas[..., :2]) == 0).any()):
            raise DataError("its canvas cannot be inverted")
    except SaccadeError as error:
        raise CheckpointError(f"{path}: {error}") from error
    return Record(trace, document.info, None if picture is None else Image.fromarray(picture.numpy()))


def _tensors(trace: AttentionTrace, picture: Image.Image | None) -> dict[str, Tensor]:
    optional = {"answer": trace.answer, "canvas": trace.canvas, "image_size": trace.image_size}
    tensors = {name: tensor for name, tensor in optional.items() if tensor is not None}
    for number, look in enumerate(trace.looks):
        tensors |= {f"looks.{number}.{name}": tensor for name, tensor in look.tensors().items()}
    if picture is not None:
        small = picture.convert("RGB")  # a copy
        small.thumbnail((PICTURE_LIMIT, PICTURE_LIMIT))  # does nothing to a smaller one
        tensors["picture"] = torch.from_numpy(np.array(small))  # (H,W,3)
    return tensors


def _json_text(document: _Document) -> str:
    values = to_dict(document)
    for look in values["looks"]:
        if not look["base"]:  # as in records from before there was one
            del look["base"]
    try:
        text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise DataError(f"the record's info and meta must be plain JSON values: {error}") from error
    try:
        text.encode()
    except UnicodeEncodeError:  # the name of a picture may hold bytes that are not UTF-8
        return json.dumps(values, indent=2, allow_nan=False) + "\n"
    return text


def _read_tensors(path: Path, entry: _TensorFile) -> dict[str, Tensor]:
    """The tensors of the file that lies beside ``path``, once its digest is what the JSON says."""
    if Path(entry.file).name != entry.file or not entry.file.endswith(".safetensors"):
        raise DataError(f"its tensors must be a .safetensors file beside it, found '{entry.file}'")
    file = path.with_name(entry.file)
    for name, header in read_header(file, entry.sha256).items():
        place = name.rpartition(".")[2]
        kinds = _WHOLE if place in _COUNTED else _FLOATS | _WHOLE if place == "answer" else _FLOATS
        fits = place != "picture" or (header.dtype == "U8" and len(header.shape) == 3 and header.shape[-1] == 3)
        if header.dtype not in kinds or 0 in header.shape or not fits:
            raise DataError(f"'{name[:80]}' cannot be {header}")
    return load(file.read_bytes())


def _trace(document: _Document, tensors: dict[str, Tensor]) -> AttentionTrace:
    optional = {name: tensors.pop(name, None) for name in ("answer", "canvas", "image_size")}
    looks = []
    for number, entry in enumerate(document.looks):
        fields: dict[str, Any] = {}
        for name in _TENSOR_FIELDS:
            fields[name] = tensors.pop(f"looks.{number}.{name}", None)
        looks.append(Look(**to_dict(entry) | {"grid": entry.grid}, **fields))
    if tensors:
        raise DataError(f"tensors that belong to no look: {', '.join(sorted(tensors))}")
    return AttentionTrace(
        looks=tuple(looks),
        answer=optional["answer"],
        canvas=optional["canvas"],
        image_size=optional["image_size"],
        total=document.total,
        meta=document.meta,
    )
