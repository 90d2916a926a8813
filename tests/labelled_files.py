"""Small pictures in folders by class, a table of them, and CIFAR-10 in miniature, for the tests of classifiers."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saccade.families.classify import cifar

COLOURS = {"red": 0, "green": 1, "blue": 2}


def picture(colour: int, number: int, size: tuple[int, int] = (20, 24)) -> Image.Image:
    """Noise of its own with a square of a colour."""
    random = np.random.default_rng(100 * colour + number)
    pixels = (random.random((*size, 3)) * 60).astype(np.uint8)
    pixels[4:14, 5:15, colour] += 180
    return Image.fromarray(pixels)


def class_folders(top: Path, each: int = 12, splits: tuple[str, ...] = ("",)) -> Path:
    """``each`` pictures of each colour in each split; "" is no split."""
    for place, split in enumerate(splits):
        for name, colour in COLOURS.items():
            folder = top / split / name
            folder.mkdir(parents=True)
            for number in range(each):
                picture(colour, 50 * place + number).save(folder / f"{number}.png")
    return top


def small_cifar(monkeypatch: pytest.MonkeyPatch, each: int = 20) -> None:
    """Let a batch of CIFAR-10 hold few pictures."""
    monkeypatch.setattr(cifar, "PER_BATCH", each)


def pixels(each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures (N,3,32,32) and labels (N,): the brighter, the higher the label."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, each)
    images = random.integers(0, 30, (each, 3, 32, 32)) + 20 * labels[:, None, None, None]
    return images.astype(np.uint8), labels.astype(np.uint8)


def batches(each: int = 20) -> Mapping[str, tuple[np.ndarray, np.ndarray]]:
    names = [*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]
    return {name: pixels(each, seed) for seed, name in enumerate(names)}


def write_binary(folder: Path, each: int = 20) -> Path:
    """The official binary version."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (images, labels) in batches(each).items():
        records = np.concatenate([labels[:, None], images.reshape(each, -1)], axis=1)
        (folder / f"{name}.bin").write_bytes(records.astype(np.uint8).tobytes())
    return folder


def write_package(folder: Path, each: int = 20) -> Path:
    """The same pictures as the package has them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (images, _) in batches(each).items():
        rows = images.transpose(0, 2, 3, 1).reshape(each, 1024, 3)
        Image.fromarray(rows).save(folder / f"{name}.png")
    train = [int(label) for name, (_, labels) in batches(each).items() if name != "test_batch" for label in labels]
    (folder / "train_lables.json").write_text(json.dumps(train))
    (folder / "test_lables.json").write_text(json.dumps([int(label) for label in batches(each)["test_batch"][1]]))
    return folder
