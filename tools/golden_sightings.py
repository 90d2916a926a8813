"""What the shipped models say about ten fixed pictures, and where they look, as plain values.

``tools/golden.py write sightings`` stores them in tests/golden; tests/golden/test_golden_sightings.py computes them
again and compares. Only the public surface of saccade is used, so that the comparison holds whatever moves inside.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image

import saccade

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden"
PICTURES, TEXTS, NUMBERS = GOLDEN / "pictures", GOLDEN / "sightings.json", GOLDEN / "sightings.npz"
SCENES = {  # name of the picture: data set, number of the scene
    "mref-0": ("mref", 0),
    "mref-3": ("mref", 3),
    "mdist-1": ("mdist", 1),
    "mbg-2": ("mbg", 2),
    "multiset-0": ("mnist-multiset", 0),
    "multiset-1": ("mnist-multiset", 1),
    "scenes-0": ("scenes", 0),
    "scenes-1": ("scenes", 1),
}
PHOTOGRAPHS = {"coffee": ((131, 87), "RGB"), "rocket": ((75, 143), "L")}
"""Odd (width, height), and the mode that the file has."""
SEED = 5
BLOCKS = 8
"""The total map is kept as its means over this many blocks along each side."""
SAMPLES = 5
"""Values kept of the weights of each look."""
PARTS = ("crown", "wing", "bill", "belly", "nape")
"""What crown-cub is asked for, picture by picture."""


def write_pictures() -> None:
    """Make the ten pictures and their tables: scenes of shipped glyphs, two of the shipped photographs at odd sizes."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for data in sorted({data for data, _ in SCENES.values()}):
            command = ["data", "make", data, "--count", "4", "--glyphs", "pack", "--seed", str(SEED), "--quiet"]
            subprocess.run([sys.executable, "-m", "saccade", *command, "--out", f"{folder}/{data}"], check=True)
        for name, (data, number) in SCENES.items():
            (PICTURES / f"{name}.png").write_bytes(Path(folder, data, f"{number:08d}.png").read_bytes())
        _write_tables(Path(folder))
    for name, (size, mode) in PHOTOGRAPHS.items():
        (source,) = ROOT.glob(f"src/saccade/**/backgrounds/*/{name}.jpg")
        shrunk = Image.open(source).convert(mode).resize(size, Image.Resampling.LANCZOS)
        shrunk.save(PICTURES / f"{name}.png", optimize=True)


def _write_tables(folder: Path) -> None:
    """What is true of the scenes as tables of files, all of them in the test split: labels, and questions.

    The questions are those of crown-cub. Its answers mean nothing here, but its scores are numbers all the same.
    """
    tables: dict[str, list[dict[str, Any]]] = {"labels": [], "parts": []}
    for name, (data, number) in SCENES.items():
        truth = json.loads(Path(folder, data, "scenes.jsonl").read_text(encoding="utf-8").splitlines()[number])
        about = {"image": f"{name}.png", "split": "test"}
        if "labels" in truth:
            tables["labels"].append(about | {"labels": truth["labels"], "boxes": truth["boxes"]})
        for part, thing in zip(PARTS, truth.get("objects", [])):
            answer = {"green": "buff"}.get(thing["colour"], thing["colour"])  # no part of a bird is green
            tables["parts"].append(about | {"query": part, "label": answer, "box": thing["box"]})
    for name, rows in tables.items():
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (PICTURES / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def pictures() -> list[Path]:
    """The ten pictures, in a fixed order."""
    return [PICTURES / f"{name}.png" for name in (*SCENES, *PHOTOGRAPHS)]


def shipped() -> list[str]:
    """Names of the shipped models, as the command line lists them."""
    command = [sys.executable, "-m", "saccade", "list", "zoo", "--json"]
    return sorted(json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["zoo"])


def sightings(model: str) -> tuple[list[dict[str, Any]], dict[str, np.ndarray]]:
    """Everything that is compared of one model: texts with their probabilities, and arrays by name.

    First one question about all pictures, in one batch (``look_many``). A model that is asked then answers another
    question about each picture by itself (``look``). A model of captions also says two captions of each of the first
    two pictures.
    """
    predictor = saccade.load(model, device="cpu")
    files = pictures()
    if model.startswith(("hsal", "sat")):
        seen = list(predictor.look_many(files))
    elif model == "crown-cub":
        asked = [PARTS[number % len(PARTS)] for number in range(len(files))]
        seen = [*predictor.look_many(files, ask="back"), *map(predictor.look, files, asked)]
    else:
        digits = [(7 * number + 4) % 10 for number in range(len(files))]
        seen = [*predictor.look_many(files, ask=7), *map(predictor.look, files, digits)]
    if model.startswith("sat"):
        seen += [predictor.look(path, captions=2, beam=3) for path in files[:2]]
    arrays = {
        "maps": np.stack([_blocks(each) for each in seen]),  # (N,8,8)
        "weights": np.stack([_samples(each) for each in seen]),  # (N,looks·5)
    }
    return [_told(each) for each in seen], arrays


def _told(seen: saccade.Sighting) -> dict[str, Any]:
    """What was said, as plain values; shares keep seven digits."""
    said: dict[str, Any] = {
        "picture": seen.picture.stem,
        "question": seen.question,
        "answer": seen.answer,
        "confidence": _short(seen.said.raw_confidence),  # what the network says: a temperature may be fitted anew
        "alternatives": [[word, _short(share)] for word, share in seen.said.raw_alternatives[:3]],
        "labels": [[word, _short(share)] for word, share in seen.labels or ()],
        "glimpses": [list(map(list, spots)) for spots in seen.glimpses()],
        "log_probability": None if seen.log_probability is None else _short(seen.log_probability),
    }
    return {key: value for key, value in said.items() if value not in (None, [])}


def _short(number: float) -> float:
    return float(f"{number:.7g}")


def _blocks(seen: saccade.Sighting) -> np.ndarray:
    """The total map on the picture, as means over 8×8 blocks: (8,8)."""
    found = seen.trace.image_map("total")  # (1,H,W)
    return F.adaptive_avg_pool2d(found, BLOCKS)[0].numpy().astype(np.float32)  # (8,8)


def _samples(seen: saccade.Sighting) -> np.ndarray:
    """A few weights of every look, evenly apart, and the largest; of a crop, which has none, its frame: (looks·5,)."""
    found = []
    for look in seen.trace.looks:
        values = (look.frame if look.weights is None else look.weights).flatten().float()  # (n,)
        spots = torch.linspace(0, len(values) - 1, SAMPLES - 1).round().long()  # (4,)
        found += [values[spots], values.max()[None]]
    return torch.cat(found).numpy().astype(np.float32)


def write_sightings() -> None:
    """Store anew what every shipped model sees that is stored already; an empty entry in the file adds a model."""
    stored, texts, numbers = json.loads(TEXTS.read_text(encoding="utf-8")), {}, {}
    for model in (name for name in shipped() if name in stored):
        texts[model], arrays = sightings(model)
        numbers |= {f"{model}/{name}": values for name, values in arrays.items()}
    lines = [f"{json.dumps(model)}: [\n{_rows(rows)}\n]" for model, rows in texts.items()]
    TEXTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    np.savez_compressed(NUMBERS, **numbers)


def _rows(rows: list[dict[str, Any]]) -> str:
    return ",\n".join(f" {json.dumps(row, separators=(',', ':'))}" for row in rows)
