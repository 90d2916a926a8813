"""``saccade data`` for multisets: scenes on disk, and contact sheets of generated pictures and of one's own."""

import json

from PIL import Image
from typer.testing import CliRunner, Result

from saccade.commands.door import app


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


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
