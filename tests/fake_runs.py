"""Recorded runs made by hand, with the numbers a test asks for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from saccade.config import from_dict
from saccade.recorded import RecordedRun

BOUNDS = {"uniform": 0.0233, "grid_oracle": 0.19}
SCALES = ("(0.5,1]", "(1,1.5]", "(1.5,2]", "(2,2.5]", "(2.5,3]")


def run_values(
    system: str = "soft",
    data: str = "mref",
    protocol: str = "authors",
    glyphs: str = "merged",
    seed: int = 0,
    *,
    accuracy: float = 0.8,
    half_width: float | None = 0.01,
    strength: float = 0.1,
    selectivity: float = 0.5,
    steps: int = 1000,
    model: str | None = None,
    config: dict[str, Any] | None = None,
    command: str = "saccade train soft-mref --out runs/x",
    name: str | None = None,
    n: int = 10_000,
    sha256: str = "",
    backgrounds: str = "",
    drawing: str | None = None,
    scored_on: str = "",
) -> dict[str, Any]:
    """What a results file holds; scenes are drawn as the recipes draw them: like the authors with their sizes.

    ``drawing`` is another one, or empty where none is on record; ``scored_on`` is that of the test scenes.
    """
    drawn = {"authors": "authors"}.get(protocol, "blend") if drawing is None else drawing
    metrics = {"accuracy": accuracy, "accuracy_by_scale": dict.fromkeys(SCALES, accuracy), "swapped_query": 0.2}
    attention = {
        "true_positive_strength": strength, "selectivity": selectivity, "pointing": 0.3, "causal_follow": 0.9,
        "causal_hold": 0.95,
    }  # fmt: skip
    return {
        "name": name or f"{system}-{data}-{protocol}-{glyphs}-seed{seed}",
        "command": command,
        "recipe": {
            "schema_version": 2, "name": f"{system}-{data}",
            "model": {"name": model or system, "config": config or {}}, "seed": seed,
            "batch_size": 256, "phases": [{"name": "main", "steps": steps, "epochs": None}],
        },
        "data": {"name": data, "glyphs": glyphs, "protocol": protocol, **({"drawing": drawn} if drawn else {})},
        "training": {"minutes": 1.5, "machine": "a machine", "sha256": sha256 or f"{system}{data}{seed}"},
        "evaluation": {
            "model": "x", "data": data, "split": "test", "protocol": protocol, "seed": 0, "n": n, "metrics": metrics,
            "attention": attention, "backgrounds": backgrounds, "drawing": scored_on,
            "baselines": {name: {"true_positive_strength": told} for name, told in BOUNDS.items()},
            "intervals": {} if half_width is None else {"accuracy": [accuracy - half_width, accuracy + half_width]},
            "counts": {"accuracy": n},
        },
    }  # fmt: skip


def fake_run(*args: Any, **options: Any) -> RecordedRun:
    """A recorded run."""
    return from_dict(RecordedRun, run_values(*args, **options))


def write_run(folder: Path, *args: Any, **options: Any) -> Path:
    """A results file in ``folder``."""
    values = run_values(*args, **options)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{values['name']}.json"
    path.write_text(json.dumps(values))
    return path
