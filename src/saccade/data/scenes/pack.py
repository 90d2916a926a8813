"""The 2,000 digits that ship with saccade: one PNG sheet and one JSON of labels, origin and digests.

With them, pictures can be made, models tried and tests run on a machine that has downloaded nothing. The sheet has
the glyphs row by row; ``tools/glyph_pack.py`` makes both files from MNIST.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from saccade.data.scenes.glyphs import GlyphSet
from saccade.errors import DataError

PACK_NAME = "mnist-test-pack-2000"
FOLDER = Path(__file__).parent / "packs"
COLUMNS = 50
"""Glyphs in a row of the sheet."""
SIDE = 28
"""Pixels of a glyph, each way."""


@lru_cache
def load_pack() -> GlyphSet:
    """The shipped glyphs, checked against the digests written beside them."""
    facts = json.loads((FOLDER / f"{PACK_NAME}.json").read_text(encoding="utf-8"))
    sheet_path = FOLDER / facts["sheet"]
    found = hashlib.sha256(sheet_path.read_bytes()).hexdigest()
    if found != facts["sha256"]:
        raise DataError(f"{sheet_path.name}: SHA-256 is {found}, not {facts['sha256']}; reinstall saccade")
    with Image.open(sheet_path, formats=("PNG",)) as sheet:
        pixels = np.array(sheet)
    rows = pixels.shape[0] // SIDE
    glyphs = pixels.reshape(rows, SIDE, COLUMNS, SIDE).swapaxes(1, 2).reshape(-1, SIDE, SIDE)
    return GlyphSet(torch.from_numpy(glyphs.copy()), torch.tensor(facts["labels"]), PACK_NAME)
