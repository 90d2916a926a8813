"""Pictures with one square each, and maps of them as a plain script writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

SIZES = ((24, 30), (32, 32), (40, 20))


class Files:
    """Masks as PNG in one folder, maps in others."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.truth = folder, folder / "masks"
        self.rng = np.random.default_rng(0)
        self.masks = {f"p{number:02d}": self._mask(SIZES[number % 3]) for number in range(12)}
        self.truth.mkdir()
        for name, mask in self.masks.items():
            Image.fromarray(mask.astype(np.uint8) * 255).save(self.truth / f"{name}.png")

    def _mask(self, size: tuple[int, int]) -> np.ndarray:
        mask = np.zeros(size, bool)
        top, left = self.rng.integers(0, size[0] - 8), self.rng.integers(0, size[1] - 8)
        mask[top : top + 8, left : left + 8] = True
        return mask

    def maps(self, kind: str) -> Path:
        """A folder of .npy files: oracle, noise or constant maps."""
        made = {
            "oracle": lambda mask: mask.astype(float),
            "noise": lambda mask: self.rng.random(mask.shape),
            "constant": lambda mask: np.ones(mask.shape),
        }
        folder = self.folder / kind
        folder.mkdir()
        for name, mask in self.masks.items():
            np.save(folder / f"{name}.npy", made[kind](mask))
        return folder


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)
