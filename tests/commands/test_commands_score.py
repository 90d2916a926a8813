"""The verb ``score``, as a new user types it, and maps that a method makes of a model."""

import json
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
