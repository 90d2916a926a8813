"""Scenes on disk: PNG pictures and one JSON line of truth for each, for use outside saccade."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from saccade.atomic import folder_in_place
from saccade.data.attributes import AttributeData, AttributeDataConfig
from saccade.data.glyphs import Split
from saccade.data.layout import SceneLayout
from saccade.data.palette import COLOURS
from saccade.errors import DataError, OutputError

_BATCH = 256


def write_scenes(
    config: AttributeDataConfig,
    split: Split,
    count: int,
    out_dir: Path,
    *,
    start: int = 0,
    allow_pack: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the scenes ``start`` … ``start + count − 1`` of a split as PNGs and ``scenes.jsonl``.

    Each line holds file, seed, split, index, glyphs, background and objects (class, colour, rgb, box, scale). The
    folder appears when all is written, or not at all.

    Args:
        config: which data set.
        split: train, val or test.
        count: how many scenes.
        out_dir: a folder that is empty or does not exist yet.
        start: number of the first scene.
        allow_pack: see :class:`AttributeData`.
        progress: called with (scenes written, scenes in all).

    Raises:
        OutputError: the folder holds something already, or cannot be written.
    """
    if count < 1 or start < 0:
        raise DataError(f"count must be at least 1 and start at least 0, found {count} and {start}")
    out_dir = Path(out_dir)
    if out_dir.exists() and (not out_dir.is_dir() or any(out_dir.iterdir())):
        raise OutputError(f"{out_dir}: exists and is not an empty folder; name another, or empty it")
    stream = AttributeData(config, split, allow_pack=allow_pack).stream
    if stream.length is not None and start + count > stream.length:
        raise DataError(
            f"{config.name} {split} ({config.protocol}) has {stream.length} scenes, "
            f"asked for {start}..{start + count - 1}; split train of 'unlimited' has no end"
        )
    with (
        folder_in_place(out_dir, durable=False) as place,
        (place / "scenes.jsonl").open("w", encoding="utf-8") as lines,
    ):
        for first in range(start, start + count, _BATCH):
            numbers = torch.arange(first, min(first + _BATCH, start + count))
            layout, images = stream.scenes(numbers)
            for b, number in enumerate(numbers.tolist()):
                name = f"{number:08d}.png"
                Image.fromarray(images[b].permute(1, 2, 0).numpy()).save(place / name)
                facts = {
                    "file": name,
                    "seed": config.seed,
                    "split": split,
                    "index": number,
                    "glyphs": stream.glyphs.name,
                    "background": stream.spec.background.name,
                    "objects": _objects(layout, b),
                }
                lines.write(json.dumps(facts) + "\n")
            if progress is not None:
                progress(int(numbers[-1]) + 1 - start, count)
    return out_dir


def _objects(layout: SceneLayout, scene: int) -> list[dict[str, Any]]:
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
