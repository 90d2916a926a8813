"""``saccade look``, of one model and of several: answers, files, JSON, and every kind of bad input."""

import csv
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import saccade
from saccade.commands.look_files import kept_looks
from saccade.errors import DataError
from saccade.predict import Predictor, load
from saccade.record import read_record
from saccade.sighting import Sighting
from tiny_models import save_tiny
from typed import error_line, typed


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_tiny(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture
def album(tmp_path: Path) -> Path:
    folder = tmp_path / "album"
    for number, name in enumerate(["a.png", "b.jpg", "sub/a.png"]):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (20 + number, 31, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / name)
    return folder


def test_folders_stream_into_files_that_do_not_overwrite_each_other(model: str, album: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = typed("look", album, "--model", model, "--ask", "north", "--out", out, "--batch", 2)
    assert result.exit_code == 0
    stems = ["a-ask-north", "a-ask-north-2", "b-ask-north"]
    assert sorted(path.name for path in out.iterdir()) == sorted(
        ["looks.csv", *(f"{stem}.{end}" for stem in stems for end in ("png", "json", "safetensors"))]
    )
    assert "one table of all (looks.csv)" in result.stderr
    assert read_record(out / "a-ask-north-2.json").info["picture"].endswith("sub/a.png")


def test_json_is_one_object_a_line_and_nothing_else(model: str, album: Path) -> None:
    (album / "broken.png").write_bytes(b"no")
    result = typed("look", str(album / "*.*"), "--model", model, "--ask", 0, "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [Path(line["picture"]).name for line in lines if "answer" in line] == ["a.png", "b.jpg"]
    assert [Path(line["picture"]).name for line in lines if "error" in line] == ["broken.png"]


def test_several_models_stand_side_by_side(model: str, album: Path, tmp_path: Path) -> None:
    other = str(save_tiny(tmp_path / "other", seed=1, name="other"))
    asked = ("look", album / "a.png", "--model", model, "--model", other, "--ask", "north")
    result = typed(*asked, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.stderr
    assert {"tiny", "other"} <= set(result.stdout.split())
    assert Image.open(tmp_path / "out" / "a-ask-north-compare.png").width > 800
    assert "<html" in (tmp_path / "out" / "a-ask-north-compare.html").read_text()
    (album / "broken.png").write_bytes(b"no")
    every = typed("look", album, *asked[2:], "--out", tmp_path / "all")
    assert "3 answered, 1 skipped" in every.stderr
    stems = ("a-ask-north", "a-ask-north-2", "b-ask-north")
    files = {f"{stem}-compare.{end}" for stem in stems for end in ("png", "html")}
    assert {path.name for path in (tmp_path / "all").iterdir()} == files
    (album / "broken.png").unlink()
    seen = saccade.look(album / "a.png", "north", model=[model, other])
    lines = [json.loads(line) for line in typed(*asked, "--json").stdout.splitlines()]
    assert lines == json.loads(json.dumps([each.to_json() for each in seen]))
    assert [[each.model for each in of_one] for of_one in saccade.look([album], "north", model=[model, other])] == [
        ["tiny", "other"]
    ] * 3


def test_bad_pictures_are_reported_counted_and_skipped(model: str, album: Path, tmp_path: Path) -> None:
    data = (album / "b.jpg").read_bytes()
    (album / "cut.jpg").write_bytes(data[: len(data) // 2])
    (album / "zero.png").write_bytes(b"")
    result = typed("look", album, "--model", model, "--ask", 1, "--out", tmp_path / "out")
    assert result.exit_code == 0
    assert result.stderr.count("skipped: ") == 2
    assert "cut.jpg" in result.stderr
    assert "0 bytes" in result.stderr
    assert "3 answered, 2 skipped" in result.stderr
    assert len(list((tmp_path / "out").glob("*.json"))) == 3


def test_if_all_are_bad_the_exit_code_is_2(model: str, tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(b"")
    assert "0 bytes" in error_line(typed("look", tmp_path, "--model", model, "--ask", 1))
    (tmp_path / "two.png").write_bytes(b"x")
    assert "none of the 2 pictures" in error_line(typed("look", tmp_path, "--model", model, "--ask", 1))


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (["--ask", "7"], "'7'.* choose from 0, 1, 2, north"),
        ([], "needs a question.* 0, 1, 2, north"),
        (["--ask", "1", "--device", "gpu"], "device 'gpu'.* choose auto, cpu"),
        (["--ask", "1", "--batch", "0"], "batch.* 1 or more, found 0"),
        (["--ask", "1", "--beam", "2"], "no beam; leave it out"),
        (["--ask", "1", "--cells"], "--cells .*--out"),
        (["--ask", "1", "--engine", "local", "--out", "x", "--address", "auto"], "--address .*leave"),
        (["--ask", "1", "--model", "nothing-here"], "'nothing-here'.*'saccade list'"),
        (["--ask", "1", "--model", "hard-mref", "--engine", "local", "--out", "x"], "model: .*name one"),
        (["--ask", "1", "--engine", "local"], "--engine .*--out"),
        (["--example", "dgits"], "'dgits': did you mean 'digits'"),
    ],
)
def test_wrong_options_are_one_line(model: str, album: Path, args: list[str], named: str) -> None:
    assert re.search(named, error_line(typed("look", album, "--model", model, *args)))


def test_a_closed_pipe_is_quiet(model: str, album: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)  # as when "| head" has seen enough
    command = [sys.executable, "-m", "saccade", "look", str(album), "--model", model, "--ask", "1", "--json"]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert result.returncode != 0
    assert result.stderr == ""


def test_a_story_for_a_picture_model_and_a_picture_for_a_story_model(album: Path, tmp_path: Path) -> None:
    """Each names what the file is, what the model reads, and models that read such a file."""
    story = tmp_path / "story.txt"
    story.write_text("Mary went to the kitchen.\n")
    for words in ([], ["--ask", "Where is Mary?"], ["--model", "hard-mref", "--ask", 7]):
        line = error_line(typed("look", story, *words))
        assert re.search(r"story.txt: a story, but the model '(soft|hard)-mref' reads pictures.*memn2n-babi", line)
    picture = next(album.rglob("*.png"))
    line = error_line(typed("look", picture, "--model", "memn2n-stories"))
    assert re.search(r"\.png: a picture, but the model 'memn2n-stories' reads stories; .*soft-mref", line)


@pytest.fixture(scope="module")
def predictor(tmp_path_factory: pytest.TempPathFactory) -> Predictor:
    return load(save_tiny(tmp_path_factory.mktemp("models") / "tiny"), "cpu")


def picture(path: Path, seed: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (20, 31, 3), dtype=np.uint8)).save(path)
    return path


def kept(
    predictor: Predictor, paths: Sequence[Path], ask: int | None, out: Path, batch_size: int = 32, **options: Any
) -> Iterator[Sighting]:
    return kept_looks(predictor.look_many(paths, ask, batch_size=batch_size), out, **options)


def test_the_table_may_be_parquet_too(predictor: Predictor, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'tables'")
    paths = [picture(tmp_path / name, number) for number, name in enumerate(("a.png", "b,\nor so.png"))]
    seen = list(kept(predictor, paths, 1, tmp_path / "out", parquet=True))
    rows = parquet.read_table(tmp_path / "out" / "looks.parquet").to_pylist()
    assert [row["source"] for row in rows] == [*map(str, paths)]
    assert [row["answer"] for row in rows] == [each.answer for each in seen]
    assert [(row["x"], row["y"]) for row in rows] == [each.peak for each in seen]
    assert rows[0]["confidence"] == pytest.approx(seen[0].confidence, abs=1e-6)
    assert rows[0]["fit_p"] is None


def test_of_several_pictures_one_table_lies_beside_them(predictor: Predictor, tmp_path: Path) -> None:
    paths = [picture(tmp_path / name, number) for number, name in enumerate(("a.png", "b, or so.png", "c.png"))]
    seen = list(kept(predictor, paths, 1, tmp_path / "out"))
    with (tmp_path / "out" / "looks.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["source"] for row in rows] == list(map(str, paths))
    for row, each in zip(rows, seen, strict=True):
        assert (row["asked"], row["answer"], float(row["confidence"])) == ("1", each.answer, round(each.confidence, 6))
        assert (row["next_best"], float(row["next_confidence"])) == (
            each.alternatives[0][0],
            pytest.approx(each.alternatives[0][1], abs=1e-6),
        )
        assert (int(row["x"]), int(row["y"])) == each.peak
        assert (tmp_path / "out" / f"{row['files']}.json").is_file()


def test_a_folder_that_was_made_for_nothing_goes_again(predictor: Predictor, tmp_path: Path) -> None:
    bad = tmp_path / "bad.png"
    bad.write_text("no picture")
    (tmp_path / "there").mkdir()
    for place, is_kept in (("made", False), ("there", True)):
        with pytest.raises(DataError, match="not a picture"):
            list(kept(predictor, [bad], 1, tmp_path / place))
        assert (tmp_path / place).exists() == is_kept
