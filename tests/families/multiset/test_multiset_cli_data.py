"""``saccade data`` for multisets: scenes on disk, and contact sheets of generated pictures and of one's own."""

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from saccade.commands.door import app


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = ["image,labels,split,boxes", "0.png,a;a;b,train,0 0 9 9;9 0 19 9;20 0 30 9", "1.png,,train,", "2.png,b,val,"]
    for n in range(3):
        Image.new("RGB", (40, 30), (40 * n, 0, 0)).save(tmp_path / f"{n}.png")
    (tmp_path / "t.csv").write_text("\n".join(rows))
    return tmp_path / "t.csv"


def test_make_then_show_what_was_made(tmp_path):
    made = run("data", "make", "mnist-set", "--out", tmp_path / "made", "--count", 3, "--glyphs", "pack", "--seed", 2)
    assert made.exit_code == 0, made.output
    assert "3 scenes in" in made.output
    alone = run("data", "make", "mnist-set", "--out", tmp_path / "alone", "--count", 1, "--glyphs", "pack")
    assert "1 scene in" in alone.output
    lines = [json.loads(line) for line in (tmp_path / "made" / "scenes.jsonl").read_text().splitlines()]
    assert [line["seed"] for line in lines] == [2, 2, 2]
    shown = run("data", "show", f"jsonl:{tmp_path / 'made' / 'scenes.jsonl'}", "--out", tmp_path / "s.png")
    assert shown.exit_code == 0, shown.output
    assert Image.open(tmp_path / "s.png").width > 500  # three panels


def test_a_sheet_of_scenes(tmp_path):
    result = run("data", "show", "mnist-multiset", "--glyphs", "pack", "--count", 2, "--out", tmp_path / "s.png")
    assert result.exit_code == 0, result.output
    assert Image.open(tmp_path / "s.png").width > 400


def test_what_the_table_holds_is_said_unless_quiet(table, tmp_path):
    show = ("data", "show", f"csv:{table}", "--split", "val", "--out", tmp_path / "s.png")
    held = "3 pictures (train 2, val 1, test 0), 2 classes, at most 3 labels on a training picture"
    assert f"csv:{table}: {held}" in " ".join(run(*show).output.split())
    assert held not in " ".join(run(*show, "--quiet").output.split())


def test_captions_are_multisets_in_braces_and_lists_as_they_are(table, tmp_path, monkeypatch):
    seen = []

    def remember(pictures, captions, *, marks):
        seen.append((captions, [len(each) for each in marks]))
        return Image.new("RGB", (4, 4))

    monkeypatch.setattr("saccade.show.sheets.contact_sheet", remember)
    for options in ([], ["--option", "kind=list"]):
        done = run("data", "show", f"csv:{table}", "--split", "train", "--out", tmp_path / "s.png", *options)
        assert done.exit_code == 0, done.output
    assert seen == [(["{a, a, b}", "{}"], [3, 0]), (["a, a, b", ""], [3, 0])]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["data", "make", "mnist-st", "--out", "x"], "did you mean 'mnist-set'"),
        (
            ["data", "show", "mnist-set", "--protocol", "author"],
            "protocol: found 'author'; did you mean 'authors'",
        ),
        (["data", "show", "mnist-set", "--option", "cluter=3"], "did you mean 'clutter'"),
        (["data", "show", "svhn:nowhere"], "neither train/digitStruct.mat nor train.csv"),
        (["data", "show", "svnh:nowhere"], "no reader 'svnh'"),
    ],
)
def test_what_cannot_be_made_or_shown(args, word):
    result = run(*args)
    assert result.exit_code == 2
    assert word in " ".join(result.output.split())


def test_a_set_with_repeats_is_refused_by_line(table):
    result = run("data", "show", f"csv:{table}", "--split", "train", "--option", "kind=set")
    assert result.exit_code == 2
    assert "a label repeats in 1 row(s): line 2" in " ".join(result.output.split())
