"""``list``, ``doctor`` and ``data``: what there is, what is missing, and data written to disk."""

import json
from pathlib import Path

import pytest

from labelled_files import class_folders
from saccade.zoo import folders as zoo
from tiny_models import save_tiny
from typed import typed


def test_list_everything_or_one_catalog() -> None:
    everything = json.loads(typed("list", "--json").stdout)
    assert set(everything) == {"models", "backbones", "recipes", "data", "examples", "zoo"}
    weights = {name: entry["weights"] for name, entry in everything["backbones"].items()}
    assert weights["small"] == "none"
    assert weights["mobilenetv2"] == "saccade data get mobilenetv2-imagenet"
    for version in range(3):
        assert weights[f"efficientnet-lite{version}"] == f"saccade data get efficientnet-lite{version}-imagenet"
    assert everything["models"]["soft"]["paper"]
    assert list(json.loads(typed("list", "data", "--json").stdout)) == ["data"]
    assert "soft" in typed("list", "models").stdout
    short, whole = typed("list").stdout.splitlines(), typed("list", "--all").stdout.splitlines()
    assert len(short) < 50 < len(whole)
    assert "a picture and a question in, one label (or several) out" in short
    assert sum(line.startswith("  hattnet-ctx-sparse-mref ") for line in short) == 1


def test_the_zoo_is_listed_with_scores_and_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from saccade.models.facts import Score

    monkeypatch.setattr(zoo, "ZOO", tmp_path)
    assert "none yet" in typed("list", "zoo").stdout
    save_tiny(tmp_path / "good", name="good", scores=(Score("mref", "test", 1234, metrics={"accuracy": 0.5}),))
    (save_tiny(tmp_path / "bad") / "config.json").write_text("{")
    listed = json.loads(typed("list", "zoo", "--json").stdout)["zoo"]
    assert listed["good"] == {
        "architecture": "soft",
        "parameters": 964,
        "metric": "accuracy",
        "score": 0.5,
        "scored on": "mref test, n 1,234",
        "licence": "open",
    }
    assert listed["bad"]["architecture"] == "damaged"
    assert typed("list", "zoo").exit_code == 0


def test_doctor_says_what_is_there_and_verifies_the_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo, "ZOO", tmp_path / "zoo")
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "mnist").mkdir(parents=True)
    (tmp_path / "home" / "mnist" / "x").write_bytes(b"12345")
    save_tiny(tmp_path / "zoo" / "good")
    result = typed("doctor", "--json")
    found = json.loads(result.stdout)
    assert found["scene_makers"]["cpu"] == "NumPy"
    assert result.exit_code == 0
    assert found["problems"] == []
    assert found["zoo"] == {"good": "whole"}
    assert found["cache"] == {"folder": str(tmp_path / "home"), "holds": {"mnist": 5}}
    assert found["packages"]["torch"]
    assert found["devices"][0].startswith("cpu")
    assert list(found["programs"]) == ["METEOR 1.5"]
    weights = save_tiny(tmp_path / "zoo" / "bad") / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    result = typed("doctor")
    assert result.exit_code == 2
    assert "problem: bad: " in result.stderr
    assert "all is well" not in result.stdout


def test_doctor_names_missing_packages_and_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.metadata

    needed = [
        "torch<3,>=2",
        "no-such-core>=1",
        'no-such-web[x]>=2; extra == "web"',
        "numpy; extra == 'web'",
        "pillow; extra == 'ok'",
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: needed)
    result = typed("doctor", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 2
    assert list(found["packages"]) == ["torch", "no-such-core"]
    assert "no-such-core" in found["problems"][0]
    assert found["extras"]["web"] == {"missing": ["no-such-web"], "get": "pip install 'saccade-attention[web]'"}
    assert found["extras"]["ok"] == {"missing": [], "get": None}


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["data", "make", "mrfe", "--out", "x"], "did you mean 'mref'"),
        (["data", "make", "mref", "--out", "x", "--split", "tset"], "did you mean 'test'"),
        (["data", "show", "mref", "--glyphs", "dsjoint"], "disjoint"),
        (["data", "get", "mnst"], "mnist"),
    ],
)
def test_wrong_names_of_data(args: list[str], word: str) -> None:
    result = typed(*args)
    assert result.exit_code == 2
    assert word in result.stderr


def test_data_get_reports_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def fetch(name: str, on_progress) -> Path:
        asked.append(name)
        on_progress("part", 1, None)
        return tmp_path

    monkeypatch.setattr("saccade.data.fetch.fetch", fetch)
    assert str(tmp_path) in typed("data", "get", "mref").stderr.replace("\n", "")
    assert asked == ["mnist"]  # the data set names its own download
    assert "mref" in typed("data", "list").stdout


def test_pictures_that_cannot_be_read_are_counted_and_named_whatever_is_shown(tmp_path: Path) -> None:
    content = (class_folders(tmp_path) / "red" / "0.png").read_bytes()
    (tmp_path / "red" / "1.png").write_bytes(b"")
    (tmp_path / "green" / "2.png").write_bytes(content[: len(content) // 2])
    for number in range(3, 9):
        (tmp_path / "blue" / f"{number}.png").write_bytes(b"no picture")
    result = typed("data", "show", tmp_path, "--split", "train", "-n", 1, "--out", tmp_path / "sheet.png")
    assert result.exit_code == 0, result.output
    assert "of 36 pictures 8 cannot be read" in result.stderr
    assert "blue/3.png: not a picture" in result.stderr
    assert "… and 3 more" in result.stderr
