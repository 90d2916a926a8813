"""Files are whole or not there, and every failure says what to do."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dead_writers import killed_while_writing
from saccade import files
from saccade.errors import OutputError


def _names(folder: Path) -> set[str]:
    return {item.name for item in folder.iterdir()}


def _failing(code: int):
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def test_files_get_ordinary_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_UMASK", 0o027)
    monkeypatch.setattr(files.os, "umask", None)  # a write that sets it changes the files of other threads
    path = files.write_bytes(tmp_path / "f", b"x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


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


def test_a_stop_in_mid_write_cleans_up_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        files.write_bytes(tmp_path / "f", b"new")
    assert _names(tmp_path) == set()


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


def test_a_folder_replaces_the_old_one(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with files.folder_in_place(tmp_path / "m") as temporary:
            (temporary / text).write_text(text)
    assert _names(tmp_path) == {"m"}
    assert _names(tmp_path / "m") == {"new"}


def test_a_file_is_not_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("precious")
    with pytest.raises(OutputError, match="is a file, not a folder"), files.folder_in_place(tmp_path / "m"):
        pass
    assert (tmp_path / "m").read_text() == "precious"
    assert _names(tmp_path) == {"m"}


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


def test_the_old_folder_of_a_longer_name_is_left_where_it_is(tmp_path: Path) -> None:
    _folder(tmp_path / ".m.v2.abc.saccade-old", "old")
    files.recover(tmp_path / "m")
    assert not (tmp_path / "m").exists()
    files.recover(tmp_path / "m.v2")
    assert (tmp_path / "m.v2" / "x").read_text() == "old"
