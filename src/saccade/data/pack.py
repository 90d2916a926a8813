"""The 2,000 digits that ship with saccade: one PNG sheet and one JSON of labels, origin and digests.

So that pictures can be made, models tried and tests run on a machine that has never downloaded anything.
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from saccade.data.glyphs import CLASSES, GlyphSet
from saccade.errors import DataError

PACK_NAME = "mnist-test-pack-2000"
_FOLDER = Path(__file__).parent / "packs"
_PER_CLASS = 200
_COLUMNS = 50
_SIDE = 28


@lru_cache
def load_pack() -> GlyphSet:
    """The shipped glyphs, checked against the digests written beside them."""
    facts = json.loads((_FOLDER / f"{PACK_NAME}.json").read_text(encoding="utf-8"))
    sheet_path = _FOLDER / facts["sheet"]
    found = hashlib.sha256(sheet_path.read_bytes()).hexdigest()
    if found != facts["sha256"]:
        raise DataError(f"{sheet_path.name}: SHA-256 is {found}, not {facts['sha256']}; reinstall saccade")
    with Image.open(sheet_path, formats=("PNG",)) as sheet:
        pixels = np.array(sheet)
    rows = pixels.shape[0] // _SIDE
    glyphs = pixels.reshape(rows, _SIDE, _COLUMNS, _SIDE).swapaxes(1, 2).reshape(-1, _SIDE, _SIDE)
    return GlyphSet(torch.from_numpy(glyphs.copy()), torch.tensor(facts["labels"]), PACK_NAME)


def write_pack(mnist_test: GlyphSet, folder: Path = _FOLDER) -> None:
    """Make the pack anew: the first 200 test glyphs of each class, digit by digit."""
    ids = torch.cat([(mnist_test.labels == label).nonzero().squeeze(1)[:_PER_CLASS] for label in range(CLASSES)])
    glyphs = mnist_test.images[ids].numpy()
    sheet = glyphs.reshape(-1, _COLUMNS, _SIDE, _SIDE).swapaxes(1, 2).reshape(-1, _COLUMNS * _SIDE)
    folder.mkdir(parents=True, exist_ok=True)
    sheet_path = folder / f"{PACK_NAME}.png"
    Image.fromarray(sheet).save(sheet_path, optimize=True)
    facts = {
        "name": PACK_NAME,
        "sheet": sheet_path.name,
        "sha256": hashlib.sha256(sheet_path.read_bytes()).hexdigest(),
        "pixels_sha256": hashlib.sha256(glyphs.tobytes()).hexdigest(),
        "columns": _COLUMNS,
        "attribution": "MNIST database of handwritten digits, Y. LeCun, C. Cortes, C. Burges; a selection, unchanged",
        "licence": "CC BY-SA 3.0",
        "source": "MNIST test part (t10k), first 200 of each class",
        "labels": mnist_test.labels[ids].tolist(),
        "source_indices": ids.tolist(),
    }
    (folder / f"{PACK_NAME}.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")
