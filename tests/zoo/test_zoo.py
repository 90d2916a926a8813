"""The zoo: names to folders, every shipped model whole and able to answer, and the tool that ships one."""

import dataclasses
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import saccade
from saccade.backbones.pretrained import imagenet_weights
from saccade.errors import CheckpointError, DataError
from saccade.models.facts import read_facts
from saccade.papers.results import PaperRun
from saccade.zoo import folders as zoo
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
        "import sys; from saccade.models.facts import read_facts; from saccade.zoo.folders import shipped\n"
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


TOOL = Path(__file__).parents[2] / "tools" / "ship.py"


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The tool, with a zoo of its own."""
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "zoo")
    spec = importlib.util.spec_from_file_location("ship", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that has kept a model."""
    save_tiny(tmp_path / "run" / "model", data={"name": "mref"}, dtype="float16")
    return tmp_path / "run"


def ship(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, run: Path, *options: str) -> None:
    result = run.with_suffix(".json")
    result.write_text(json.dumps({"data": "mref", "split": "test", "n": 5, "metrics": {"accuracy": 0.5}}))
    fields = dict.fromkeys((field.name for field in dataclasses.fields(PaperRun)), "")
    fields |= {"scores": {}, "commit": "abc", "sha256": read_facts(run / "model").sha256[:16]}
    monkeypatch.setattr(tool, "recorded_runs", lambda: {"run": PaperRun(**{**fields, "command": "saccade train"})})
    monkeypatch.setattr(sys, "argv", ["ship.py", str(run), str(result), *options])
    tool.main()


def test_a_model_is_shipped_with_its_score(
    tool: ModuleType, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ship(tool, monkeypatch, run, "--name", "first", "--note", "trained in a test")
    facts = read_facts(tmp_path / "zoo" / "first")
    assert (facts.name, facts.revision) == ("first", "abc")
    assert facts.scores[0].metrics == {"accuracy": 0.5}
    assert facts.deviations[-1] == "trained in a test"
    assert facts.sha256 == facts.training["sha256"]
    assert capsys.readouterr().out.startswith("first: ")
