"""``hf://USER/NAME``: fetched by the hub's client, checked like any folder, and used offline once it is there."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

import saccade
from saccade.backbones import hub
from saccade.errors import CheckpointError, DataError, MissingExtraError
from saccade.models.facts import CONFIG, INPUTS, WEIGHTS
from saccade.zoo import shipped
from tiny_models import save_tiny


class FakeHub:
    """The client: ``remote`` holds what the hub has, ``cache`` what was fetched."""

    def __init__(self, home: Path) -> None:
        self.remote, self.cache, self.asked = home / "remote", home / "cache", []

    def snapshot_download(self, name: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        self.asked.append((name, revision))
        place = self.cache / name.replace("/", "--")
        if hub.is_offline():
            if not place.is_dir():
                raise FileNotFoundError("not in the cache")
            return str(place)
        if not (self.remote / name).is_dir():
            raise ValueError(f"404: {name}")
        place.mkdir(parents=True, exist_ok=True)
        for file in (self.remote / name).iterdir():
            if file.name in allow_patterns:
                shutil.copy(file, place)
        return str(place)


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    made = FakeHub(tmp_path)
    module = ModuleType("huggingface_hub")
    module.snapshot_download = made.snapshot_download
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    for switch in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(switch, raising=False)
    monkeypatch.setattr(hub, "why_no_hub", lambda: None)
    save_tiny(made.remote / "mary" / "tiny")
    (made.remote / "mary" / "tiny" / "extra.pkl").write_bytes(b"a pickle")
    return made


def test_a_model_of_the_hub_is_a_model_like_any_other(fake: FakeHub) -> None:
    model = saccade.load("hf://mary/tiny@v1", "cpu")
    assert model.facts == saccade.load(fake.cache / "mary--tiny", "cpu").facts
    assert fake.asked == [("mary/tiny", "v1")]
    assert not (fake.cache / "mary--tiny" / "extra.pkl").exists()  # its own files alone are fetched


def test_what_its_inputs_look_like_comes_along(fake: FakeHub) -> None:
    shutil.copytree(shipped()["soft-mref"], fake.remote / "mary" / "soft")
    model = saccade.load("hf://mary/soft", "cpu")
    assert model.likeness is not None
    (fake.remote / "mary" / "soft" / INPUTS).write_bytes(b"other statistics")
    with pytest.raises(CheckpointError, match=INPUTS):
        saccade.load("hf://mary/soft", "cpu")


def test_once_fetched_it_is_used_offline(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(hub, "why_no_hub", lambda: "huggingface.co cannot be reached (no route)")
        with pytest.raises(DataError, match=r"files of hf://mary/tiny are not on this machine, and hugging"):
            saccade.load("hf://mary/tiny")
    saccade.load("hf://mary/tiny", "cpu")
    shutil.rmtree(fake.remote)
    monkeypatch.setattr(hub, "why_no_hub", lambda: "huggingface.co cannot be reached (no route)")
    assert saccade.load("hf://mary/tiny", "cpu").name


def test_a_damaged_file_is_found_out(fake: FakeHub) -> None:
    weights = fake.remote / "mary" / "tiny" / WEIGHTS
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(CheckpointError, match="SHA-256"):
        saccade.load("hf://mary/tiny")
    (fake.remote / "mary" / "tiny" / CONFIG).unlink()
    shutil.rmtree(fake.cache)
    with pytest.raises(CheckpointError, match="not a model folder"):
        saccade.load("hf://mary/tiny")


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'saccade-attention\[hub\]'"):
        saccade.load("hf://mary/tiny")
