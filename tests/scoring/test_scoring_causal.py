"""Maps of a causal set by anyone: known maps get known scores about the scene, and missing twins are counted."""

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import saccade
from saccade.data import CausalScene, read_causal_set
from saccade.errors import DataError
from saccade.families.question.readers import CausalConfig, write_causal
from saccade.scoring import causal

COUNT = 24
ABOUT_SCENE = ("map_follow", "map_turn", "map_specific", "map_hold")
Made = Callable[[CausalScene, str, str], np.ndarray]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("causal") / "set"
    write_causal(CausalConfig(), "test", COUNT, out)
    return out


@pytest.fixture(scope="module")
def masks(folder) -> dict[str, np.ndarray]:
    """What a segmenter that knows the question hands in; zeros once the target is removed."""
    return maps_of(folder, lambda scene, picture, query: mask_of(scene, picture, query).astype(np.float32))


def mask_of(scene: CausalScene, picture: str, query: str) -> np.ndarray:
    seen = scene if picture == "scene" else scene.twins[picture]
    return seen.masks[scene.target if query == scene.question else scene.other]


def maps_of(folder: Path, make: Made) -> dict[str, np.ndarray]:
    return {name: make(scene, *asked) for scene in read_causal_set(folder) for name, asked in scene.maps().items()}


def means(found) -> list[float]:
    return [found.scene.scores[name].mean for name in ABOUT_SCENE]


def test_the_masks_of_what_is_asked_for_follow_turn_and_hold(folder, masks):
    found = saccade.score(masks, folder)
    assert means(found) == pytest.approx([1, 1, 1, 1])
    assert found.scores["true_positive_strength"].mean == pytest.approx(1)
    assert found.scores["selectivity"].mean == pytest.approx(1)
    assert found.counts["scored"] == 2 * COUNT
    assert found.counts["pictures"] == COUNT
    assert found.counts["missing"] == found.counts["missing_twins"] == found.counts["extra"] == 0
    assert found.counts["unread"] == 0  # the target in another colour is not asked for
    beside = found.scene.baselines
    for name in ("uniform", "centre_gaussian"):
        assert [beside[name][score] for score in ABOUT_SCENE] == pytest.approx([0, 0, 0.5, 1], abs=1e-6)
    assert abs(beside["shuffled"]["map_follow"]) < 0.1
    assert beside["target_mask"]["map_follow"] == pytest.approx(1)
    assert beside["foreground"]["map_turn"] == pytest.approx(1)


def test_constant_and_noise_maps_have_nothing_and_a_half(folder):
    constant = saccade.score(maps_of(folder, lambda *asked: np.ones((100, 100), np.float32)), folder)
    assert means(constant) == pytest.approx([0, 0, 0.5, 1], abs=1e-6)
    rng = np.random.default_rng(0)
    noise = saccade.score(maps_of(folder, lambda *asked: rng.random((100, 100), np.float32)), folder)
    follow, turn, specific, hold = means(noise)
    assert abs(follow) < 0.002
    assert abs(turn) < 0.002
    assert abs(specific - 0.5) < 0.2  # some 20 scenes, two tosses each: over two standard errors
    assert hold == pytest.approx(2 / 3, abs=0.01)  # 1 − TV of two independent even draws


def test_coarse_maps_have_the_best_map_of_their_grid_beside_them(folder, masks):
    coarse = {name: each.reshape(5, 20, 5, 20).mean((1, 3)) for name, each in masks.items()}
    found = saccade.score(coarse, folder)
    bound = found.scene.baselines["grid_oracle"]["map_follow"]
    assert 0.05 < found.scene.scores["map_follow"].mean < bound < 0.5
    at_map = saccade.score({name: each for name, each in coarse.items()}, folder, resize="map")
    assert at_map.scene.scores["map_specific"].mean == pytest.approx(1)
    with pytest.raises(DataError, match="5×5"):
        saccade.score(coarse, folder, resize="never")


