"""What travels to the page as JSON: an answer as ``saccade.view/1``, and a model for the engine of the page.

Weights of looks are never rescaled: base64 of little-endian floats, (T, h, w) for a look on a picture and (T, S) for
one over slots, each with the frame that lays its cells over the original picture, or with the texts of its slots. A
text is "" for an empty slot; the last ``own_slots`` of the others belong to the model. The total is sent at the
picture's resolution, or a smaller one where the picture is large.

The ``kind`` of the answer (``label``, ``labels`` or ``sentence``) and the looks decide what the page draws. ``picture``
is null where the model read something else; ``notes`` say what was done to it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from saccade import geometry
from saccade.families.page import as_base64
from saccade.show.overlay import data_url, png_bytes
from saccade.sighting import Sighting
from saccade.trace import AttentionTrace, Look

SCHEMA = "saccade.view/1"
TOTAL_SIDE = 128  # The longer side of a total map in cells; a picture that is smaller has it pixel by pixel.

Json = dict[str, Any]


def view_of(
    sighting: Sighting,
    *,
    family: str = "",
    png: str | None = None,
    evidence: Tensor | None = None,
    scores: Mapping[str, object] | None = None,
    total: bool = True,
) -> Json:
    """What the page needs to show ``sighting``, as plain JSON values.

    ``png`` None leaves the picture out, for a page that has it; ``evidence`` is a mask (H,W) of the picture.
    """
    image, trace, kind = sighting.source.image, sighting.trace, sighting.full_answer.kind
    size = (1, 1) if image is None else (image.height, image.width)
    words = [word for word, _ in sighting.labels or ()] if kind == "sentence" else None
    picture = {"name": sighting.source.name, "width": size[1], "height": size[0], "png": png}
    view = {
        "schema": SCHEMA,
        "model": sighting.model,
        "family": family,
        "picture": None if image is None else picture,
        "question": sighting.question,
        "answer": sighting.answer,
        "kind": kind,
        "confidence": _finite(sighting.confidence),
        "calibrated": sighting.full_answer.is_calibrated,
        "fit": sighting.fit.to_json(),
        "alternatives": _shares(sighting.alternatives),
        "labels": None if sighting.labels is None else _shares(sighting.labels),
        "words": words,
        "looks": [_look(trace, look, size) for look in trace.looks],
        "total": _total(trace, size) if total and image is not None else None,
        "evidence": None if evidence is None else {"mask_png": mask_url(evidence)},
        "scores": None if scores is None else dict(scores),
        "notes": list(sighting.notes),
    }
    if sighting.on_the_way:
        view["on_the_way"] = [[name, word, _finite(share)] for name, word, share in sighting.on_the_way]
    return view


def picture_url(image: Image.Image) -> str:
    """``image`` as a data address of a PNG."""
    return data_url(png_bytes(image, compress_level=1))  # to be drawn once, on the same machine: speed counts


def mask_url(mask: Tensor) -> str:
    """A mask (H,W) bool as a data address of a PNG, white where it holds."""
    return picture_url(Image.fromarray(mask.to(torch.uint8).mul(255).numpy()).convert("1"))


def _look(trace: AttentionTrace, look: Look, size: geometry.Size) -> Json:
    weights = None if look.weights is None else look.weights[0].reshape(look.steps, *_cells(look))  # (T,h,w) or (T,S)
    entry: Json = {
        "name": look.name,
        "kind": look.kind,
        "role": look.role,
        "norm": look.norm,
        **({"base": look.base} if look.base else {}),
        "steps": look.steps,
        **_floats(weights),
        "active": [True] * look.steps if look.active is None else _steps(look.active.bool()),
        **{name: _steps(getattr(look, name)) for name in ("gain", "choice", "emits")},
        "box": None,
    }
    if not look.is_spatial:
        return entry | {"slots": _slots(trace, look), "own_slots": int(trace.meta.get("own_slots", 0))}
    frame = trace.frame_on(look, size).reshape(-1, 2, 3)[0]  # (2,3)
    entry |= {"grid": list(_cells(look)), "frame": frame.tolist()}
    return entry | ({"box": _box(frame, _cells(look))} if look.kind == "crop" else {})


def _cells(look: Look) -> tuple[int, ...]:
    """(h, w) of a look on a picture, (S,) of one over slots."""
    if look.weights is None:
        return look.grid or (1, 1)
    return tuple(look.weights.shape[-2:] if look.is_spatial else look.weights.shape[-1:])


def _slots(trace: AttentionTrace, look: Look) -> list[str]:
    """The texts that a look over slots lies on, "" for an empty slot; their numbers where the trace has no texts."""
    count = _cells(look)[0]
    texts = trace.meta.get("slots")
    if isinstance(texts, (list, tuple)) and len(texts) <= count:
        return [str(text) for text in texts] + [""] * (count - len(texts))
    return [str(number + 1) for number in range(count)]


def _box(frame: Tensor, grid: tuple[int, ...]) -> list[float]:
    height, width = grid
    corners = torch.tensor([[0, 0], [width, 0], [width, height], [0, height]], dtype=torch.float64)
    at = geometry.apply(frame, corners)  # (4,2) as (x, y)
    return [*at.amin(0).tolist(), *at.amax(0).tolist()]


def _total(trace: AttentionTrace, size: geometry.Size) -> Json | None:
    """All looks together over the picture; None where no look lies on one, and of crops alone: they are frames."""
    spatial = [look for look in trace.looks if look.is_spatial]
    if not spatial or trace.is_nested:
        return None
    shrink = max(1.0, max(size) / TOTAL_SIDE)
    height, width = (max(1, round(side / shrink)) for side in size)
    frame = geometry.scale_shift((size[1] / width, size[0] / height), (0.0, 0.0))
    total = trace.image_map("total", (height, width))[0]  # (h,w)
    base = float(all(look.base for look in trace.looks_of_total))
    adds = {"base": base} if base else {}
    return {"grid": [height, width], **adds, **_floats(total), "frame": frame.tolist()}


def _floats(values: Tensor | None) -> Json:
    if values is None:
        return {"weights": None, "dtype": None}
    kind = "float16" if values.dtype == torch.float16 else "float32"
    values = values.detach().cpu().to(getattr(torch, kind))
    return {"weights": as_base64(values, "<f2" if kind == "float16" else "<f4"), "dtype": kind}


def _steps(values: Tensor | None) -> list[object] | None:
    return None if values is None else [_finite(value) for value in values.reshape(-1).tolist()]


def _shares(pairs: tuple[tuple[str, float], ...]) -> list[list[object]]:
    return [[word, _finite(share)] for word, share in pairs]


def _finite(value: object) -> object:
    """JSON has no word for what is not a number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
