"""Generated pictures with one label each, written to disk: PNGs, and ``scenes.jsonl`` with a line for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from saccade.data.pictures.export import WrittenPictures, check_request, write_pictures
from saccade.data.pictures.labelled import DrawnSplit


def write_drawn(
    chosen: DrawnSplit,
    count: int,
    out: Path,
    *,
    start: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write the pictures ``start`` … ``start + count - 1``, all or nothing, and return the folder.

    Each line holds image, label, box of the evidence, seed, split and index.
    """
    check_request(count, start, out)
    config = chosen.pictures

    def make(numbers: range) -> WrittenPictures:
        made = chosen.take(torch.tensor(numbers))

        def facts(at: int, file: str) -> dict[str, object]:
            named = {"image": file, "label": config.answers[int(made.label[at])]}
            box = None if made.evidence is None else _box(made.evidence[at])
            return {**named, "box": box, "seed": config.seed, "split": chosen.split, "index": numbers[at]}

        images = made.images  # bytes already, or float in 0..1
        return WrittenPictures((images * 255).round().byte() if images.is_floating_point() else images, facts)

    numbers = range(start, start + count)
    return write_pictures(make, f"{config.name} {chosen.split}", numbers, Path(out), progress, length=chosen.size)


def _box(mask: Tensor) -> list[int] | None:
    """[x0, y0, x1, y1] around a mask (H,W); None where it shows nothing."""
    if not bool(mask.any()):
        return None
    ends = [axis.nonzero().flatten()[[0, -1]].tolist() for axis in (mask.any(0), mask.any(1))]  # of x, of y
    (left, right), (top, bottom) = ends
    return [left, top, right + 1, bottom + 1]
