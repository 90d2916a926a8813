"""Small tables of one's own on disk: squares to be asked about, planted shortcuts, and tables read quietly."""

import csv
import itertools
import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from saccade.data import Table, read_table


def read_quietly(reference: str, family: str = "classify", **options: object) -> Table:
    """The table that ``reference`` (READER:PATH) names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return read_table(reference, family, **options)


def pretend_pictures(folder: Path) -> Path:
    """The folder with three files that stand for pictures; a reader decodes none of them."""
    for name in ("a.png", "b.png", "c.png"):
        (folder / name).write_bytes(f"not decoded: {name}".encode())
    return folder


def table_of(file: Path, text: str, family: str, **options: object) -> Table:
    """The table that a file with this ``text`` holds; its suffix names the reader."""
    file.write_text(text, encoding="utf-8")
    return read_quietly(f"{file.suffix[1:]}:{file}", family, **options)


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
    return _written(folder / "table.csv", rows)


CLASSES = ("blue", "green", "red")
PLANTED_SIDE, PLANTED_SQUARE, CORNER, STRIPES = 32, 12, 8, 6


def write_squares(folder: Path, count: int, *, planted: bool, split: bool = False, watermark: bool = False) -> Path:
    """Write ``count`` pictures and ``table.csv`` with image, label and box; with ``split``, half of them is test.

    What is planted is a corner, or with ``watermark`` faint stripes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    rows = []
    for number in range(count):
        kind = number % len(CLASSES)
        pixels = (random.random((PLANTED_SIDE, PLANTED_SIDE, 3)) * 70).astype(np.uint8)
        top, left = random.integers(CORNER + 1, PLANTED_SIDE - PLANTED_SQUARE, 2)
        top -= STRIPES if watermark else 0  # not on the stripes
        shown = int(random.integers(0, 3)) if planted else kind
        if planted and watermark:
            pixels[-STRIPES:, ::2, 2 - kind] += 100
        elif planted:
            pixels[:CORNER, :CORNER, 2 - kind] = 240
        pixels[top : top + PLANTED_SQUARE, left : left + PLANTED_SQUARE, 2 - shown] = 230
        name = f"{number:03}.png"
        Image.fromarray(pixels).save(folder / name)
        row = {
            "image": name,
            "label": CLASSES[kind],
            "box": f"{left} {top} {left + PLANTED_SQUARE} {top + PLANTED_SQUARE}",
        }
        rows.append(row | ({"split": "test" if number >= count // 2 else "train"} if split else {}))
    return _written(folder / "table.csv", rows)


def _written(table: Path, rows: list[dict[str, str]]) -> Path:
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return table
