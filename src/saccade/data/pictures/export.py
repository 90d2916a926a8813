"""Generated pictures on disk: a PNG and one JSON line of truth for each, for use outside saccade."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from torch import Tensor

from saccade.errors import DataError, OutputError
from saccade.files import folder_in_place

_BATCH = 256
LINES = "scenes.jsonl"

Progress = Callable[[int, int], None]  # Called with (pictures written, pictures in all)


Written = tuple[Tensor, list[dict[str, object]]]  # Pictures (B,3,H,W) uint8, and what the line of each says


def check_request(count: int, start: int, out_dir: Path) -> None:
    """Refuse a count, a start or a folder that cannot be, before any picture is made."""
    if count < 1 or start < 0:
        raise DataError(f"count must be at least 1 and start at least 0, found {count} and {start}")
    out_dir = Path(out_dir)
    if out_dir.exists() and (not out_dir.is_dir() or any(out_dir.iterdir())):
        raise OutputError(f"{out_dir}: exists and is not an empty folder; name another, or empty it")


def write_pictures(
    make: Callable[[range, list[str]], Written],
    what: str,
    numbers: range,
    out_dir: Path,
    progress: Progress | None = None,
    *,
    length: int | None = None,
) -> Path:
    """Write the pictures ``numbers``, all or nothing, and return the folder, which must be new or empty.

    Args:
        make: (some numbers, their files) → the pictures.
        what: the name of the data, for messages.
        numbers: which pictures.
        out_dir: a new or empty folder.
        progress: called after every batch.
        length: how many pictures there are; None: without end.
    """
    check_request(len(numbers), numbers.start, out_dir)
    if length is not None and numbers.stop > length:
        raise DataError(
            f"{what} has {length} scenes, "
            f"asked for {numbers.start}..{numbers.stop - 1}; a training split of fresh scenes has no end"
        )
    with (
        folder_in_place(out_dir, durable=False) as place,
        (place / LINES).open("w", encoding="utf-8") as lines,
    ):
        for first in range(numbers.start, numbers.stop, _BATCH):
            batch = range(first, min(first + _BATCH, numbers.stop))
            files = [f"{number:08d}.png" for number in batch]
            for file, image, facts in zip(files, *make(batch, files)):
                Image.fromarray(image.permute(1, 2, 0).numpy()).save(place / file)
                lines.write(json.dumps(facts) + "\n")
            if progress is not None:
                progress(batch.stop - numbers.start, len(numbers))
    return out_dir
