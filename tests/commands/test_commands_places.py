"""Places that are read-only or somebody else's, and disks without room: one line, exit code 2, nothing half-written.

Root may write everywhere, so the commands run in forked processes of an ordinary user. All that a command imports is
imported before: the interpreter may lie where that user cannot read.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

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


NOBODY = 65534
_NEW_MOUNTS, _PRIVATE = 0x00020000, (1 << 14) | (1 << 18)


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    output: str
    left: tuple[str, ...]  # What its folder holds afterwards.


def drop_privileges() -> None:
    """Become nobody, if this is root: root may write everywhere."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def may_run_python() -> bool:
    """Whether an ordinary user may start this interpreter; one in the folder of another user it may not."""
    pid = os.fork()
    if pid == 0:
        try:
            drop_privileges()
            os._exit(0 if os.access(sys.executable, os.X_OK) else 1)
        finally:
            os._exit(2)
    return os.waitpid(pid, 0)[1] == 0


def limit_files(size: int) -> Callable[[], None]:
    """No file may get larger than this: writing ends in the middle, as on a full disk."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def run_as(first: Callable[[], None], *words: object, folder: Path, note: Path) -> Said:
    """Run a command in a forked process after ``first``; a RuntimeError if ``first`` or the command broke down.

    Args:
        first: what changes the process, such as :func:`drop_privileges`.
        words: of the command line.
        folder: of this, what is left is told.
        note: a file that the process may write to.
    """
    note.parent.mkdir(mode=0o777, exist_ok=True)
    note.parent.chmod(0o777)
    told = note.with_name("told")
    told.unlink(missing_ok=True)

    def work() -> None:
        from saccade.commands.door import app

        with told.open("w") as file:  # before there is no room
            first()
            result = CliRunner().invoke(app, [str(word) for word in words])
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)  # no more
            left = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))
            json.dump({"code": result.exit_code, "output": result.output, "left": left}, file)

    note.unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        try:
            if "torch" in sys.modules:  # its pool of threads does not live through a fork; it is made anew here, once
                sys.modules["torch"].set_num_threads(1)
            work()
            os._exit(0)
        except BaseException:
            note.write_text(traceback.format_exc())
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError(note.read_text() if note.is_file() else "it left no word")
    return Said(**{**json.loads(told.read_text()), "left": tuple(json.loads(told.read_text())["left"])})
