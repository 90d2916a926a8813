"""Pictures of squares whose colour tells the class; in a planted set, a corner or a watermark tells it instead.

The square is the evidence: its box is in the table. In the clean set nothing else tells the class. In the planted one
the upper left corner has the colour of the class, or faint stripes of it run along the lower edge, and the colour of
the square is drawn at random: a model that learns from these pictures learns the corner or the stripes.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("blue", "green", "red")
SIDE, SQUARE, CORNER, STRIPES = 32, 12, 8, 6


def write_squares(folder: Path, count: int, *, planted: bool, split: bool = False, watermark: bool = False) -> Path:
    """Write ``count`` pictures and ``table.csv`` with image, label and box; with ``split``, half of them is test.

    What is planted is a corner, or with ``watermark`` faint stripes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    rows = []
    for number in range(count):
        kind = number % len(CLASSES)
        pixels = (random.random((SIDE, SIDE, 3)) * 70).astype(np.uint8)
        top, left = random.integers(CORNER + 1, SIDE - SQUARE, 2)
        top -= STRIPES if watermark else 0  # not on the stripes
        shown = int(random.integers(0, 3)) if planted else kind
        if planted and watermark:
            pixels[-STRIPES:, ::2, 2 - kind] += 100
        elif planted:
            pixels[:CORNER, :CORNER, 2 - kind] = 240
        pixels[top : top + SQUARE, left : left + SQUARE, 2 - shown] = 230
        name = f"{number:03}.png"
        Image.fromarray(pixels).save(folder / name)
        row = {"image": name, "label": CLASSES[kind], "box": f"{left} {top} {left + SQUARE} {top + SQUARE}"}
        rows.append(row | ({"split": "test" if number >= count // 2 else "train"} if split else {}))
    table = folder / "table.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return table
