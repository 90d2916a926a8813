"""``saccade data show READER:PATH``: a contact sheet of one's own questions."""

from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from saccade.commands.door import app


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = ["image,query,label,split,box"]
    for n in range(5):
        Image.new("RGB", (40, 30), (40 * n, 0, 0)).save(tmp_path / f"{n}.png")
        rows += [f"{n}.png,left,a,train,0 0 20 30", f"{n}.png,right,b,train,20 0 40 30"]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    return tmp_path / "t.csv"


def test_a_sheet_shows_one_question_for_each_picture(table, tmp_path):
    sheets = []
    for count in (1, 4):
        result = run("data", "show", f"csv:{table}", "--split", "train", "--count", count, "--out", tmp_path / "s.png")
        assert result.exit_code == 0, result.output
        held = f"csv:{table}: 10 questions (train 10, val 0, test 0) about 5 pictures, 2 queries, 2 answers"
        assert held in " ".join(result.output.split())  # of the whole table, however few are shown
        sheets.append(Image.open(tmp_path / "s.png").size)
    assert sheets[1][0] > 3 * sheets[0][0] - 100  # four panels in a row, not eight, not one


def test_options_reach_the_reader(table, tmp_path):
    table.write_text(table.read_text() + "\ngone.png,left,a,train,")
    result = run(
        "data", "show", f"csv:{table}", "--split", "train", "--option", "strict=true", "--out", tmp_path / "s.png"
    )
    assert result.exit_code == 2
    assert "no such picture" in result.output.replace("\n", " ")
    assert not (tmp_path / "s.png").exists()
