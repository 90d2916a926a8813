"""Scenes by number: the same in any batch, kept by chunks, and made ahead on a GPU."""

import threading

import pytest
import torch

from saccade.data.scenes.stream import Prefetcher
from saccade.families.question.scenes import SceneData, SceneDataConfig

CPU = torch.device("cpu")


def test_what_was_begun_is_handed_over_and_made_once():
    made = []

    def make(number):
        made.append((number, threading.current_thread().name))
        return number * 10

    ahead = Prefetcher(make, CPU)
    ahead.start(3)
    ahead.start(3)
    assert ahead.take(3) == 30
    assert [number for number, _ in made] == [3]
    assert made[0][1].startswith("ahead")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_an_endless_stream_is_the_same_with_and_without_looking_ahead():
    config = SceneDataConfig(glyphs="pack")
    ahead, here = (SceneData(config, "train", device="cuda") for _ in range(2))
    here.stream._ahead = None
    for data in (ahead, here):
        data.stream.chunk = 512
    for start in range(0, 4096, 256):
        numbers = torch.arange(start, start + 256)
        assert torch.equal(ahead.take(numbers).images, here.take(numbers).images)


def training(chunk: int) -> SceneData:
    data = SceneData(SceneDataConfig(glyphs="pack", asks=4), "train")
    data.stream.chunk = chunk
    return data


def test_a_batch_is_the_same_wherever_training_begins():
    """In the middle of a chunk, across the border of two, after a jump back: what a number asks for stays."""
    whole = training(chunk=512).take(torch.arange(4 * 160), together=4)
    data = training(chunk=64)
    for start, stop in ((64, 96), (0, 32), (48, 80), (96, 160), (60, 70)):
        part = data.take(torch.arange(4 * start, 4 * stop), together=4)
        assert torch.equal(part.images, whole.images[start:stop])
        for name in ("query", "label", "object", "scene"):
            assert torch.equal(getattr(part, name), getattr(whole, name)[4 * start : 4 * stop]), name
