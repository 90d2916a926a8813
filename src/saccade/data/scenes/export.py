"""Scenes on disk: PNG pictures and one JSON line of truth for each, for use outside saccade."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from saccade.atomic import folder_in_place
from saccade.data.scenes.layout import Layout, SceneLayout
from saccade.data.scenes.palette import COLOURS
from saccade.data.scenes.stream import GlyphStream
from saccade.errors import DataError, OutputError

_BATCH = 256
LINES = "scenes.jsonl"

Progress = Callable[[int, int], None]
"""Called with (scenes written, scenes in all)."""


def check_request(count: int, start: int, out_dir: Path) -> None:
    """Refuse a count, a start or a folder that cannot be, before any scene is made."""
    if count < 1 or start < 0:
        raise DataError(f"count must be at least 1 and start at least 0, found {count} and {start}")
    out_dir = Path(out_dir)
    if out_dir.exists() and (not out_dir.is_dir() or any(out_dir.iterdir())):
        raise OutputError(f"{out_dir}: exists and is not an empty folder; name another, or empty it")


def write_stream(
    stream: GlyphStream[Layout],
    facts: Callable[[Layout, int, str], dict[str, Any]],
    what: str,
    numbers: range,
    out_dir: Path,
    progress: Progress | None,
) -> Path:
    """The scenes ``numbers`` of ``stream``: pictures, and a line of ``facts`` (layout, place in it, file) for each."""
    if stream.length is not None and numbers.stop > stream.length:
        raise DataError(
            f"{what} has {stream.length} scenes, "
            f"asked for {numbers.start}..{numbers.stop - 1}; a training split of fresh scenes has no end"
        )
    with (
        folder_in_place(out_dir, durable=False) as place,
        (place / LINES).open("w", encoding="utf-8") as lines,
    ):
        for first in range(numbers.start, numbers.stop, _BATCH):
            batch = range(first, min(first + _BATCH, numbers.stop))
            layout, images = stream.scenes(torch.tensor(batch))
            for b, number in enumerate(batch):
                name = f"{number:08d}.png"
                Image.fromarray(images[b].permute(1, 2, 0).numpy()).save(place / name)
                lines.write(json.dumps(facts(layout, b, name)) + "\n")
            if progress is not None:
                progress(batch.stop - numbers.start, len(numbers))
    return out_dir


def object_facts(layout: SceneLayout, scene: int) -> list[dict[str, Any]]:
    """What is true of each digit of a scene."""
    return [
        {
            "class": int(layout.classes[scene, slot]),
            "colour": COLOURS[int(layout.colour[scene, slot])],
            "rgb": layout.rgb[scene, slot].tolist(),
            "box": layout.boxes[scene, slot].tolist(),
            "scale": round(float(layout.scale[scene, slot]), 4),
        }
        for slot in range(int(layout.count[scene]))
    ]
