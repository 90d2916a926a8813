"""Scenes on disk: PNG pictures and one JSON line of truth for each, for use outside saccade."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from saccade.data.pictures.export import Progress, WrittenPictures, write_pictures
from saccade.data.scenes.drawing import COLOURS
from saccade.data.scenes.layout import Layout, SceneLayout
from saccade.data.scenes.stream import GlyphStream


def write_stream(
    stream: GlyphStream[Layout],
    facts: Callable[[Layout, int, str], dict[str, object]],
    what: str,
    numbers: range,
    out_dir: Path,
    progress: Progress | None,
) -> Path:
    """The scenes ``numbers`` of ``stream``: pictures, and a line of ``facts`` (layout, place in it, file) for each."""

    def make(batch: range) -> WrittenPictures:
        layout, images = stream.scenes(torch.tensor(batch))
        return WrittenPictures(images, lambda scene, file: facts(layout, scene, file))

    return write_pictures(make, what, numbers, out_dir, progress, length=stream.length)


def object_facts(layout: SceneLayout, scene: int) -> list[dict[str, object]]:
    """What is true of each digit of a scene."""
    return objects_facts(layout[scene : scene + 1])[0]


def objects_facts(layout: SceneLayout) -> list[list[dict[str, object]]]:
    """What is true of each digit of every scene."""
    columns = (layout.classes, layout.colour, layout.rgb, layout.boxes, layout.scale)
    return [
        [
            {"class": digit, "colour": COLOURS[colour], "rgb": rgb, "box": box, "scale": round(scale, 4)}
            for digit, colour, rgb, box, scale in list(zip(*scene))[:count]
        ]
        for count, *scene in zip(layout.count.tolist(), *(column.tolist() for column in columns))
    ]
