"""Scenes on disk: PNG pictures and one JSON line of truth for each, for use outside saccade."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from saccade.data.pictures.export import Progress, Written, write_pictures
from saccade.data.scenes.layout import Layout, SceneLayout
from saccade.data.scenes.palette import COLOURS
from saccade.data.scenes.stream import GlyphStream


def write_stream(
    stream: GlyphStream[Layout],
    facts: Callable[[Layout, int, str], dict[str, Any]],
    what: str,
    numbers: range,
    out_dir: Path,
    progress: Progress | None,
) -> Path:
    """The scenes ``numbers`` of ``stream``: pictures, and a line of ``facts`` (layout, place in it, file) for each."""

    def make(batch: range) -> Written:
        layout, images = stream.scenes(torch.tensor(batch))
        return Written(images, lambda scene, file: facts(layout, scene, file))

    return write_pictures(make, what, numbers, out_dir, progress, length=stream.length)


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
