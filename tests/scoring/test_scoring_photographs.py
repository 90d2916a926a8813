"""Methods on networks whose cause was planted: known causes get known scores, and the tool says when it cannot tell."""

import csv
import json
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import saccade
from planted_photographs import SIDE, reads_ground, reads_object, reads_patch, reads_stamp, write_photographs
from saccade.data import read_causal_set
from saccade.errors import ConfigError, DataError
from saccade.metrics.intervals import ByName
from saccade.papers.results import results_folder
from saccade.scoring.networks import NetworkOptions, open_network
from saccade.scoring.photographs.measures import about_answer, about_scene, prepare_photograph, rivals
from typed import typed

COUNT = 8
run = partial(typed, "score")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory) -> Path:
    return write_photographs(tmp_path_factory.mktemp("photographs"), COUNT)


def marks_red(model, images, targets):
    """A segmenter of the object, whatever the model reads."""
    return (images[:, 0] - images[:, 1] - images[:, 2] - 0.2).relu()


def means(found, group, row="maps"):
    return {name: score.mean for name, score in found.intervals(group, row).items()}


@pytest.mark.parametrize("method", ["gradcam", "hirescam", "layercam", "occlusion", "gradxinput", "ig", "rise"])
def test_methods_find_the_object_that_a_network_reads(photographs, method):
    few = 3 if method == "occlusion" else None
    found = saccade.score(truth=f"causal:{photographs}", model=reads_object(), method=method, limit=few)
    assert found.refused is None
    assert means(found, "model")["cause_top"] == 1
    assert means(found, "scene")["pointing"] == 1
    if method != "rise":
        assert means(found, "model")["misplaced"] < 0.4
        assert means(found, "scene")["map_follow"] > 0.1
    assert "more often than every baseline" in found.verdict


def test_the_mask_is_best_about_the_scene_and_noise_and_an_even_map_are_at_chance(photographs):
    found = saccade.score(truth=photographs, model=reads_object(), method="gradcam")
    oracle = means(found, "scene", "oracle")
    assert oracle == pytest.approx(dict.fromkeys(oracle, 1.0) | {"map_follow": oracle["map_follow"]}, abs=1e-6)
    assert oracle["map_follow"] > 0.6  # where it moves to overlaps where it was
    for row in ("even", "noise"):
        scene = means(found, "scene", row)
        assert scene["map_follow"] == pytest.approx(0, abs=0.01)
        assert scene["strength"] == pytest.approx(14**2 / SIDE**2, abs=0.01)
    assert means(found, "model", "even")["cause_top"] == pytest.approx(0.25)
    assert means(found, "scene", "even")["map_specific"] == pytest.approx(0.5)
    assert means(found, "model", "even")["cause_pairs"] == pytest.approx(0.5)
    assert means(found, "model", "cause") == pytest.approx(
        {"cause_top": 1, "cause_pairs": 1, "misplaced": 0, "off_objects": 0}, abs=1e-6
    )


def test_noise_is_right_as_often_as_chance(photographs):
    """Of the twins half the time, within four standard errors; of four candidates exactly one is on top."""
    network = open_network(reads_object(), NetworkOptions(device="cpu"))
    prepared = prepare_photograph(next(iter(read_causal_set(photographs))), network)
    draws = [rivals(prepared, number, None)["noise"] for number in range(200)]
    specific = [float(about_scene(maps, prepared, holds_ground=True)["map_specific"]) for maps in draws]
    assert np.mean(specific) == pytest.approx(0.5, abs=4 * np.std(specific) / 200**0.5)
    causes = torch.eye(4).double()  # each candidate in turn is the only cause
    assert sum(float(about_answer(draws[0][:1], prepared, cause[None])["cause_top"]) for cause in causes) == 1


def test_a_segmenter_loses_about_a_model_that_reads_the_stamp(photographs):
    found = saccade.score(truth=photographs, model=reads_stamp(), method=marks_red)
    assert means(found, "scene")["pointing"] == 1
    assert means(found, "model")["cause_top"] == 0
    assert means(found, "model")["misplaced"] == pytest.approx(1, abs=0.01)
    assert means(found, "effects", "others")["effect"] > 0.3
    assert means(found, "effects", "target")["effect"] < 0.05
    assert found.refused is None  # a patch does less than the stamp
    assert "finds what the answer depends on less often than" in found.verdict
    right = saccade.score(truth=photographs, model=reads_stamp(), method="gradcam")
    assert means(right, "model")["cause_top"] == 1
    assert means(right, "model")["misplaced"] < 0.1


