"""Captions as batches: generated or from files, by caption or by picture, with the evidence of a scene's words."""

import json
from pathlib import Path

import pytest
import torch
from PIL import Image

from saccade.config import from_dict
from saccade.data.pictures.augment import Augmentation
from saccade.data.scenes.drawing import COLOURS
from saccade.errors import DataError
from saccade.families.caption.data import CaptionDataConfig, CaptionFiles, CaptionScenes, vocabulary_of
from saccade.families.caption.task import CaptionTask
from saccade.families.caption.vocabulary import Vocabulary


def generated(split: str = "val", **settings) -> CaptionScenes:
    return CaptionScenes(CaptionDataConfig(glyphs="pack", **settings), split)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Four training pictures of one colour each, one of them as flat as a line, and one to test on."""
    rows = []
    for number, (colour, size) in enumerate(
        [("red", (40, 30)), ("blue", (30, 40)), ("green", (1, 300)), ("white", (20, 20)), ("red", (50, 20))]
    ):
        Image.new("RGB", size, colour).save(tmp_path / f"{number}.png")
        split = "test" if number == 4 else "train"
        rows += [
            {"image": f"{number}.png", "caption": f"a {colour} picture{tail}", "split": split} for tail in ("", " .")
        ]
    rows.append({"image": "0.png", "caption": "A red picture on this page", "split": "train"})
    (tmp_path / "t.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    return tmp_path / "t.jsonl"


def opened(table: Path, split: str = "train", words: Vocabulary | None = None, **settings) -> CaptionFiles:
    config = CaptionDataConfig(f"jsonl:{table}", **{"size": (32, 32), "at_least": 2, **settings})
    rows = CaptionTask.read(config)
    return CaptionFiles(config, rows, split, vocabulary=words or vocabulary_of(rows, config))


def test_a_batch_of_scenes():
    data = generated()
    batch = data.take(torch.arange(60))
    assert (data.size, data.picture_count, len(data.vocabulary)) == (2000, 2000, 23)
    assert (data.lengths, data.glyphs.name) == (None, "pack-val-200")
    assert batch.images.shape == (60, 3, 100, 100)
    assert batch.images.dtype == torch.float32
    assert 0 <= float(batch.images.min()) < 0.1 < 0.9 < float(batch.images.max()) <= 1
    assert batch.words.shape == batch.has_mask.shape == (60, 11)
    assert torch.equal(batch.picture, torch.arange(60))
    assert torch.equal(batch.lengths, (batch.words >= 0).sum(1))
    assert data.references(7) == (data.vocabulary.decode(batch.words[7].tolist()),)
    assert torch.equal(data.of_pictures(torch.arange(60)).words, batch.words)


def test_masks_of_words_are_the_pixels_of_their_digit():
    data = generated()
    batch = data.take(torch.arange(60))
    masks = batch.word_masks()
    assert masks.shape == (60, 11, 100, 100)
    assert torch.equal(masks.flatten(2).any(-1), batch.has_mask)
    tint = torch.tensor([{"green": 1, "blue": 2, "red": 0}.get(name, -1) for name in COLOURS])
    for b in range(60):
        text = [data.vocabulary[word] if word >= 0 else "" for word in batch.words[b].tolist()]
        assert [word for word, has in zip(text, batch.has_mask[b]) if has] == [
            word for word in text if word not in {"", "a", "above", "left", "of", "<end>"}
        ]
        for t, word in enumerate(text):
            if word in COLOURS and (channel := int(tint[COLOURS.index(word)])) >= 0:
                assert int(batch.images[b][:, masks[b, t]].mean(1).argmax()) == channel
    both = (masks[:, 1] & masks[:, 6]).flatten(1).any(-1) | (masks[:, 1] & masks[:, 7]).flatten(1).any(-1)
    assert not both.any()  # two digits share no pixel


def test_recolouring_changes_one_word_and_its_pixels():
    data = generated("train")
    batch = data.take(torch.arange(80))
    for which in (0, 1):
        here = batch if which == 0 else data.take((batch.layout.count == 2).nonzero().squeeze(1))
        changed = here.recolour(which)
        differs = changed.words != here.words
        assert (differs.sum(1) == 1).all()
        assert (here.names[differs] == which).all()
        old, new = here.words[differs].tolist(), changed.words[differs].tolist()
        assert all(data.vocabulary[word] in COLOURS for word in (*old, *new))
        pixels = (changed.images != here.images).any(1)
        inside = here.layout.mask_of(torch.full((len(here),), which))
        assert not (pixels & ~inside).any()
        assert pixels.flatten(1).any(1).all()
        assert torch.equal(changed.word_masks(), here.word_masks())


def test_captions_and_pictures_of_files(table):
    data = opened(table)
    assert data.vocabulary.words == ("a", "picture", "red", "blue", "green", "white")
    assert (data.size, data.picture_count) == (9, 4)
    batch = data.take(torch.tensor([2, 0]))
    assert batch.words.tolist() == [[2, 4, 3, 1, 1, 1, 0], [2, 4, 3, 0, -1, -1, -1]]
    assert batch.picture.tolist() == [0, 0]
    assert data.lengths.tolist() == [4, 4, 7, 4, 4, 4, 4, 4, 4]
    assert batch.word_masks() is None
    assert not batch.has_mask.any()
    pictures = data.of_pictures(torch.arange(4))
    assert pictures.words.shape == (4, 4)
    assert torch.equal(pictures.images[0], batch.images[0])
    assert data.references(1) == ("a blue picture", "a blue picture .")


def test_words_come_from_training_captions_and_a_model_brings_its_own(table):
    test = opened(table, "test")
    assert test.vocabulary == opened(table).vocabulary
    own = opened(table, "test", Vocabulary(("picture", "a")))
    assert own.take(torch.tensor([0])).words.tolist() == [[3, 1, 2, 0]]


def test_captions_without_a_known_word_are_no_pairs_but_stay_references(table):
    with pytest.warns(UserWarning, match="6 × no known word .1.png"):
        data = opened(table, words=Vocabulary(("red",)))
    assert data.size == 3
    assert data.picture_count == 4
    assert data.references(1) == ("a blue picture", "a blue picture .")
    assert data.of_pictures(torch.tensor([1])).words.tolist() == [[1, 1, 1, 0]]
    with pytest.raises(DataError, match="no known word"):
        opened(table, words=Vocabulary(("dog",)))


VARIED = {"area": (0.5, 0.6), "mirror": True, "brightness": 0.2}


def test_training_pictures_are_varied_by_a_seed(table):
    data = opened(table, augment=from_dict(Augmentation, VARIED))
    numbers = torch.arange(4)
    plain = data.take(numbers)
    one, again, other = (data.take(numbers, vary=seed) for seed in (1, 1, 2))
    assert torch.equal(one.images, again.images)
    assert not torch.equal(one.images, plain.images)
    assert not torch.equal(one.images, other.images)
    assert torch.equal(one.words, plain.words)
    assert torch.equal(
        data.of_pictures(numbers).images, opened(table).of_pictures(numbers).images
    )  # as they are scored
