"""Scoring a trained model by name or folder: the promised dictionary, other data, and what is refused."""

import json
import shutil
from pathlib import Path

import pytest

import saccade
from saccade.errors import ConfigError, DataError

CONTRACT = [
    "model", "data", "glyphs", "backgrounds", "drawing", "split", "protocol", "seed", "n",
    "metrics", "attention", "baselines", "intervals",
    "counts", "definition", "interventions", "seconds",
]  # fmt: skip


def scored(run: Path, **options: object) -> dict:
    return saccade.evaluate(run, **{"limit": 20, "sweeps": 1, "device": "cpu", **options})


def test_the_contract(run: Path) -> None:
    found = scored(run)
    assert sorted(found) == sorted(CONTRACT)
    assert (found["data"], found["glyphs"], found["split"]) == ("mref", "pack-test-600", "test")
    assert (found["protocol"], found["n"], found["seed"]) == ("unlimited", 20, 0)
    assert found["seconds"] > 0
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_without_mnist_the_shipped_glyphs_stand_in_and_say_so(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path))
    other = trained_with("disjoint", run, tmp_path / "run")
    assert scored(other, sweeps=0)["glyphs"] == "mnist-test-pack-2000"
    assert scored(other, sweeps=0, glyphs="pack")["glyphs"] == "pack-test-600"
    with pytest.raises(DataError, match="saccade data get mnist"):
        scored(other, glyphs="disjoint", allow_pack=False)
    with pytest.raises(DataError, match="saccade data get mnist"):
        scored(run, glyphs="disjoint", split="val")  # glyphs that no shipped one is among


def trained_with(glyphs: str, run: Path, folder: Path) -> Path:
    """A copy of the run that says it was trained with other ``glyphs``."""
    shutil.copytree(run, folder)
    config = folder / "model" / "config.json"
    values = json.loads(config.read_text(encoding="utf-8"))
    values["data"]["glyphs"] = glyphs
    config.write_text(json.dumps(values), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"split": "train"}, DataError, "no end"),
        ({"data": "mreff"}, DataError, "did you mean 'mref'"),
        ({"glyphs": "disjoint"}, ConfigError, "trained with 'pack' glyphs.*'disjoint'"),
        ({"protocol": "author"}, ConfigError, "did you mean 'authors'"),
        ({"seed": -1}, ConfigError, "seed: .*found -1"),
        ({"limit": 1}, DataError, "at least 18, found 1"),
    ],
)
def test_wrong_options_are_named(run: Path, options: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        scored(run, **options)
