"""Scores of maps by anyone: known maps get known scores, and nothing is left out silently."""

import csv
import io
import json
import math
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from saccade.errors import ConfigError, DataError, ShapeError

STRENGTH = "true_positive_strength"


SIZES = ((24, 30), (32, 32), (40, 20))


@pytest.fixture(scope="module")
def masks() -> dict[str, np.ndarray]:
    """A square in each of twelve pictures of three sizes."""
    rng, masks = np.random.default_rng(0), {}
    for number in range(12):
        (height, width) = SIZES[number % 3]
        top, left = rng.integers(0, height - 8), rng.integers(0, width - 8)
        masks[f"p{number:02d}"] = np.zeros((height, width), bool)
        masks[f"p{number:02d}"][top : top + 8, left : left + 8] = True
    return masks


@pytest.fixture(scope="module")
def noise(masks) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {name: rng.random(mask.shape) for name, mask in masks.items()}


@pytest.fixture
def folders(masks, noise, tmp_path) -> tuple[Path, Path]:
    """Maps of noise as .npy, masks as PNG."""
    maps, truth = tmp_path / "noise", tmp_path / "masks"
    for folder in (maps, truth):
        folder.mkdir()
    for name, mask in masks.items():
        np.save(maps / f"{name}.npy", noise[name])
        Image.fromarray(mask.astype(np.uint8) * 255).save(truth / f"{name}.png")
    return maps, truth


def test_oracle_is_highest_noise_is_at_shuffled_and_constant_at_uniform(masks, noise):
    oracle = saccade.score({name: mask * 1.0 for name, mask in masks.items()}, masks)
    constant = saccade.score({name: np.ones(mask.shape) for name, mask in masks.items()}, masks)
    assert {name: score.mean for name, score in oracle.scores.items()} == pytest.approx(
        {STRENGTH: 1, "pointing": 1, "iou": 1, "pr_auc": 1}, abs=1e-3
    )
    area = np.mean([mask.mean() for mask in masks.values()])
    assert constant.scores[STRENGTH].mean == pytest.approx(area)
    for score in (STRENGTH, "pointing", "iou", "pr_auc"):
        assert constant.baselines["uniform"][score] == pytest.approx(constant.scores[score].mean, abs=1e-6)
    random = saccade.score(noise, masks)
    assert random.scores[STRENGTH].mean == pytest.approx(random.baselines["shuffled"][STRENGTH], abs=0.01)
    assert oracle.baselines["shuffled"][STRENGTH] < 0.5
    assert oracle.baselines["grid_oracle"][STRENGTH] == pytest.approx(1)
    assert oracle.counts["scored"] == oracle.counts["pictures"] == 12


def test_arrays_tensors_mappings_streams_and_files_agree(masks, noise, folders):
    by_path, by_name = saccade.score(*folders), saccade.score(noise, masks)
    assert by_name.names == tuple(masks)  # in the order of the maps, whatever their sizes
    for other in (by_name, saccade.score(iter(noise.items()), masks)):
        assert other.names == by_path.names
        torch.testing.assert_close(other.values[STRENGTH], by_path.values[STRENGTH])
    square = [name for name, mask in masks.items() if mask.shape == (32, 32)]
    stacks = (np.stack([values[name] for name in square]) for values in (noise, masks))
    stacked = saccade.score(torch.tensor(next(stacks)), next(stacks), names=square)
    assert stacked.names == tuple(square)
    at = [by_path.names.index(name) for name in square]
    torch.testing.assert_close(stacked.values[STRENGTH], by_path.values[STRENGTH][at])


def test_coarse_maps_are_laid_over_the_picture_and_bounded_by_their_grid():
    masks = np.zeros((6, 40, 40), bool)
    masks[:, 3:20, 3:20] = True  # across cells of 8: no map of 5×5 cells can reach 1
    masks[3:] = np.roll(masks[3:], 12, axis=2)
    maps = np.random.default_rng(0).random((6, 5, 5))
    found = saccade.score(maps, masks)
    assert found.counts["resized"] == 6
    assert found.scores[STRENGTH].mean < found.baselines["grid_oracle"][STRENGTH] <= 1
    assert "–" in found.table()[1][-1]  # the best cell bounds strength alone
    assert found.baselines["uniform"][STRENGTH] == pytest.approx(masks.mean())
    at_map = saccade.score(maps, masks, resize="map")
    assert at_map.counts["resized"] == 0
    with pytest.raises(DataError, match="5×5 and a truth of 40×40"):
        saccade.score(maps, masks, resize="never")


