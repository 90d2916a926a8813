"""Work done ahead: the same things in the same order, begun before they are asked for."""

import threading

import pytest
import torch

from saccade.data.scenes.stream import Prefetcher
from saccade.errors import DataError

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


def test_an_error_in_the_background_is_raised_where_the_thing_is_needed():
    def make(number):
        raise DataError("no room")

    ahead = Prefetcher(make, CPU)
    ahead.start(0)
    with pytest.raises(DataError, match="no room"):
        ahead.take(0)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_cuda_it_works_beside_the_main_stream():
    device = torch.device("cuda")
    ahead = Prefetcher(lambda number: torch.full((1 << 20,), float(number), device=device), device)
    for number in range(20):
        ahead.start(number)
        busy = torch.rand(2000, 2000, device=device) @ torch.rand(2000, 2000, device=device)
        found = ahead.take(number)
        assert float(found.double().sum() + 0 * busy.sum()) == number * (1 << 20)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_an_endless_stream_is_the_same_with_and_without_looking_ahead():
    from saccade.families.question.scenes import SceneData, SceneDataConfig

    config = SceneDataConfig(glyphs="pack")
    ahead, here = (SceneData(config, "train", device="cuda") for _ in range(2))
    here.stream._ahead = None
    for data in (ahead, here):
        data.stream.chunk = 512
    for start in range(0, 4096, 256):
        numbers = torch.arange(start, start + 256)
        assert torch.equal(ahead.take(numbers).images, here.take(numbers).images)
