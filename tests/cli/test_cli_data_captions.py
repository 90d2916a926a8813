"""``saccade data`` with captions: scenes are made and shown, tables are shown, mistakes are named."""

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from saccade.cli import app


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


def test_captions_are_in_the_list() -> None:
    listed = json.loads(run("data", "list", "--json").stdout)
    captions = {name for name, entry in listed.items() if entry["task"] == "caption"}
    assert captions == {"scenes", "flickr8k", "flickr30k", "coco"}


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["data", "show", "scenes", "--protocol", "authors"], "2,000 val and 5,000 test"),
        (["data", "show", "scenes", "--option", "captions=3"], "scenes have none"),
        (["data", "show", "flickr8k:nowhere"], "not a folder"),
        (["data", "show", "coco:nowhere"], "no such file or folder"),
        (["data", "make", "flickr8k", "--out", "x"], "no generated data 'flickr8k'"),
    ],
)
def test_mistakes_are_named(args: list[str], word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*args)
    assert result.exit_code != 0
    assert word in str(result.exception) + result.output