def test_a_map_finer_than_its_mask_is_averaged():
    mask = np.zeros((2, 4, 4), bool)
    mask[:, 1, 1] = True
    fine = np.kron(mask, np.ones((1, 3, 3)))
    assert saccade.score(fine, mask).scores[STRENGTH].mean == pytest.approx(1)


def test_questions_share_a_picture_in_intervals_and_never_exchange_maps():
    """Two questions about one picture, with the same mask: exchanged within it, shuffled would be perfect."""
    mask, other = np.zeros((10, 10), bool), np.zeros((10, 10), bool)
    mask[:3, :3], other[6:, 6:] = True, True
    truth = {"a__1": mask, "a__2": mask, "b__1": other, "b__2": other}
    found = saccade.score({name: each * 1.0 for name, each in truth.items()}, truth)
    assert found.scores[STRENGTH].images == 2
    assert found.baselines["shuffled"][STRENGTH] == 0
    by_picture = saccade.score({name: each * 1.0 for name, each in truth.items()}, {"a": mask, "b": other})
    assert by_picture.counts["scored"] == 4
    assert by_picture.counts["missing"] == 0


def two() -> tuple[np.ndarray, np.ndarray]:
    masks = np.zeros((4, 6, 6), bool)
    masks[:, :2, :2] = True
    return np.random.default_rng(0).random((4, 6, 6)), masks


def test_nan_is_skipped_and_counted_or_zero_or_an_error():
    maps, masks = two()
    maps[1, 3, 3] = np.nan
    maps[2, 0, 0] = np.inf
    found = saccade.score(maps, masks)
    assert (found.counts["nan"], found.counts["scored"]) == (2, 2)
    assert found.left_out["nan"] == ("000001", "000002")
    assert saccade.score(maps, masks, nan="zero").counts["scored"] == 4
    with pytest.raises(DataError, match="'000001': holds NaN"):
        saccade.score(maps, masks, nan="stop")


def test_negative_values_are_an_error_until_it_is_said_what_they_mean():
    maps, masks = two()
    maps[:, 5, 5] = -10.0
    with pytest.raises(DataError, match="`signed=abs`"):
        saccade.score(maps, masks)
    positive, absolute = (saccade.score(maps, masks, signed=way).scores[STRENGTH].mean for way in ("positive", "abs"))
    assert positive > absolute
    points = saccade.score(maps, [[(1, 1)], [(2, 2)], [(3, 3)], [(4, 1)]], kind="points")  # ranks need no sign
    assert points.counts["scored"] == 4


def test_missing_maps_are_counted_or_score_zero_or_stop():
    maps, masks = two()
    given = {name: maps[number] for number, name in enumerate(("a", "b", "c"))}
    truth = dict(zip("abcd", masks))
    skipped, zero = saccade.score(given, truth), saccade.score(given, truth, missing="zero")
    assert (skipped.counts["missing"], skipped.counts["scored"], skipped.counts["truths"]) == (1, 3, 4)
    assert zero.scores[STRENGTH].mean == pytest.approx(skipped.scores[STRENGTH].mean * 3 / 4)
    with pytest.raises(DataError, match="the first: 'd'"):
        saccade.score(given, truth, missing="stop")


def test_empty_masks_are_counted_and_maps_of_zeros_score_zero():
    maps, masks = two()
    masks[0] = False
    maps[1] = 0
    found = saccade.score(maps, masks)
    assert (found.counts["empty"], found.counts["zero"], found.counts["scored"]) == (1, 1, 3)
    assert math.isnan(found.values[STRENGTH][0])
    assert found.values[STRENGTH][1] == 0
    with pytest.raises(DataError, match="'000000' is empty"):
        saccade.score(maps, masks, empty="stop")


def test_points_by_hand_and_the_shuffled_auc_takes_out_ones_own():
    """Picture a: value 5 at its point, 0 and 1 at the point of b. Picture b: 2 against 3."""
    maps = {"a": np.array([[0.0, 1], [2, 5]]), "b": np.array([[2.0, 1], [0, 3]])}
    found = saccade.score(maps, {"a": [(1, 1)], "b": [(0, 0)]}, kind="points")
    assert found.values["auc_judd"].tolist() == pytest.approx([3.5 / 4, 2.5 / 4])
    assert found.values["auc_shuffled"].tolist() == [1, 0]
    assert found.values["nss"][0] == pytest.approx(3 / math.sqrt(3.5))


