"""Tiny pictures with marked objects: noise with plain shapes on it, whose ground is known."""

import json

import numpy as np
from PIL import Image


def ground(number, size=(48, 64)):
    """Soft noise (H,W,3) of its own for each number."""
    rng = np.random.default_rng(number)
    small = Image.fromarray(rng.integers(60, 200, (6, 8, 3), dtype=np.uint8))
    return np.array(small.resize(size[::-1], Image.Resampling.BILINEAR))


def square(size=(48, 64), top=10, left=12, side=12):
    mask = np.zeros(size, bool)
    mask[top : top + side, left : left + side] = True
    return mask


def painted(number, *masks, size=(48, 64)):
    pixels = ground(number, size)
    for at, mask in enumerate(masks):
        pixels[mask] = [(250, 20, 20), (20, 250, 20), (20, 20, 250), (250, 250, 20), (250, 20, 250)][at]
    return pixels


def label_map(*masks):
    return sum(np.where(mask, np.uint8(at + 1), np.uint8(0)) for at, mask in enumerate(masks))


def pets(folder, count=6):
    """Folders ``images`` and ``masks`` of pictures with one square each, and ``labels.csv``."""
    for number in range(count):
        mask = square(top=4 + 3 * number, left=5 + 5 * number)
        save(folder / "images" / f"pet{number}.png", painted(number, mask))
        save(folder / "masks" / f"pet{number}.png", mask.astype(np.uint8) * 255)
    rows = "".join(f"pet{number}.png,{'cat' if number % 2 else 'dog'}\n" for number in range(count))
    (folder / "labels.csv").write_text("image,label\n" + rows)
    return folder


def save(path, values, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    (values if isinstance(values, Image.Image) else Image.fromarray(values)).save(path, **options)


def coco(path, names, annotations, size=(48, 64), categories=("dog", "ball")):
    """A file of COCO annotations: (number of the picture, category, polygon or run lengths, whether a crowd)."""
    keys, (height, width) = ("image_id", "category_id", "segmentation", "iscrowd"), size
    images = [{"id": at, "file_name": name, "height": height, "width": width} for at, name in enumerate(names)]
    named = [{"id": at, "name": name} for at, name in enumerate(categories, start=1)]
    listed = [dict(zip(keys, annotation)) for annotation in annotations]
    path.write_text(json.dumps({"images": images, "categories": named, "annotations": listed}))
