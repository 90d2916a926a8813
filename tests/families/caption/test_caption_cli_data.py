"""``saccade data`` with captions: scenes are made and shown, tables are shown, mistakes are named."""

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from saccade.commands.door import app


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_scenes_are_made_shown_and_read_again(tmp_path: Path) -> None:
    made = run("data", "make", "scenes", "--glyphs", "pack", "--count", 3, "--out", tmp_path / "made", "--split", "val")
    assert made.exit_code == 0, made.output
    lines = [json.loads(line) for line in (tmp_path / "made" / "scenes.jsonl").read_text().splitlines()]
    assert len(lines) == 3
    assert all(line["caption"].startswith("a ") for line in lines)
    for name in ("scenes", f"jsonl:{tmp_path / 'made' / 'scenes.jsonl'}"):
        out = tmp_path / "sheet.png"
        shown = run("data", "show", name, "--glyphs", "pack", "--split", "val", "--count", 2, "--out", out)
        assert shown.exit_code == 0, shown.output
        assert Image.open(out).width > 400
        out.unlink()


def test_empty_scenes_are_made_shown_and_read_again(tmp_path: Path) -> None:
    wanted = ("--glyphs", "pack", "--split", "val", "--empty", 0.5)
    made = run("data", "make", "scenes", *wanted, "--count", 12, "--out", tmp_path / "made")
    assert made.exit_code == 0, made.output
    lines = [json.loads(line) for line in (tmp_path / "made" / "scenes.jsonl").read_text().splitlines()]
    bare = [line for line in lines if line["caption"] == "nothing"]
    assert 0 < len(bare) < 12
    assert all(not line["objects"] for line in bare)
    assert all(Image.open(tmp_path / "made" / line["image"]).getbbox() is None for line in bare)  # black all over
    assert all(line["caption"].startswith("a ") and line["objects"] for line in lines if line not in bare)
    table = f"jsonl:{tmp_path / 'made' / 'scenes.jsonl'}"
    for args in (("scenes", *wanted), (table, "--split", "val")):
        shown = run("data", "show", *args, "--count", 12, "--out", tmp_path / "sheet.png")
        assert shown.exit_code == 0, shown.output


def test_what_the_table_holds_is_said(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8), "red").save(tmp_path / "a.png")
    Image.new("RGB", (8, 8), "blue").save(tmp_path / "b.png")
    rows = ["image,caption,split", "a.png,A red square,train", "a.png,All is red,train", "b.png,Blue,test"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    shown = run("data", "show", f"csv:{tmp_path / 't.csv'}", "--split", "train", "--out", tmp_path / "sheet.png")
    assert "t.csv: 3 captions of 2 pictures (train 1, val 0, test 1), 5 words" in " ".join(shown.output.split())


def test_captions_are_in_the_list() -> None:
    listed = json.loads(run("data", "list", "--json").stdout)
    captions = {name for name, entry in listed.items() if "caption" in entry["family"]}
    assert captions == {"scenes", "flickr8k", "flickr30k", "coco", "csv", "jsonl"}


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["data", "show", "scenes", "--protocol", "authors"], "protocol: 'scenes' has no such setting; leave it out"),
        (["data", "show", "scenes", "--option", "captions=3"], "scenes have none"),
        (["data", "make", "mref", "--empty", "1", "--out", "x"], "empty: 'mref' has no such setting; leave it out"),
        (["data", "show", "scenes", "--empty", "1.5"], "empty"),
        (["data", "show", "flickr8k:nowhere"], "not a folder"),
        (["data", "show", "coco:nowhere"], "cannot be read (No such file or directory)"),
        (["data", "make", "flickr8k", "--out", "x"], "no generated data 'flickr8k'"),
    ],
)
def test_mistakes_are_named(args: list[str], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert result.exit_code != 0
    assert word in str(result.exception) + result.output
