"""Make the shipped digits anew, byte for byte: the first 200 glyphs of each class of MNIST's test part.

python tools/glyph_pack.py [FOLDER]

MNIST is taken from where ``saccade data get mnist`` puts it; without FOLDER the shipped files are written over.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import torch
from PIL import Image

from saccade.data.scenes.glyphs import CLASSES, COLUMNS, FOLDER, PACK_NAME, SIDE, GlyphSet, load_mnist

PER_CLASS = 200


def write_pack(mnist_test: GlyphSet, folder: Path) -> None:
    """Write the sheet and the JSON beside it into ``folder``, digit by digit."""
    ids = torch.cat([(mnist_test.labels == label).nonzero().squeeze(1)[:PER_CLASS] for label in range(CLASSES)])  # (N,)
    glyphs = mnist_test.images[ids].numpy()  # (N,28,28)
    rows = glyphs.reshape(-1, COLUMNS, SIDE, SIDE)  # (R,50,28,28)
    sheet = rows.swapaxes(1, 2).reshape(-1, COLUMNS * SIDE)  # (R·28,50·28)
    folder.mkdir(parents=True, exist_ok=True)
    sheet_path = folder / f"{PACK_NAME}.png"
    Image.fromarray(sheet).save(sheet_path, optimize=True)
    facts = {
        "name": PACK_NAME,
        "sheet": sheet_path.name,
        "sha256": hashlib.sha256(sheet_path.read_bytes()).hexdigest(),
        "pixels_sha256": hashlib.sha256(glyphs.tobytes()).hexdigest(),
        "columns": COLUMNS,
        "attribution": "MNIST database of handwritten digits, Y. LeCun, C. Cortes, C. Burges; a selection, unchanged",
        "licence": "CC BY-SA 3.0",
        "source": "MNIST test part (t10k), first 200 of each class",
        "labels": mnist_test.labels[ids].tolist(),
        "source_indices": ids.tolist(),
    }
    (folder / f"{PACK_NAME}.json").write_text(json.dumps(facts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write_pack(load_mnist("test"), Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