def test_points_scale_with_the_picture_where_the_table_tells_its_size(tmp_path):
    (tmp_path / "points.csv").write_text("image,x,y,width,height\na.jpg,75,25,100,50\nb.jpg,10,10,100,50\n")
    maps = {"a": np.zeros((2, 4)), "b": np.ones((2, 4))}
    maps["a"][1, 3] = 1
    found = saccade.score(maps, tmp_path / "points.csv", resize="map")
    assert found.values["auc_judd"][0] == pytest.approx(7.5 / 8)
    laid = saccade.score(maps, tmp_path / "points.csv")
    assert laid.counts["resized"] == 2
    assert laid.values["nss"][0] > 0


def test_what_is_saved_names_everything(masks, noise, folders, tmp_path):
    folder, truth = folders
    (folder / "p03.npy").unlink()
    np.save(folder / "p04.npy", np.full(masks["p04"].shape, np.nan))
    np.save(folder / "stranger.npy", np.ones((5, 5)))
    found = saccade.score(folder, truth)
    written = found.save(tmp_path / "out")
    assert [path.name for path in written] == ["scores.json", "maps.csv", "report.html"]
    values = json.loads(written[0].read_text())
    assert (values["schema_version"], values["counts"]["scored"]) == (1, 10)
    assert values["left_out"] == {"missing": ["p03"], "extra": ["stranger"], "nan": ["p04"]}
    assert values["scores"]["pr_auc"]["low"] is None
    rows = list(csv.DictReader(io.StringIO(written[1].read_text())))
    lost = {row["map"]: row["status"] for row in rows if row["status"] != "scored"}
    assert lost == {"p03": "missing", "p04": "nan", "stranger": "extra"}
    assert len(rows) == 13
    page = written[2].read_text()
    assert page != found.save(tmp_path / "drawn", pictures=truth)[2].read_text()  # maps lie on the pictures
    strength = found.values[STRENGTH]
    for title, at in (("Best maps", strength.argmax()), ("Worst maps", strength.argmin())):
        part = page.partition(f">{title}</h2>")[2].partition("</section>")[0]
        assert f"{found.names[int(at)]}: strength" in part
    assert page.count("<img ") == page.count('src="data:image/') == 12
    assert "<img " not in saccade.score(iter(noise.items()), masks).save(tmp_path / "gone")[2].read_text()


def test_memory_does_not_grow_with_the_maps():
    """A stream of 240 maps of 200×200 floats, 38 MB in all; fewer than half of them are ever held."""
    mask = np.zeros((200, 200), bool)
    mask[:50] = True
    rng = np.random.default_rng(0)
    names = [f"p{number:04d}" for number in range(240)]
    tracemalloc.start()
    try:
        found = saccade.score(
            ((name, rng.random((200, 200), dtype=np.float32)) for name in names), dict.fromkeys(names, mask)
        )
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.counts["scored"] == 240
    assert most < 25 << 20


ONE = np.ones((6, 6))
WRONG = {
    "(N,H,W)": ((ONE, ONE[None]), {}),
    "channels": (({"a": np.ones((3, 6, 6))}, {"a": ONE}), {}),
    "maps: ": ((3, ONE[None]), {}),
    "'a'": (([("a", ONE), ("a", ONE)], {"a": ONE}), {}),
    "5 maps and 3 masks": ((np.ones((5, 4, 4)), np.ones((3, 4, 4))), {}),
    "names": ((np.ones((2, 4, 4)), np.ones((2, 4, 4))), {"names": ["a", "a"]}),
    "separator": ((ONE[None], ONE[None]), {"separator": " "}),
    "NaN": ((ONE[None], torch.full((1, 6, 6), torch.nan)), {}),
    "method": ((ONE[None], ONE[None]), {"model": "soft-mref"}),
}


@pytest.mark.parametrize("named", WRONG)
def test_what_cannot_be_scored_is_named(named: str) -> None:
    given, options = WRONG[named]
    with pytest.raises((ConfigError, DataError, ShapeError), match=re.escape(named)):
        saccade.score(*given, **options)
