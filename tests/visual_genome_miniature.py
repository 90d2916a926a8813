"""A miniature of Visual Genome in the official layout: coloured shapes that a small model can learn to tell apart."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

COLOURS = {"red": (200, 30, 30), "green": (30, 160, 60), "blue": (30, 70, 200), "yellow": (230, 210, 40)}
SHAPES = ("disc", "square", "triangle")
SIDE = 64
_FIRST_NUMBER = 2_315_000  # official numbers are of this size


def write_miniature(folder: Path, seed: int = 0, images: int = 60) -> Path:
    """Write ``image_data.json``, ``attributes.json`` (version 1.2), ``VG_100K`` and ``VG_100K_2`` into ``folder``.

    Each image shows two or three shapes, each in a quarter of its own. A shape has its colour as an attribute, and
    ``large`` or ``small`` where it is either. As in the official files names and attributes come in any case and with
    spaces around them, some objects have no attributes at all, and one class and one attribute are rare.
    """
    draw = random.Random(seed)
    metadata, annotations = [], []
    for number in range(_FIRST_NUMBER, _FIRST_NUMBER + images):
        home = "VG_100K" if number % 2 else "VG_100K_2"
        image, objects = _scene(draw, number)
        (folder / home).mkdir(parents=True, exist_ok=True)
        image.save(folder / home / f"{number}.jpg", quality=95)
        metadata.append(
            {
                "image_id": number,
                "url": f"https://cs.stanford.edu/people/rak248/{home}/{number}.jpg",
                "width": SIDE,
                "height": SIDE,
                "coco_id": None,
                "flickr_id": None,
            }
        )
        annotations.append({"image_id": number, "attributes": objects})
    (folder / "image_data.json").write_text(json.dumps(metadata))
    (folder / "attributes.json").write_text(json.dumps(annotations))
    return folder


def _scene(draw: random.Random, number: int) -> tuple[Image.Image, list[dict[str, Any]]]:
    image = Image.new("RGB", (SIDE, SIDE), (draw.randrange(20, 60),) * 3)
    pen = ImageDraw.Draw(image)
    objects = []
    for quarter in draw.sample(range(4), draw.choice((2, 3))):
        shape, colour, side = draw.choice(SHAPES), draw.choice(list(COLOURS)), draw.choice((12, 18, 26))
        x, y = (SIDE // 2 * offset + draw.randrange(SIDE // 2 - side) for offset in (quarter % 2, quarter // 2))
        _draw(pen, shape, (x, y, x + side - 1, y + side - 1), COLOURS[colour])
        size = {12: ["small"], 26: [" Large"]}.get(side, [])
        objects.append(_entry(number, len(objects), shape, [colour, *size], (x, y, side, side)))
    objects.append({**_entry(number, len(objects), "floor", [], (0, 0, SIDE, SIDE)), "names": ["floor "]})
    del objects[-1]["attributes"]  # as some objects of the official file
    if number == _FIRST_NUMBER:
        objects.append(_entry(number, len(objects), "unicorn", ["pensive"], (1, 1, 9, 9)))
    return image, objects


def _entry(image: int, place: int, name: str, attributes: list[str], box: tuple[int, int, int, int]) -> dict[str, Any]:
    x, y, width, height = box
    written = name.upper() if place == 1 else name
    return {
        "object_id": image * 10 + place,
        "names": [written],
        "synsets": [f"{name}.n.01"],
        "attributes": attributes,
        "x": x,
        "y": y,
        "w": width,
        "h": height,
    }


def _draw(pen: ImageDraw.ImageDraw, shape: str, box: tuple[int, int, int, int], colour: tuple[int, int, int]) -> None:
    x0, y0, x1, y1 = box
    if shape == "disc":
        pen.ellipse(box, fill=colour)
    elif shape == "square":
        pen.rectangle(box, fill=colour)
    else:
        pen.polygon([(x0, y1), (x1, y1), ((x0 + x1) / 2, y0)], fill=colour)