def test_there_is_no_table_about_a_model_that_reads_the_ground(photographs):
    found = saccade.score(truth=photographs, model=reads_ground(), method=marks_red)
    assert means(found, "effects", "ground")["effect"] > 0.3
    assert means(found, "effects", "ground")["changes"] == 1
    assert str(found.refused).startswith("No table about the model: ")
    assert [title for title, _, _ in found.tables()] == ["what moves the answer", "about the scene"]
    assert found.to_json()["model_scores"] is None
    assert means(found, "scene")["strength"] > 0.9  # it stands
    assert math.isnan(means(found, "scene")["map_hold_ground"])  # the answer did not stay


def test_there_is_none_where_filling_in_moves_the_answer_too(tmp_path):
    folder = write_photographs(tmp_path / "set", 3, patch=(60, 60, 200))
    found = saccade.score(truth=folder, model=reads_patch(), method="gradcam")
    assert "more than a tenth" in str(found.refused)
    patch, target = (means(found, "effects", change)["effect"] for change in ("patch", "target"))
    assert patch > 0.1 * target
    effects, found.effects = found.effects, ByName()
    for change in ("patch", "target", "others"):
        found.effects.add_values(change, {"effect": 1e-5 * effects[change]["effect"]})
    assert "0.000" not in str(found.refused).split(", more than a tenth")[0]  # a small number is no zero


def test_a_photograph_with_one_candidate_says_nothing_about_the_model(photographs):
    network = open_network(reads_object(), NetworkOptions(device="cpu"))
    prepared = prepare_photograph(next(iter(read_causal_set(photographs))), network)
    alone = prepared._replace(candidates=prepared.candidates[:1], masks=prepared.masks[:, :1])
    scores = about_answer(torch.ones(1, SIDE, SIDE), alone, torch.tensor([[0.8]]).double())
    assert [name for name, score in scores.items() if not score.isnan()] == ["off_objects"]


class OfCaptum:
    def attribute(self, inputs, target=None):
        assert target.shape == (len(inputs),)
        return marks_red(None, inputs, target)[:, None].expand(-1, 3, -1, -1)


class OfGradCam:
    def __call__(self, input_tensor, targets=None, aug_smooth=False):
        assert [float(target(torch.tensor([3.0, 4.0]))) for target in targets] == [4.0] * len(targets)
        return marks_red(None, input_tensor, None).numpy()


def test_objects_of_captum_and_grad_cam_are_methods(photographs):
    scores = [
        means(saccade.score(truth=photographs, model=reads_object(), method=method), "scene")
        for method in (marks_red, OfCaptum(), OfGradCam())
    ]
    assert scores[0] == pytest.approx(scores[1], nan_ok=True)
    assert scores[0] == pytest.approx(scores[2], nan_ok=True)


def test_the_accuracy_of_the_network_stands_where_labels_are_its_answers(photographs):
    found = saccade.score(truth=photographs, model=reads_object(), method="gradcam")
    assert "not known, labels such as 'red' are none of its 2 answers" in found.counted()
    assert found.to_json()["accuracy"] is None
    assert found.answers == [("red", 1)] * COUNT
    for names, share in ((("grey", "red"), 1.0), (("red", "grey"), 0.0)):
        named = replace(found, classes=names)
        assert named.to_json()["accuracy"]["mean"] == share
        assert f"accuracy of the network {share:.3f}" in named.counted()
    assert "accuracy" not in replace(found, answers=[]).counted()


def test_a_changed_file_is_refused_when_it_is_scored(tmp_path):
    folder = write_photographs(tmp_path / "set", 2)
    Image.fromarray(np.zeros((SIDE, SIDE), np.uint8)).save(folder / "masks" / "00000001.png")
    assert saccade.score(truth=folder, model=reads_object(), method="gradcam", limit=1).names == ["00000000"]
    with pytest.raises(DataError, match="photograph 00000001 is not as it was written"):
        saccade.score(truth=folder, model=reads_object(), method="gradcam")


def test_maps_with_negative_values_are_counted_and_named(photographs):
    def bright(model, images, targets):
        return images.mean(1).abs()

    def dark(model, images, targets):
        return -images.mean(1).abs()

    counts = [saccade.score(truth=photographs, model=reads_object(), method=own, limit=2) for own in (bright, dark)]
    assert [scores.signed for scores in counts] == [0, counts[1].pictures]
    assert ["negative values" in scores.counted() for scores in counts] == [False, True]


