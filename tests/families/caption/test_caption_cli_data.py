"""``saccade data`` with captions: scenes are made and shown, tables are shown, mistakes are named."""

import json
from pathlib import Path

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
