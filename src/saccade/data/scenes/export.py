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
from saccade.data.tables.splits import Split
from saccade.errors import DataError, OutputError
from saccade.families.caption.data import CaptionDataConfig, CaptionScenes
from saccade.families.caption.scenes import SCENE_VOCABULARY
from saccade.families.multiset.data import MultisetDataConfig, MultisetScenes
from saccade.families.question.scene_data import SceneData, SceneDataConfig

_BATCH = 256

Progress = Callable[[int, int], None]
"""Called with (scenes written, scenes in all)."""


def write_scenes(
    config: SceneDataConfig,
    split: Split,
    count: int,
    out_dir: Path,
    *,
    start: int = 0,
    allow_pack: bool = False,
    progress: Progress | None = None,
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
        allow_pack: see :class:`SceneData`.
        progress: called with (scenes written, scenes in all).

    Raises:
        OutputError: the folder holds something already, or cannot be written.
    """
    _check_request(count, start, out_dir)
    stream = SceneData(config, split, allow_pack=allow_pack).stream
    material = {"glyphs": stream.glyphs.name, "background": stream.spec.background.name}

    def facts(layout: SceneLayout, scene: int, file: str) -> dict[str, Any]:
        index = int(layout.index[scene])
        named = {"file": file, "seed": config.seed, "split": split, "index": index}
        return {**named, **material, "objects": _objects(layout, scene)}

    what = f"{config.name} {split} ({config.protocol})"
    return _write(stream, facts, what, range(start, start + count), Path(out_dir), progress)


def write_multisets(
    config: MultisetDataConfig,
    split: Split,
    count: int,
    out_dir: Path,
    *,
    start: int = 0,
    allow_pack: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write scenes of a generated multiset as PNGs and ``scenes.jsonl``, which ``jsonl:`` reads again.

    Each line holds image, labels and boxes in reading order, seed, split, index and glyphs; all else is as in
    :func:`write_scenes`.
    """
    if not config.is_generated:
        raise DataError(f"{config.name} is read, not generated; there is nothing to make")
    _check_request(count, start, out_dir)
    scenes = MultisetScenes(config, split, torch.device("cpu"), allow_pack=allow_pack)

    def facts(layout: Layout, scene: int, file: str) -> dict[str, Any]:
        present = layout.present[scene]
        labels = [scenes.classes[label] for label in layout.classes[scene][present].tolist()]
        named = {"image": file, "labels": labels, "boxes": layout.boxes[scene][present].tolist()}
        index = int(layout.index[scene])
        return {**named, "seed": config.seed, "split": split, "index": index, "glyphs": scenes.glyphs.name}

    return _write(scenes.stream, facts, f"{config.name} {split}", range(start, start + count), Path(out_dir), progress)


def write_captions(
    config: CaptionDataConfig,
    split: Split,
    count: int,
    out_dir: Path,
    *,
    start: int = 0,
    allow_pack: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write captioned scenes as PNGs and ``scenes.jsonl``, which ``jsonl:`` reads again.

    Each line holds image, caption, seed, split, index, glyphs and objects in the order in which they are named; all
    else is as in :func:`write_scenes`.
    """
    if not config.is_generated:
        raise DataError(f"{config.name} is read, not generated; there is nothing to make")
    _check_request(count, start, out_dir)
    scenes = CaptionScenes(config, split, torch.device("cpu"), SCENE_VOCABULARY, allow_pack=allow_pack)

    def facts(layout: SceneLayout, scene: int, file: str) -> dict[str, Any]:
        words = scenes.grammar.describe(layout[scene : scene + 1]).words[0].tolist()
        named = {"image": file, "caption": SCENE_VOCABULARY.decode(words), "seed": config.seed, "split": split}
        index = int(layout.index[scene])
        return {**named, "index": index, "glyphs": scenes.glyphs.name, "objects": _objects(layout, scene)}

    return _write(scenes.stream, facts, f"{config.name} {split}", range(start, start + count), Path(out_dir), progress)


def _check_request(count: int, start: int, out_dir: Path) -> None:
    if count < 1 or start < 0:
        raise DataError(f"count must be at least 1 and start at least 0, found {count} and {start}")
    out_dir = Path(out_dir)
    if out_dir.exists() and (not out_dir.is_dir() or any(out_dir.iterdir())):
        raise OutputError(f"{out_dir}: exists and is not an empty folder; name another, or empty it")


def _write(
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
        (place / "scenes.jsonl").open("w", encoding="utf-8") as lines,
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
