"""The zoo and models of the hub: names to folders, and every shipped model whole and able to answer."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import saccade
from saccade import zoo
from saccade.backbones import hub
from saccade.backbones.pretrained import imagenet_weights
from saccade.errors import CheckpointError, DataError, MissingExtraError
from saccade.models.facts import CONFIG, INPUTS, WEIGHTS, read_facts
from saccade.zoo import shipped
from tiny_models import save_tiny


@pytest.fixture
def small_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "zoo")
    save_tiny(tmp_path / "zoo" / "soft-mref")
    save_tiny(tmp_path / "zoo" / "hard-mref")
    return tmp_path


def test_names_folders_and_runs_resolve(small_zoo: Path) -> None:
    save_tiny(small_zoo / "run" / "model")
    assert list(zoo.shipped()) == ["hard-mref", "soft-mref"]
    assert zoo.resolve("soft-mref") == small_zoo / "zoo" / "soft-mref"
    assert zoo.resolve(small_zoo / "zoo" / "soft-mref") == small_zoo / "zoo" / "soft-mref"
    assert zoo.resolve(str(small_zoo / "run")) == small_zoo / "run" / "model"


def test_a_folder_of_the_same_name_is_told_from_the_shipped_model(
    small_zoo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small_zoo)
    save_tiny(small_zoo / "soft-mref" / "model")
    with pytest.warns(UserWarning, match="'soft-mref' is the shipped model; for the folder .* write ./soft-mref"):
        assert zoo.resolve("soft-mref") == small_zoo / "zoo" / "soft-mref"
    assert zoo.resolve("./soft-mref").resolve() == small_zoo / "soft-mref" / "model"
    monkeypatch.chdir(small_zoo / "zoo")
    assert zoo.resolve("soft-mref") == small_zoo / "zoo" / "soft-mref"  # the same folder: nothing to say


def test_what_cannot_be_resolved_says_why(small_zoo: Path) -> None:
    with pytest.raises(CheckpointError, match="did you mean 'soft-mref'"):
        zoo.resolve("soft-mrf")
    for nothing in (None, 7, "\0", "a\0b", "x" * 5000):
        with pytest.raises(CheckpointError, match="saccade list"):
            saccade.load(nothing)  # type: ignore[arg-type]
    (small_zoo / "plain").mkdir()
    with pytest.raises(CheckpointError, match="plain"):
        zoo.resolve(small_zoo / "plain")
    (small_zoo / "plain" / "config.yaml").write_text("name: x")
    with pytest.raises(CheckpointError, match="resume"):
        zoo.resolve(small_zoo / "plain")
    (small_zoo / "foreign").mkdir()
    (small_zoo / "foreign" / "weights.pt").write_bytes(b"")
    for source in (small_zoo / "foreign", small_zoo / "foreign" / "weights.pt"):
        with pytest.raises(CheckpointError, match="run code"):
            zoo.resolve(source)


def needs_weights(backbone: str) -> None:
    try:
        imagenet_weights(backbone)
    except DataError as error:
        pytest.skip(str(error))


def test_listing_the_zoo_needs_no_torch() -> None:
    code = (
        "import sys; from saccade.models.facts import read_facts; from saccade.zoo import shipped\n"
        "facts = [read_facts(folder) for folder in shipped().values()]\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", list(zoo.shipped()))
def test_every_shipped_model_is_whole_named_scored_and_answers(name: str) -> None:
    facts = read_facts(zoo.shipped()[name])
    assert facts.name == name
    assert facts.scores, "a shipped model says how good it is"
    assert facts.licence
    if facts.base is not None:
        needs_weights(facts.base.backbone)
    predictor = saccade.load(name, "cpu")
    if facts.preprocessing is None:
        seen = predictor.look(["Mary went to the kitchen.", "John went to the garden."], "Where is Mary?")
        assert seen.answer == "kitchen"
    else:
        seen = predictor.look(np.zeros((*facts.preprocessing.size, 3), np.uint8), *facts.queries[:1])
    is_one = facts.queries or facts.family == "classify"  # else {3, 3, 7}, or a sentence
    said = [seen.answer] if is_one else re.findall(r"\w+", seen.answer)
    assert set(said) <= set(facts.answers)
    seen.trace.validate()


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
