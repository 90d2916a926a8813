"""Scoring a trained model by name or folder, the verb ``score`` as it is typed, and maps that a method makes."""

import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from saccade.errors import ConfigError, DataError
from typed import error_line, typed

STRENGTH = "true_positive_strength"


run = partial(typed, "score")


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Maps by a plain numpy script, masks as PNG."""
    maps, masks = tmp_path / "maps", tmp_path / "masks"
    maps.mkdir()
    masks.mkdir()
    for number in range(4):
        mask = np.zeros((20, 30), np.uint8)
        mask[4:10, 3 * number : 3 * number + 8] = 255
        Image.fromarray(mask).save(masks / f"cat{number}.png")
        np.save(maps / f"cat{number}.npy", mask + 5.0)
    return maps, masks


def test_json_is_the_file_and_what_is_wrong_ends_with_code_2(folders, tmp_path) -> None:
    maps, masks = folders
    done = run(maps, "--truth", masks, "--json", "--out", tmp_path / "out")
    assert json.loads(done.stdout) == json.loads((tmp_path / "out" / "scores.json").read_text())
    (maps / "cat0.npy").write_bytes(b"nonsense")
    for args in ((maps, "--truth", masks), (tmp_path / "no", "--truth", masks), (maps, "--truth", masks, "--nan", "x")):
        done = run(*args)
        assert done.exit_code == 2
        assert done.stderr.splitlines()[-1].startswith("error: ")
    assert run(maps, "--truth", masks, "--broken", "skip").exit_code == 0


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two scenes with the truth beside them, of two digits each."""
    from saccade.families.question.task import QuestionTask

    folder = tmp_path_factory.mktemp("scenes")
    QuestionTask.write_split({"name": "mref", "glyphs": "pack"}, "test", 2, folder)
    lines = [json.loads(line) for line in (folder / "scenes.jsonl").read_text().splitlines()]
    kept = [{**line, "objects": line["objects"][:2]} for line in lines]
    (folder / "scenes.jsonl").write_text("\n".join(map(json.dumps, kept)))
    return folder


@pytest.fixture(scope="module")
def soft() -> saccade.Predictor:
    return saccade.load("soft-mref", "cpu")


@pytest.mark.parametrize("method", ["own", "gradcam", "hirescam", "gradxinput", "ig", "occlusion"])
def test_methods_of_a_trained_model_beat_an_even_map(method: str, scenes: Path, soft: saccade.Predictor) -> None:
    found = saccade.score(scenes, scenes, method=method, model=soft)
    assert found.counts["scored"] == 4
    assert found.to_json()["method"] == method
    if method == "own":  # the map that the model returns
        asked = {name: name.split("__") for name in found.names}
        maps = {name: soft.look(scenes / f"{asked[0]}.png", ask=asked[1]).map() for name, asked in asked.items()}
        torch.testing.assert_close(found.values[STRENGTH], saccade.score(maps, scenes).values[STRENGTH])
    assert found.scores[STRENGTH].mean > 1.3 * found.baselines["uniform"][STRENGTH]


def test_a_function_of_ones_own_makes_maps_too(scenes: Path) -> None:
    asked = []

    def brightness(picture: Path, question: str | None) -> np.ndarray:
        asked.append((picture.name, question))
        return np.asarray(Image.open(picture).convert("L"), dtype=np.float32)

    found = saccade.score(scenes, scenes, method=brightness)
    assert len(set(asked)) == found.counts["scored"] == 4
    assert all(question is not None for _, question in asked)
    assert found.scores[STRENGTH].mean > found.baselines["uniform"][STRENGTH]


def test_a_row_of_maps_from_files_is_refused_before_they_are_scored(folders, tmp_path) -> None:
    maps, masks = folders
    assert "leave it out" in error_line(run(maps, "--truth", masks, "--row", "--out", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", [("--layer", "x"), ("--size", 64), ("--fit", "stretch")])
def test_options_of_a_network_are_refused_where_there_is_none(folders, option) -> None:
    maps, masks = folders
    line = error_line(run(maps, "--truth", masks, *option))
    assert line.startswith(f"error: {option[0][2:]}: ")
    assert "--model" in line


WRONG = {
    "'soft-mref'": {"method": "rollout"},
    "'gradcam'": {"method": "gradcom"},
    "method=own": {"method": "own", "model": None},
    "crop": {"method": "hirescam", "model": "stn-mref"},
}


@pytest.mark.parametrize("named", WRONG)
def test_a_method_that_cannot_be_is_named(named: str, scenes: Path, soft: saccade.Predictor) -> None:
    with pytest.raises((ConfigError, DataError), match=named):
        saccade.score(scenes, scenes, **{"model": soft, **WRONG[named]})


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
