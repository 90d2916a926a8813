"""Files are whole or not there, locked by one process, and read as a stranger's."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from saccade import files
from saccade.config import LONGEST_YAML, plain_yaml
from saccade.errors import CheckpointError, OutputError
from saccade.files import DEEPEST, locked, parse_json, read_json, read_regular


def _names(folder: Path) -> set[str]:
    return {item.name for item in folder.iterdir()}


def _failing(code: int):
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    files.write_bytes(tmp_path / "f", b"old")
    monkeypatch.setattr(files.os, step, _failing(errno.ENOSPC))
    with pytest.raises(OutputError, match="the disk is full"):
        files.write_bytes(tmp_path / "f", b"new")
    monkeypatch.undo()
    assert (tmp_path / "f").read_bytes() == b"old"
    assert _names(tmp_path) == {"f"}


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("in the way")
    with pytest.raises(OutputError, match="a file of that name is in the way"):
        files.make_folder(tmp_path / "f")
    with pytest.raises(OutputError, match="is a file, not a folder"):
        files.write_bytes(tmp_path / "f" / "g" / "x", b"")


@pytest.mark.parametrize("write", [files.write_json, files.write_json_by_key])
def test_json_refuses_nan_before_it_touches_the_disk(tmp_path: Path, write: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path / "j.json", {"x": [float("nan")]})
    assert _names(tmp_path) == set()


def test_what_grows_takes_its_place_even_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), files.growing(tmp_path / "f") as draft:
        draft.write_text(f"half{draft.write_text('half') / 0}")
    assert (tmp_path / "f").read_text() == "half"
    assert _names(tmp_path) == {"f"}


def _folder(path: Path, text: str) -> None:
    path.mkdir()
    (path / "x").write_text(text)


def test_drafts_of_a_killed_writer_are_swept_once_they_are_old(tmp_path: Path) -> None:
    killed_while_writing(tmp_path / "f", call="replace", number=1, kind="file")
    (draft,) = tmp_path.iterdir()
    others = {"f.gz.part", ".f.abcdefgh.part", ".vim.part"}
    for name in others:
        (tmp_path / name).write_text("half")
    files.sweep(tmp_path)  # somebody may still write it
    assert _names(tmp_path) == {*others, draft.name}
    os.utime(draft, (0, 0))
    files.write_text(tmp_path / "g", "whole")
    assert _names(tmp_path) == {*others, "g"}


@pytest.mark.parametrize("number", [1, 2])
def test_a_kill_between_the_renames_of_a_folder_loses_neither(tmp_path: Path, number: int) -> None:
    _folder(tmp_path / "m", "old")
    killed_while_writing(tmp_path / "m", call="replace", number=number, kind="folder")
    assert (tmp_path / "m").exists() == (number == 1)
    files.recover(tmp_path / "m")
    assert (tmp_path / "m" / "x").read_text() == ("old" if number == 1 else "new")
    with files.folder_in_place(tmp_path / "m") as draft:
        (draft / "x").write_text("newest")
    files.sweep(tmp_path, everything=True)
    assert _names(tmp_path) == {"m"}
    assert (tmp_path / "m" / "x").read_text() == "newest"


def test_the_old_folder_comes_back_if_the_new_one_is_gone(tmp_path: Path) -> None:
    _folder(tmp_path / ".m.abc.saccade-old", "old")
    files.sweep(tmp_path)
    assert (tmp_path / "m" / "x").read_text() == "old"
    assert _names(tmp_path) == {"m"}


KILLED_AT = """
import os, signal, sys
from pathlib import Path
from saccade import files

def kill_at(name, number):
    real, calls = getattr(os, name), []
    def counted(*given):
        calls.append(1)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*given)
    setattr(os, name, counted)

path = Path(sys.argv[3])
kill_at(sys.argv[1], int(sys.argv[2]))
if sys.argv[4] == "file":
    files.write_text(path, "new")
else:
    with files.folder_in_place(path) as draft:
        (draft / "x").write_text("new")
"""


def run(code: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=False, timeout=60
    )


def killed_while_writing(path: Path, *, call: str, number: int, kind: str) -> None:
    """Let a process write ``path`` (a file or a folder) and die by SIGKILL at the n-th call of a function of os."""
    done = run(KILLED_AT, call, number, path, kind)
    assert done.returncode == -9, done.stderr


HOLD = """
import os, sys
from pathlib import Path
from saccade.files import locked
with locked(Path(sys.argv[1]), "trains"):
    print(os.getpid(), flush=True)
    sys.stdin.readline()
"""


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock ``path``."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == f"{process.pid}\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_second_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with holder(path) as process:
        with pytest.raises(OutputError, match="runs/a"), locked(path, "trains into runs/a"):
            pass
        process.communicate("end\n", timeout=60)
    assert not path.exists()
    with locked(path, "trains"):
        assert path.is_file()
    assert not path.exists()


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "l"
    with holder(path) as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        assert path.is_file()
        with locked(path, "trains"):
            pass
    assert not path.exists()


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"abc")
    os.mkfifo(tmp_path / "pipe")
    for name, most, said in (
        ("large", 2, "3 bytes, and at most 2 are allowed"),
        ("pipe", 9, "not a regular file"),
        (".", 9, "Is a directory"),
        ("a\0b", 9, "no file can have this name"),
        ("none", 9, "No such file"),
    ):
        with pytest.raises(OSError, match=said):
            read_regular(tmp_path / name, most)


REFUSED = ("[" * 100_000, "[" * 70 + "]" * 70, '{"a":' * 70 + "1" + "}" * 70, '["a\\u0000b"]', '{"a\\u0000b": 1}',
           '["\\ud800"]', '"\\udfff"', str(2**63), f'{{"a": [{-(2**63) - 1}]}}', "9" * 5000, "{", "[1]")  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_json_that_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"a\.json"):
        read_json(tmp_path / "a.json")


def test_json_that_is_read() -> None:
    values = {"a": [1, -(2**63), 2**63 - 1, 1.5, None, True, "é", "\udcff"], "b": {"c": []}}
    assert parse_json(json.dumps(values)) == values
    deep = json.loads("[" * DEEPEST + "]" * DEEPEST)
    assert parse_json(json.dumps(deep)) == deep


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("a: 2024-13-45", {"a": "2024-13-45"}),
        ("1: x\n1.5: y\nyes: z", {"1": "x", "1.5": "y", "yes": "z"}),
        ("a: [yes, no, ~, 0x10, -1, .5, text]", {"a": [True, False, None, 16, -1, 0.5, "text"]}),
    ],
)
def test_yaml_that_is_read(text: str, value: object) -> None:
    assert plain_yaml(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "a: !!int x", "a: !!int ''", "a: !!float x", "a: !!bool x", "a: !!timestamp x", "a: !!set {b}", "a: !!map [1]",
        "a: !!python/name:os.system ''", "a: !!binary YQ==", "[1, 2]: x", "? {a: b}\n: x", "a: 1\na: 2", "a: &b [*b]",
        "a: &b [1]\nc: *b", "a: &b {x: 1}\nc: {<<: *b}", "a: *b", "[" * 100_000, "a: " + "9" * 5000, "a: b: c",
        "a: 0x" + "f" * 40, 'a: "\\0"', 'a: "\\ud800"', "x" * (LONGEST_YAML + 1),
    ],
)  # fmt: skip
def test_yaml_that_is_refused(text: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - any of them
        plain_yaml(text)
    assert "\n" not in str(caught.value)
