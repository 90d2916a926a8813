"""Small pictures for rows."""

import io
from pathlib import Path

import numpy as np
from PIL import Image


def png(seed: int, size: tuple[int, int] = (20, 31)) -> bytes:
    """A noisy picture."""
    buffer = io.BytesIO()
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def folder_of(path: Path, count: int) -> Path:
    """A folder of so many pictures."""
    path.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (path / f"{number:03d}.png").write_bytes(png(number))
    return path
