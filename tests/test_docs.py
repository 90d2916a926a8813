"""The documents keep to what the code does and what was recorded."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
import tables
from typer.testing import CliRunner

import saccade
from saccade.commands.door import app

ROOT = Path(__file__).parent.parent


def test_tables_are_current(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tables.py", "--check"])
    assert tables.main() == 0, capsys.readouterr().out


def test_readme_python_block_runs(tmp_path, monkeypatch, capsys):
    """The block of the README, word for word, in an empty folder: it prints what it says."""
    monkeypatch.chdir(tmp_path)
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()[0].split()
    told = re.search(r'# "(\w+)", ([\d.]+)', block)
    assert (printed[0], f"{float(printed[1]):.2f}") == told.groups()
    assert any((tmp_path / "out").glob("*.png"))


DECLARED = {"answer.py", "families/question/family.py", "families/question/task.py"}
"""Files that hold declarations and dataclasses: a walk passes them, and calls no function in them."""


def named_in(section: str) -> set[str]:
    """The files of the package that a section of docs/architecture.md names."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition(f"\n## {section}\n")[2]
    return set(re.findall(r"`([\w/]+\.py)`", text.partition("\n## ")[0]))


def called_by(run: Callable[[], object]) -> set[str]:
    """The files of the package in which ``run`` calls a function, in whatever thread."""
    package, found = f"{Path(saccade.__file__).parent}/", set[str]()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            found.add(frame.f_code.co_filename.removeprefix(package))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def test_a_look_passes_the_files_that_its_walk_names(tmp_path):
    from saccade.families.question.splits import write_split

    write_split({"name": "mref", "glyphs": "pack"}, "test", 1, tmp_path / "scenes")
    place = ["--model", "soft-mref", "--out", str(tmp_path / "out")]
    command = ["look", str(tmp_path / "scenes" / "00000000.png"), "--ask", "7", *place]
    passed = called_by(lambda: CliRunner().invoke(app, command, catch_exceptions=False))
    named = named_in("One picture through `saccade look`")
    assert len(named) > 20
    assert sorted(named - passed - DECLARED) == []


@pytest.mark.slow
def test_a_training_step_passes_the_files_that_its_walk_names(tmp_path, monkeypatch):
    from saccade.families.question.task import QuestionTask

    monkeypatch.setattr(QuestionTask, "validate", lambda task, model: {"accuracy": 0.0, "loss": 0.0})
    tiny = ["data.glyphs=pack", "phases.0.steps=1", "batch_size=8"]
    passed = called_by(
        lambda: saccade.train("soft-mref", out=tmp_path / "run", overrides=tiny, device="cpu", quiet=True)
    )
    named = named_in("One training step of `soft-mref`")
    assert len(named) > 25
    assert sorted(named - passed - DECLARED) == []
