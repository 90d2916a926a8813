"""Features on disk: right, resumable, checked, bounded."""

import os
from pathlib import Path

import pytest
import torch

from saccade.data.pictures import feature_cache
from saccade.data.pictures.feature_cache import FeatureCache, weights_digest
from saccade.errors import ConfigError, DataError

SHAPE, COUNT = (3, 4), 10
FEATURES = torch.linspace(-2, 2, COUNT * 12).view(COUNT, *SHAPE)
EACH = 2 * 12
FULL = COUNT * EACH + 4 * 32  # three features a shard, four shards with a digest each
PLENTY = 1 << 20


@pytest.fixture(autouse=True)
def _three_in_a_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feature_cache, "SHARD_BYTES", 3 * EACH)


def opened(folder: Path, key: str = "k", *, limit: int = PLENTY) -> FeatureCache:
    return FeatureCache(folder, shape=SHAPE, count=COUNT, key=key, limit_bytes=limit)


def filled(folder: Path, key: str = "k", *, limit: int = PLENTY) -> FeatureCache:
    cache = opened(folder, key, limit=limit)
    cache.fill(lambda numbers: FEATURES[numbers])
    return cache


def never(numbers: torch.Tensor) -> torch.Tensor:
    raise AssertionError(f"asked for {numbers.tolist()}")


def test_processes_that_fill_one_cache_share_the_work(tmp_path):
    """The second of two begins in the middle; what it has written when the first comes by is not computed again."""
    first, second = opened(tmp_path), opened(tmp_path)
    asked: dict[str, list[int]] = {"first": [], "second": []}

    def of_second(numbers: torch.Tensor) -> torch.Tensor:
        asked["second"] += numbers.tolist()
        if 9 in numbers:  # its own half is done, and there the other one begins
            first.fill(of_first)
        return FEATURES[numbers]

    def of_first(numbers: torch.Tensor) -> torch.Tensor:
        asked["first"] += numbers.tolist()
        return FEATURES[numbers]

    second.fill(of_second, begin=0.5)
    assert asked["second"] == [6, 7, 8, 9]  # shards 2 and 3; 0 and 1 were there when it came to them
    assert asked["first"] == [0, 1, 2, 3, 4, 5, 9]  # 6 to 8 were there; 9 was still under way
    assert first.is_complete
    assert torch.equal(second.take(torch.arange(COUNT)), FEATURES.half())


def test_features_come_back_in_half_precision(tmp_path):
    cache = filled(tmp_path)
    numbers = torch.tensor([9, 0, 4, 4, 3])
    taken = cache.take(numbers)
    assert taken.dtype == torch.float16
    assert torch.equal(taken, FEATURES[numbers].half())
    assert (cache.is_complete, cache.missing, cache.nbytes) == (True, (), FULL)
    assert sum(file.stat().st_size for file in cache.folder.glob("*.f16")) == FULL
    taken.zero_()  # a copy: the file is not written to
    again = opened(tmp_path)
    again.fill(never)
    assert torch.equal(again.take(numbers), FEATURES[numbers].half())
    assert opened(tmp_path, "other").missing == tuple(range(COUNT))


def test_filling_goes_on_where_it_stopped(tmp_path):
    def breaks(numbers: torch.Tensor) -> torch.Tensor:
        if 6 in numbers:
            raise KeyboardInterrupt
        return FEATURES[numbers]

    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path).fill(breaks)
    cache = opened(tmp_path)
    assert cache.missing == (6, 7, 8, 9)
    assert torch.equal(cache.take(torch.tensor([5])), FEATURES[5:6].half())
    asked = []
    cache.fill(lambda numbers: (asked.extend(numbers.tolist()), FEATURES[numbers])[1])
    assert asked == [6, 7, 8, 9]


@pytest.mark.parametrize("damage", ["a byte", "cut short"])
def test_a_damaged_shard_is_computed_again(tmp_path, damage):
    shard = filled(tmp_path).folder / "000001.f16"
    content = shard.read_bytes()
    shard.unlink()
    shard.write_bytes({"a byte": b"?" + content[1:], "cut short": content[:-9]}[damage])
    with pytest.warns(UserWarning, match=r"1 shard\(s\) damaged"):
        cache = opened(tmp_path)
    assert cache.missing == (3, 4, 5)
    cache.fill(lambda numbers: FEATURES[numbers])
    assert torch.equal(cache.take(torch.arange(COUNT)), FEATURES.half())


def test_facts_that_do_not_fit_start_it_anew(tmp_path):
    (filled(tmp_path).folder / "facts.json").write_text("{")
    with pytest.warns(UserWarning, match="not what it should be"):
        assert opened(tmp_path).missing == tuple(range(COUNT))


def test_more_than_the_limit_is_refused_with_its_size(tmp_path):
    with pytest.raises(ConfigError, match=rf"10 of shape \(3, 4\) need {FULL} bytes on disk.*{FULL - 1} bytes allowed"):
        opened(tmp_path, limit=FULL - 1)
    assert not any(tmp_path.iterdir())


def test_those_opened_longest_ago_make_room(tmp_path):
    facts = 100  # about what facts.json takes
    room_for_two = 2 * FULL + 2 * facts
    first, second = filled(tmp_path, "first", limit=room_for_two), filled(tmp_path, "second", limit=room_for_two)
    os.utime(first.folder / "facts.json", (1, 1))
    os.utime(second.folder / "facts.json", (2, 2))
    opened(tmp_path, "first", limit=room_for_two)  # now the second is the older one
    third = filled(tmp_path, "third", limit=room_for_two)
    assert first.folder.is_dir()
    assert third.folder.is_dir()
    assert not second.folder.exists()
    assert torch.equal(second.take(torch.arange(COUNT)), FEATURES.half())  # mapped: still readable here
    alone = filled(tmp_path, "fourth", limit=FULL)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == [alone.folder]


def test_what_is_no_cache_is_never_removed(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("x" * 5000)
    filled(tmp_path, limit=FULL)
    assert (tmp_path / "notes" / "mine.txt").is_file()


@pytest.mark.parametrize(("value", "reach"), [(7e4, "70000"), (float("nan"), "nan")])
def test_features_that_half_precision_cannot_hold(tmp_path, value, reach):
    features = FEATURES.clone()
    features[4, 1, 1] = value
    with pytest.raises(DataError, match=f"feature 4 reaches {reach}"):
        opened(tmp_path).fill(lambda numbers: features[numbers])
    assert opened(tmp_path).missing == tuple(range(3, COUNT))


def test_a_digest_of_weights_changes_with_them():
    weights = {"a": torch.zeros(2, 3), "b": torch.arange(4), "c": torch.zeros((), dtype=torch.bfloat16)}
    before = weights_digest(weights)
    assert weights_digest(dict(reversed(weights.items()))) == before
    for name, other in (("a", torch.zeros(3, 2)), ("a", torch.zeros(2, 3).half()), ("b", torch.arange(4).flip(0))):
        assert weights_digest({**weights, name: other}) != before
    assert weights_digest({"x": torch.zeros(3, 2).T}) == weights_digest({"x": torch.zeros(2, 3)})
