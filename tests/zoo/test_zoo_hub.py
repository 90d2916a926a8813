"""Models on the hub: fetched and written, against a stand-in of its client."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import saccade
from saccade.backbones import hub
from saccade.errors import CheckpointError, ConfigError, DataError, MissingExtraError, OutputError
from saccade.models.facts import CARD, CONFIG, INPUTS, VOCABULARY, WEIGHTS
from saccade.zoo.folders import shipped
from tiny_models import save_tiny


class FakeHub:
    """The client: ``remote`` holds what the hub has, ``cache`` what was fetched."""

    def __init__(self, home: Path) -> None:
        self.remote, self.cache, self.asked = home / "remote", home / "cache", []

    def HfApi(self) -> FakeHub:  # noqa: N802 - the client's name
        return self

    def create_repo(self, name: str, *, private: bool, exist_ok: bool) -> None:
        assert exist_ok
        if name.startswith("somebody-else/"):
            raise PermissionError("403 Forbidden: you don't have the rights\nto create a model")
        (self.remote / name).mkdir(parents=True, exist_ok=True)
        self.asked.append((name, private))

    def create_commit(self, name: str, operations: list[SimpleNamespace], *, commit_message: str) -> None:
        self.asked.append(commit_message)
        for change in operations:
            content = change.path_or_fileobj
            place = self.remote / name / change.path_in_repo
            place.write_bytes(content if isinstance(content, bytes) else Path(content).read_bytes())

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
    module.snapshot_download, module.HfApi, module.CommitOperationAdd = (
        made.snapshot_download,
        made.HfApi,
        SimpleNamespace,
    )
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


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'saccade-attention\[hub\]'"):
        saccade.load("hf://mary/tiny")


@pytest.mark.parametrize(("name", "more"), [("soft-mref", {INPUTS}), ("sat-soft-scenes", {INPUTS, VOCABULARY})])
def test_a_model_that_is_pushed_can_be_loaded(fake: FakeHub, name: str, more: set[str]) -> None:
    """Every file that its config names goes up and comes back."""
    address = saccade.load(name, "cpu").push_to_hub(f"mary/{name}", private=True, message="Better words")
    assert (address, fake.asked) == (f"hf://mary/{name}", [(f"mary/{name}", True), "Better words"])
    assert {file.name for file in (fake.remote / "mary" / name).iterdir()} == {
        CONFIG,
        WEIGHTS,
        CARD,
        "README.md",
        *more,
    }
    page = (fake.remote / "mary" / name / "README.md").read_text()
    assert page.startswith("---\nlibrary_name: saccade\n")
    assert f'saccade.load("hf://mary/{name}")' in page
    loaded = saccade.from_pretrained(address, "cpu")
    assert loaded.facts == saccade.load(name, "cpu").facts
    assert loaded.likeness is not None


def test_what_cannot_be_pushed_is_said_in_a_line(fake: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    model = saccade.load("soft-mref", "cpu")
    with pytest.raises(OutputError, match="'soft': not a name on the hub; write USER/NAME"):
        model.push_to_hub("soft")
    with pytest.raises(OutputError, match=r"hf://somebody-else/soft: cannot be written .*403.* HF_TOKEN") as raised:
        model.push_to_hub("somebody-else/soft")
    assert "\n" not in str(raised.value)
    with pytest.raises(ConfigError, match="not loaded from a model folder"):
        saccade.Predictor(model.model, model.facts).push_to_hub("mary/soft")
    monkeypatch.setattr(hub, "why_no_hub", lambda: "huggingface.co cannot be reached (no route)")
    with pytest.raises(OutputError, match=r"hf://mary/soft: cannot be written, huggingface.co cannot be reached"):
        model.push_to_hub("mary/soft")
    assert not (fake.remote / "mary" / "soft").exists()
