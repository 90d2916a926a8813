"""Places that are read-only or somebody else's, and disks without room: one line, exit code 2, nothing half-written.

Root may write everywhere, so the commands run in forked processes of an ordinary user. All that a command imports is
imported before: the interpreter may lie where that user cannot read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from ordinary_user import Said, drop_privileges, limit_files, may_run_python, run_as
from saccade.commands.door import app
from saccade.files import is_draft
from tiny_runs import FRESH, TINY, short_splits
from typed import typed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forked processes and their users")

TRAIN = (
    "train",
    "soft-mref",
    "--device",
    "cpu",
    "--quiet",
    *(word for each in (*TINY, *FRESH) for word in ("--set", each)),
)


@pytest.fixture(scope="module")
def public(run: Path) -> Iterator[Path]:
    """A folder that everybody can read, with runs and a picture; folders of tests are private."""
    folder = Path(tempfile.mkdtemp(prefix="saccade-places-"))
    folder.chmod(0o755)
    for name in ("run", "again"):
        shutil.copytree(run, folder / name)
    Image.new("RGB", (100, 100), "white").save(folder / "a.png")
    _imported(folder)
    yield folder
    shutil.rmtree(folder)


def _imported(folder: Path) -> None:
    """Run every command once where it may write; of the training, one step."""
    for verb, words in _commands(folder, folder / "warm").items():
        with short_splits():
            result = typed(*words, *(("--set", "phases.0.steps=1") if verb == "train" else ()))
        assert result.exit_code == 0, result.output
    shutil.rmtree(folder / "warm")


def _commands(folder: Path, out: Path) -> dict[str, list[str]]:
    run = str(folder / "run")
    return {
        "train": [*TRAIN, "--out", str(out / "run")],
        "look": ["look", str(folder / "a.png"), "--model", run, "--ask", "1", "--device", "cpu", "--out", str(out)],
        "export": ["data", "make", "mref", "--glyphs", "pack", "-n", "2", "--out", str(out / "scenes"), "--quiet"],
    }


def _one_line(said: Said) -> str:
    assert said.code == 2, said.output
    (line,) = said.output.strip().splitlines()
    assert line.startswith("error: ")
    return line


@pytest.fixture
def closed(public: Path) -> Iterator[Path]:
    """A folder that a test fills and then closes to ordinary users, with what is in it."""
    folder = public / "closed"
    folder.mkdir()
    yield folder
    _open_again(folder)
    shutil.rmtree(folder)


def _open_again(folder: Path) -> None:
    folder.chmod(0o755)
    for entry in folder.iterdir():
        if entry.is_dir():
            _open_again(entry)


@pytest.mark.parametrize("verb", ["train", "look", "export"])
def test_a_folder_that_is_not_ones_own(public: Path, closed: Path, verb: str) -> None:
    closed.chmod(0o555)
    words = _commands(public, closed)[verb]
    line = _one_line(run_as(drop_privileges, *words, folder=closed, note=public / "notes" / verb))
    if "decodes pictures cannot be started (Permission denied)" in line and not may_run_python():
        pytest.skip("an ordinary user may not run this Python, so no picture is decoded")
    assert "cannot write" in line
    assert "permission denied" in line
    assert list(closed.iterdir()) == []


@pytest.mark.parametrize("verb", ["train", "look", "export"])
def test_a_disk_without_room(public: Path, verb: str) -> None:
    out = public / "full"
    out.mkdir()
    try:
        said = run_as(limit_files(300), *_commands(public, out)[verb], folder=out, note=public / "notes" / verb)
        line = _one_line(said)
        assert "cannot write" in line
        assert "ulimit -f" in line
        assert not [name for name in said.left if is_draft(Path(name).name)]
        assert not [name for name in said.left if name.endswith(("saccade.lock", ".part", ".old"))]
    finally:
        shutil.rmtree(out)


def test_a_run_goes_on_when_there_is_room_again(public: Path) -> None:
    out = public / "later"
    words = _commands(public, out)["train"]
    _one_line(run_as(limit_files(3000), *words, folder=public, note=public / "notes" / "later"))
    result = CliRunner().invoke(app, [*words, "--resume"] if (out / "run").exists() else words)
    assert result.exit_code == 0, result.output
    weights = [path / "model" / "model.safetensors" for path in (out / "run", public / "run")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
