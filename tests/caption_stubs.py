"""Captioners whose words are known beforehand, tiny saved ones, captioned files, and short splits of scenes."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import saccade.families.caption.data as captions
from saccade.config import to_dict
from saccade.families.caption.scenes import SCENE_VOCABULARY
from saccade.models.caption_decoder import EncodedImage, LstmState, WordStep
from saccade.models.facts import ModelFacts, Preprocessing
from saccade.models.folder import save_model
from saccade.models.sat import SatConfig, SatModel
from tiny_models import tiny_config

WORDS = ("<end>", "<unknown>", "red", "green", "blue")  # Of :meth:`SatModel.tiny`.
SENTENCES = ("a dog runs", "a cat sleeps", "two dogs run in the snow")


@contextmanager
def short_splits(val: int = 8, test: int = 12) -> Iterator[None]:
    """Fewer held-out scenes, so that a validation takes a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(captions._SIZES, "val", val)
        patch.setitem(captions._SIZES, "test", test)
        yield


def save_tiny_captioner(folder: Path, seed: int = 0, *, hard: bool = False) -> Path:
    """A tiny captioner with random weights in ``folder``."""
    torch.manual_seed(seed)
    config = tiny_config(SatModel)
    if hard:
        config = SatConfig(**{**to_dict(config), "input_size": config.input_size, "attention_kind": "hard"})
    facts = ModelFacts(
        architecture="sat-hard" if hard else "sat-soft", model=to_dict(config), family="caption", queries=(),
        answers=WORDS, preprocessing=Preprocessing(config.input_size), name="teller", sentences=True,
    )  # fmt: skip
    save_model(SatModel(config), folder, facts)
    return folder


def captioned_files(folder: Path, pictures: int = 8, size: tuple[int, int] = (20, 24)) -> Path:
    """A CSV of ``pictures`` noisy pictures with two captions each; every fourth is val, every eighth from 5 on test."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for number in range(pictures):
        pixels = np.random.default_rng(number).integers(0, 256, (*size, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
        split = "val" if number % 4 == 3 else "test" if number % 8 == 5 else "train"
        rows += [(f"{number}.png", SENTENCES[(number + turn) % 3], split) for turn in range(2)]
    with (folder / "captions.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([("image", "caption", "split"), *rows])
    return folder / "captions.csv"


class Reciter(SatModel):
    """Says the sentences it was given for pictures in the order they come, each word with certainty.

    A picture is known by its number, which is what it is encoded to; so the pictures must come in that order too.
    """

    def __init__(self, said: Tensor, size: int = 100) -> None:
        config = SatConfig(
            vocabulary=len(SCENE_VOCABULARY), backbone="small", through="stage1", input_size=(size, size), embed=2,
            hidden=2, attention=2, longest=said.shape[1],
        )  # fmt: skip
        super().__init__(config)
        self.said, self.done = said, 0

    def encode(self, images: Tensor) -> Tensor:
        numbers = torch.arange(self.done, self.done + len(images))
        self.done += len(images)
        cells = self.grid[0] * self.grid[1]
        return numbers[:, None, None].expand(-1, cells, self.channels).float()

    def init_state(self, encoding: Tensor) -> tuple[EncodedImage, LstmState]:
        scene, _ = super().init_state(encoding)
        number = encoding[:, :1, :1]  # (B,1,1)
        return scene, LstmState(number, torch.zeros_like(number))

    def next_word(self, scene: EncodedImage, memory: LstmState, before: Tensor, **given: Tensor) -> WordStep:
        told = super().next_word(scene, LstmState(*(part.expand(-1, -1, 2) for part in memory)), before, **given)
        number, step = memory.hidden[..., 0].long(), memory.cell[..., 0].long()  # (B,K)
        word = self.said[number % len(self.said), step].clamp(min=0)  # (B,K)
        logits = torch.full_like(told.logits, -30.0).scatter(-1, word[..., None], 30.0)
        return WordStep(logits, told.looked, LstmState(memory.hidden, memory.cell + 1))