def test_missing_twins_are_counted_and_leave_their_scores_undefined(folder, masks):
    whole = saccade.score(masks, folder).scene
    at = int((~whole.values["map_follow"].isnan()).nonzero()[0, 0])  # a scene with an object of like area
    scene = list(read_causal_set(folder))[at]
    gone = f"{scene.id}-target_moved__{scene.question}"
    rest = {name: each for name, each in masks.items() if name != gone}
    found = saccade.score(rest, folder)
    assert found.left_out["missing_twins"] == (gone,)
    assert "1 twins without a map" in found.counted()
    assert math.isnan(found.scene.values["map_follow"][at])
    assert found.scene.values["map_turn"][at] == pytest.approx(1)
    assert found.scene.scores["map_follow"].n == whole.scores["map_follow"].n - 1
    assert found.scene.scores["map_hold"].n == COUNT
    worst = saccade.score(rest, folder, missing="zero").scene
    assert worst.values["map_follow"][at] == 0
    assert worst.scores["map_follow"].n == whole.scores["map_follow"].n
    with pytest.raises(DataError, match=gone):
        saccade.score(rest, folder, missing="stop")
    first = {f"{scene.id}__{scene.question}": None for scene in read_causal_set(folder)}
    alone = saccade.score({name: masks[name] for name in first}, folder)
    assert (alone.counts["missing"], alone.counts["missing_twins"]) == (COUNT, 6 * COUNT)
    assert all(each.n == 0 for each in alone.scene.scores.values())


def test_a_map_of_zeros_scores_zero_but_where_the_target_is_gone(folder, masks):
    """Else a tool could hand in zeros where it does badly."""
    zeros = {name: each * (not name.partition("-")[2].startswith("other_moved")) for name, each in masks.items()}
    found = saccade.score(zeros, folder)
    assert found.scene.scores["map_follow"].mean == found.scene.scores["map_specific"].mean == 0
    assert found.scene.scores["map_follow"].n > COUNT // 2
    assert found.scene.scores["map_turn"].mean == pytest.approx(1)


def test_folders_arrays_and_streams_in_any_order_agree(folder, masks, tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    maps = {name: each + 0.01 * rng.random(each.shape, np.float32) for name, each in masks.items()}
    by_twin = sorted(maps, key=lambda name: name.partition("__")[0][8:])  # all scenes, then all of one twin, …
    for name in by_twin:
        (tmp_path / "maps" / name[8:].partition("__")[0]).mkdir(parents=True, exist_ok=True)
        np.save(tmp_path / "maps" / name[8:].partition("__")[0] / f"{name}.npy", maps[name])
    monkeypatch.setattr(causal, "_OPEN", 3)
    want = means(saccade.score(maps, folder))
    assert means(saccade.score(tmp_path / "maps", folder)) == pytest.approx(want)
    stacked = np.stack([maps[name] for name in by_twin])
    assert means(saccade.score(stacked, folder, names=by_twin)) == pytest.approx(want)
    assert means(saccade.score(iter(maps.items()), folder)) == pytest.approx(want)
    with pytest.raises(DataError, match="scene 0"):
        saccade.score(((name, maps[name]) for name in by_twin), folder)


def test_what_is_saved_has_the_digest_and_every_scene(folder, masks, tmp_path):
    saccade.score(masks, folder).save(tmp_path)
    values, facts = (json.loads(path.read_text()) for path in (tmp_path / "scores.json", folder / "causal.json"))
    assert values["set"] == facts
    assert values["scene"]["scores"]["map_follow"]["mean"] == pytest.approx(1)
    assert values["scene"]["baselines"]["uniform"]["map_specific"] == 0.5
    rows = list(csv.DictReader(io.StringIO((tmp_path / "scenes.csv").read_text())))
    assert [row["scene"] for row in rows] == [scene.id for scene in read_causal_set(folder)]
    page = (tmp_path / "report.html").read_text()
    assert "About the scene" in page
    assert facts["digest"] in page