def test_broken_maps_are_left_out_and_zeros_win_nothing(photographs):
    def sometimes(model, images, targets):
        maps = marks_red(model, images, targets)
        maps[0] = math.nan
        return maps

    found = saccade.score(truth=photographs, model=reads_object(), method=sometimes)
    assert 0 < len(found.broken) < COUNT
    assert found.broken[0] in found.counted()
    assert len(found.names) == COUNT - len(found.broken)
    assert len(saccade.score(truth=photographs, model=reads_object(), method=sometimes, nan="zero").names) == COUNT
    with pytest.raises(DataError, match="nan=skip"):
        saccade.score(truth=photographs, model=reads_object(), method=sometimes, nan="stop")
    silent = saccade.score(truth=photographs, model=reads_object(), method=lambda model, images, _: 0 * images[:, 0])
    scene = means(silent, "scene")
    assert scene == pytest.approx(dict.fromkeys(scene, 0.0))
    assert means(silent, "model")["cause_top"] == pytest.approx(0.25)  # as an even map
    assert next(csv.DictReader(silent.row().splitlines()))["empty"] == "1"  # of all pictures
    with pytest.raises(DataError, match="no map could be scored"):
        saccade.score(truth=photographs, model=reads_object(), method=lambda model, images, _: images[:, 0] / 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "gradcam"}, "with a model and a method"),
        ({"model": "here", "method": "gradcan"}, "did you mean 'gradcam'"),
        ({"model": "here", "method": lambda *_: 3}, "found int"),
        ({"model": "here", "method": lambda model, images, _: images[:2, 0]}, "2 maps of"),
        ({"model": "here", "method": "ig", "layer": "find"}, "leave it out"),
        ({"model": "here", "method": "gradcam", "layer": "fnd"}, "did you mean 'find'"),
        ({"model": "soft-mref", "method": "gradcam"}, "needs a question"),
        ({"model": "here", "method": "gradcam", "maps": "pictures"}, "has its own pictures"),
        ({"model": "here", "method": "gradcam", "resize": "map"}, "resize: it is not for a causal set"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(photographs, options, said):
    model = {"model": reads_object()} if options.get("model") == "here" else {}
    with pytest.raises((ConfigError, DataError), match=said) as error:
        saccade.score(truth=photographs, **{**options, **model})
    assert "\n" not in str(error.value)


def test_the_verb_runs_a_file_and_writes_tables_a_row_and_a_page(photographs, tmp_path):
    file = tmp_path / "my_net.py"
    file.write_text("from planted_photographs import reads_object as build\n")
    own = tmp_path / "my_method.py"
    own.write_text("def attribute(model, images, targets):\n    return model.act(model.find(images))\n")
    args = ("-", "--truth", f"causal:{photographs}", "--model", f"{file}:build")
    done = run(*args, "--method", f"{own}:attribute", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    for part in ("what moves the answer", "about the scene", "about the model", "target's mask", "more often than"):
        assert part in done.stdout
    assert "64 × 64 (as the model says)" in done.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"scores.json", "scenes.csv", "report.html"}
    assert "Worst maps" in (tmp_path / "out" / "report.html").read_text()
    with (tmp_path / "out" / "scenes.csv").open() as table:
        assert [row["photograph"] for row in csv.DictReader(table)] == [f"{number:08d}" for number in range(COUNT)]
    told = run(*args, "--method", "gradcam", "--json")
    assert json.loads(told.stdout)["scene"]["scores"]["pointing"]["mean"] == 1
    printed = run(*args, "--method", "gradcam", "--row").stdout
    lines = list(csv.DictReader(printed.splitlines()))
    with (results_folder() / "causal.csv").open() as table:
        assert list(lines[0]) == next(csv.reader(table))
    assert [line["what"] for line in lines] == ["value", "low", "high", "n", *["effect"] * (len(lines) - 5), ""]
    assert [float(lines[0][name]) for name in ("pointing", "cause_top", "map_specific")] == [1, 1, 1]
    effects = {line["method"]: float(line["effect"]) for line in lines if line["kind"] == "effect"}
    assert effects["target"] > 0.3 > effects["patch"]
    assert lines[-1]["kind"] == "split-half tau"
    assert -1 <= float(lines[-1]["pointing"]) <= 1
    assert run("--truth", photographs, "--model", f"{file}:nothing", "--method", "gradcam").exit_code == 2
    assert run().exit_code == 2
