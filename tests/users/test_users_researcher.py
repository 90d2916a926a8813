"""A researcher with masks: scores for maps of another tool, and for the maps of a model trained on their table."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from own_folder import SMALL_HEAD, saccade, settle
from PIL import Image

COLOURS = ("red", "green", "blue")
SIDE, SQUARE = 32, 12


def write_pictures(folder: Path, count: int) -> list[dict[str, str]]:
    """Dark noise with a square of one colour in ``pictures``, the square in ``masks``; the rows of a table of them."""
    random, rows = np.random.default_rng(0), []
    for part in ("pictures", "masks"):
        (folder / part).mkdir()
    for number in range(count):
        top, left = random.integers(0, SIDE - SQUARE, 2)
        mask = np.zeros((SIDE, SIDE), bool)
        mask[top : top + SQUARE, left : left + SQUARE] = True
        pixels = (random.random((SIDE, SIDE, 3)) * 60).astype(np.uint8)
        pixels[mask, number % 3] = 240
        name = f"{number:02}.png"
        Image.fromarray(pixels).save(folder / "pictures" / name)
        Image.fromarray(mask).save(folder / "masks" / name)
        split, label = ("train", "train", "train", "val", "test")[number // 3 % 5], COLOURS[number % 3]
        rows.append({"image": f"pictures/{name}", "label": label, "mask": f"masks/{name}", "split": split})
    return rows


def test_from_masks_to_scores_of_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = settle(tmp_path, monkeypatch)
    rows = write_pictures(here, 30)

    (here / "maps").mkdir()
    for number, row in enumerate(rows[:10]):  # of another tool: brighter on the square, a little noise everywhere
        mask = np.asarray(Image.open(here / row["mask"]))
        noise = np.random.default_rng(number).random((SIDE, SIDE))
        np.save(here / "maps" / f"{Path(row['mask']).stem}.npy", noise + 3 * mask)
    found = json.loads(saccade("score", "maps", "--truth", "masks", "--json"))
    assert found["counts"]["scored"] == 10
    assert found["counts"]["missing"] == 20
    assert found["scores"]["pointing"]["mean"] == 1
    assert found["baselines"]["shuffled"]["pointing"] < 1

    with (here / "own.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    saccade("train", "attributes-head", "--data", "own.csv", "--out", "run", *SMALL_HEAD, "--quiet")
    result = json.loads(saccade("evaluate", "run", "--data", "own.csv", "--json"))
    assert result["n"] == 6
    assert result["metrics"]["accuracy"] >= 0.5
    assert result["attention"]["pointing"] > 0.3  # a square covers 14 % of its picture
    assert "its maps peak on the evidence" in result["verdict"]
