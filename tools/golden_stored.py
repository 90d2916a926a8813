"""What tests/golden holds and the suite compares on any machine: rounded sightings, and a digest of causal-v1."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch.nn.functional as F
from golden_quick import PICTURES, command, seen_by, shipped

from saccade.data import read_causal_set

GOLDEN = PICTURES.parent
SIGHTINGS, CAUSAL, RUN = GOLDEN / "sightings.json", GOLDEN / "causal.json", GOLDEN / "stopped-run.zip"
BLOCKS = 4
"""The total map is kept as its means over this many blocks along each side, as shares of the largest one."""


def store() -> None:
    """Write both anew."""
    lines = [f"{json.dumps(model)}: {{\n{_rows(rounded(model))}\n}}" for model in shipped()]
    SIGHTINGS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    CAUSAL.write_text(json.dumps(causal_digest(32), indent=1) + "\n", encoding="utf-8")


def _rows(told: dict[str, Any]) -> str:
    return ",\n".join(f" {json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in told.items())


def rounded(model: str) -> dict[str, Any]:
    """What a model says, and roughly where it looks, in numbers that hardly depend on the machine."""
    return {name: _rounded(seen) for name, seen in seen_by(model).items()}


def _rounded(seen: Any) -> dict[str, Any]:
    told: dict[str, Any] = {
        "answer": seen.answer,
        "confidence": _short(seen.confidence),
        "alternatives": [[word, _short(share)] for word, share in seen.alternatives[:3]],
        "labels": [[word, _short(share)] for word, share in seen.labels or ()],
        "peaks": [[_short(float(look.weights.max()))] for look in seen.trace.looks if look.weights is not None],
    }
    if seen.is_spatial:
        blocks = F.adaptive_avg_pool2d(seen.trace.image_map("total"), BLOCKS).flatten()  # (16,)
        told["map"] = [_short(float(each)) for each in blocks / blocks.abs().max().clamp(min=1e-12)]
    return told


def _short(number: float) -> float:
    return round(number, 5)


def causal_digest(count: int) -> dict[str, Any]:
    """SHA-256 of the first scenes of causal-v1: truth, pictures and masks, of each scene and of its twins."""
    found = hashlib.sha256()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "causal"
        done = command("data", "make", "causal", "--count", str(count), "--quiet", "--out", str(folder))
        if done["exit"]:
            raise SystemExit(done["stderr"])
        for scene in read_causal_set(folder):
            found.update(f"{scene.question} {scene.answer}".encode())
            for each in (scene, *(scene.twins[twin] for twin in sorted(scene.twins))):
                found.update(np.ascontiguousarray(each.image).tobytes())
                found.update(np.ascontiguousarray(each.masks).tobytes())
    return {"count": count, "sha256": found.hexdigest()}
