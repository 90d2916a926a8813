"""Scenes of questions on disk, and the catalog of data."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from saccade.data.scenes.drawing import COLOURS
from saccade.errors import OutputError
from saccade.families.question.scenes import SceneData, SceneDataConfig
from saccade.families.question.task import QuestionTask

PACK = {"name": "mref", "glyphs": "pack", "seed": 3}


def test_files_hold_what_the_generator_made(tmp_path):
    seen = []
    out = QuestionTask.write_split(
        PACK, "val", 5, tmp_path / "a" / "scenes", start=7, progress=lambda *report: seen.append(report)
    )
    lines = [json.loads(line) for line in (out / "scenes.jsonl").read_text().splitlines()]
    layout, images = SceneData(SceneDataConfig(**PACK), "val").stream.scenes(torch.arange(7, 12))
    assert [line["index"] for line in lines] == [7, 8, 9, 10, 11]
    assert seen == [(5, 5)]
    assert {path.name for path in out.iterdir()} == {"scenes.jsonl", *(line["file"] for line in lines)}
    for b, line in enumerate(lines):
        picture = np.asarray(Image.open(out / line["file"]))
        assert np.array_equal(picture, images[b].permute(1, 2, 0).numpy())
        assert (line["seed"], line["split"]) == (3, "val")
        assert (line["glyphs"], line["background"]) == ("pack-val-200", "black")
        assert [thing["class"] for thing in line["objects"]] == layout.classes[b][layout.present[b]].tolist()
        for k, thing in enumerate(line["objects"]):
            assert thing["box"] == layout.boxes[b, k].tolist()
            assert thing["rgb"] == layout.rgb[b, k].tolist()
            assert thing["colour"] in COLOURS
            assert thing["scale"] == pytest.approx(layout.scale[b, k].item(), abs=1e-4)


def test_each_line_says_how_its_scene_is_drawn(tmp_path):
    told = {}
    for drawing in ("blend", "authors", "both"):
        out = QuestionTask.write_split({**PACK, "drawing": drawing}, "val", 4, tmp_path / drawing, start=3)
        lines = [json.loads(line) for line in (out / "scenes.jsonl").read_text().splitlines()]
        told[drawing] = [(line["drawing"], (out / line["file"]).read_bytes()) for line in lines]
    assert {name for name, _ in told["blend"]} == {"blend"}
    assert {name for name, _ in told["authors"]} == {"authors"}
    assert told["both"] == [told["authors"][0], told["blend"][1], told["authors"][2], told["blend"][3]]  # 3, 4, 5, 6


def test_a_folder_with_content_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(OutputError, match="not an empty folder"):
        QuestionTask.write_split(PACK, "val", 1, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert len(list(QuestionTask.write_split(PACK, "val", 1, empty).iterdir())) == 2


def test_an_interrupted_export_leaves_nothing(tmp_path):
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        QuestionTask.write_split(PACK, "val", 3, tmp_path / "out", progress=stop)
    assert list(tmp_path.iterdir()) == []
