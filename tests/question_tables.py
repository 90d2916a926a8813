"""Small tables of one's own pictures: two coloured squares on grey, "what colour is the upper, the lower one?".

The upper has a white and the lower a black dot inside, by which a network that knows no positions can tell them apart.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

from PIL import Image, ImageDraw

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 60), "blue": (40, 60, 230)}
DOTS = {"upper": (255, 255, 255), "lower": (0, 0, 0)}
SIDE, SQUARE, DOT = 48, 12, 4
# Numbers of pictures; every pair of colours comes six times.
SPLITS = {"train": range(36), "val": range(36, 45), "test": range(45, 54)}


def write_table(folder: Path, *, evidence: str = "box", several: bool = False) -> Path:
    """Write pictures and ``table.csv`` into ``folder``; each picture is asked about twice.

    Args:
        folder: is made if it is not there.
        evidence: column of the truth: "box" of the square, "point" at its middle (beside the box of both squares), or
            "" for none.
        several: two labels for each question, the colour and "square".
    """
    folder.mkdir(parents=True, exist_ok=True)
    pairs = list(itertools.product(COLOURS, repeat=2))
    rows = []
    for split, numbers in SPLITS.items():
        for number in numbers:
            name = f"{number:02}.png"
            left = 4 + 7 * number % (SIDE - SQUARE - 8)
            corners = {"upper": (left, 6), "lower": (left, 30)}
            picture = Image.new("RGB", (SIDE, SIDE), (90 + number // 36,) * 3)  # no two pictures are alike
            for (query, (x, y)), colour in zip(corners.items(), pairs[number % len(pairs)]):
                ImageDraw.Draw(picture).rectangle((x, y, x + SQUARE - 1, y + SQUARE - 1), fill=COLOURS[colour])
                ImageDraw.Draw(picture).rectangle(
                    (x + DOT, y + DOT, x + 2 * DOT - 1, y + 2 * DOT - 1), fill=DOTS[query]
                )
                label = f"{colour}; square" if several else colour
                places = {
                    "box": {"box": f"{x} {y} {x + SQUARE} {y + SQUARE}"},
                    "point": {
                        "point": f"{x + SQUARE / 2} {y + SQUARE / 2}",
                        "box": f"{left} 6 {left + SQUARE} {30 + SQUARE}",
                    },
                    "": {},
                }
                rows.append(
                    {"image": name, "query": query, "labels" if several else "label": label, "split": split}
                    | places[evidence]
                )
            picture.save(folder / name)
    table = folder / "table.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return table
