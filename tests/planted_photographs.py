"""Photographs with twins whose pixels are known, and networks made by hand whose cause is known.

Each picture is even ground with a red square (the target) and a green stamp in the corner; two patches where nothing
lies are painted over, by default with the ground itself.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from saccade.data.causal.photographs.format import photograph_digest

SIDE = 64
RED, GREEN, GREY, BLUE = (230, 30, 30), (30, 230, 30), (120, 120, 120), (60, 60, 200)
STAMP = (2, 2, 10)


def write_photographs(folder: Path, count: int = 8, *, patch: Sequence[int] | None = None) -> Path:
    """A set; ``patch`` is the colour of the patches, by default that of the ground."""
    rng, digest = np.random.default_rng(0), hashlib.blake2b(digest_size=32)
    lines = []
    for number in range(count):
        name = f"{number:08d}"
        top, left, new, ground = *rng.integers(16, 30, 2), int(rng.integers(40, 48)), GREY
        target, moved = (int(top), int(left), 14), (int(top), new, 14)
        free = [(48, 4, 12), (48, 24, 12)]
        boxes = {"target": target, "stamp": STAMP}
        row = {
            "id": name, "name": f"{name}.jpg", "size": [SIDE, SIDE], "label": "red", "target": 0, "rest": 0.0,
            "objects": [{"name": n, "box": _box(box), "share": box[2] ** 2 / SIDE**2} for n, box in boxes.items()],
            "left_out": [],
        }  # fmt: skip
        row |= {"image": f"images/{name}.jpg", "mask": f"masks/{name}.png"}
        _save(folder, name, _painted(ground, target, STAMP), _labels(target, STAMP))
        shown = {
            "removed-0": ("removed", 0, _painted(ground, None, STAMP), _labels(None, STAMP), [target]),
            "removed-1": ("removed", 1, _painted(ground, target, None), _labels(target, None), [STAMP]),
            "moved": ("moved", 0, _painted(ground, moved, STAMP), _labels(moved, STAMP), [target, moved]),
            "background": ("background", None, _painted(BLUE, target, STAMP), _labels(target, STAMP), []),
        }
        for at, box in enumerate(free):
            pixels = _painted(ground, target, STAMP)
            _fill(pixels, box, ground if patch is None else patch)
            shown[f"empty-{at}"] = ("empty", None, pixels, _labels(target, STAMP), [box])
        row["twins"] = {}
        for twin, (change, which, pixels, labels, changed) in shown.items():
            where = np.zeros((SIDE, SIDE), np.uint8)
            for box in changed:
                _fill(where, box, 255)
            _save(folder, f"{name}-{twin}", pixels, labels, where)
            row["twins"][twin] = {
                "image": f"images/{name}-{twin}.jpg", "mask": f"masks/{name}-{twin}.png",
                "changed": f"changed/{name}-{twin}.png", "change": change, "object": which, "label": "red",
                "box": None, "ground": None,
            }  # fmt: skip
        row["digest"] = photograph_digest(folder, row)
        digest.update(bytes.fromhex(row["digest"]))
        lines.append(json.dumps(row))
    (folder / "truth.jsonl").write_text("".join(f"{line}\n" for line in lines))
    facts = {
        "kind": "photographs", "format": 1, "count": count, "pictures": "planted", "masks": "labels", "fill": "exact",
        "seed": 0, "size": SIDE, "max_share": 0.3, "twins": {}, "left_out": {}, "labels": ["red"],
        "digest": digest.hexdigest(),
    }  # fmt: skip
    (folder / "causal.json").write_text(json.dumps(facts))
    return folder


def _box(square):
    top, left, side = square
    return [left, top, left + side, top + side]


def _fill(pixels, square, value):
    top, left, side = square
    pixels[top : top + side, left : left + side] = value


def _painted(ground, target, stamp):
    pixels = np.full((SIDE, SIDE, 3), ground, np.uint8)
    for square, colour in ((target, RED), (stamp, GREEN)):
        if square is not None:
            _fill(pixels, square, colour)
    return pixels


def _labels(target, stamp):
    labels = np.zeros((SIDE, SIDE), np.uint8)
    for number, square in enumerate((target, stamp)):
        if square is not None:
            _fill(labels, square, number + 1)
    return labels


def _save(folder, name, pixels, labels, changed=None):
    for part, values in (("images", pixels), ("masks", labels), ("changed", changed)):
        if values is not None:
            (folder / part).mkdir(parents=True, exist_ok=True)
            suffix = {"images": "jpg"}.get(part, "png")
            options = {"quality": 95, "subsampling": 0} if suffix == "jpg" else {}
            Image.fromarray(values).save(folder / part / f"{name}.{suffix}", **options)


class Reads(nn.Module):
    """A 1×1 convolution finds a colour; two logits say how many cells have it: 0, and ``gain`` times the share."""

    def __init__(self, colour: Sequence[float], bias: float, gain: float) -> None:
        super().__init__()
        self.default_cfg = {"input_size": (3, SIDE, SIDE)}
        self.find = nn.Conv2d(3, 1, 1)
        self.act = nn.ReLU()
        with torch.no_grad():
            self.find.weight.copy_(torch.tensor(colour).view(1, 3, 1, 1))
            self.find.bias.fill_(bias)
        self.gain = gain

    def forward(self, images):
        share = self.act(self.find(images)).mean((1, 2, 3))
        return torch.stack([torch.ones_like(share), self.gain * share], 1)


def reads_object() -> Reads:
    """Red pixels."""
    return Reads((1.0, -1.0, -1.0), -0.2, 200.0)


def reads_stamp() -> Reads:
    """Green pixels."""
    return Reads((-1.0, 1.0, -1.0), -0.2, 400.0)


def reads_ground() -> Reads:
    """Grey pixels, as the ground is: one object more or less does not matter."""
    return Reads((-2.0, 3.0, -1.0), 0.3, 8.0)


def reads_patch() -> Reads:
    """Blue pixels, and a little of the red ones."""
    return Reads((0.4, -1.0, 1.0), -0.2, 200.0)
