"""The other verbs: thin over their Python functions, quick to start, honest about what is missing."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

import saccade
from saccade.commands.door import app


def run(*args: object) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_tour_shows_its_tables_and_where_the_page_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fake(out: Path, quick: bool, device: str, on_progress) -> SimpleNamespace:
        on_progress("soft-mref", 1, 2)
        assert (out, quick, device) == (tmp_path / "t", True, "auto")
        table = SimpleNamespace(title="scores", columns=("model", "here"), rows=[("soft-mref", "81.2")])
        return SimpleNamespace(report=Path("t/report.html"), tables=[table], seconds=61.4)

    monkeypatch.setitem(saccade.__dict__, "tour", fake)
    result = run("tour", "--quick", "--out", tmp_path / "t")
    assert result.exit_code == 0
    assert "81.2" in result.stdout
    assert "open t/report.html in a browser (61 s)" in result.stdout
