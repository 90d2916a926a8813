"""Files are whole or not there, and every failure says what to do."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dead_writers import dead_tag, killed_while_writing
from saccade import atomic
from saccade.errors import OutputError


def _names(folder: Path) -> set[str]:
    return {item.name for item in folder.iterdir()}


def _failing(code: int):
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    return fail


def test_text_and_json_land_in_new_folders(tmp_path: Path) -> None:
    path = atomic.write_text(tmp_path / "a" / "b" / "t.txt", "α\n")
    assert path.read_bytes() == "α\n".encode()
    path = atomic.write_json(tmp_path / "j.json", {"x": [1, "ü"]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"x": [1, "ü"]}
    assert path.read_text(encoding="utf-8").endswith("}\n")


def test_an_old_file_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "f"
    atomic.write_bytes(target, b"old")
    atomic.write_bytes(target, b"new")
    assert target.read_bytes() == b"new"
    assert _names(tmp_path) == {"f"}


def test_files_get_ordinary_permissions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_UMASK", 0o027)
    monkeypatch.setattr(atomic.os, "umask", None)  # a write that sets it changes the files of other threads
    path = atomic.write_bytes(tmp_path / "f", b"x")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("step", ["open", "fsync"])
@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EACCES])
def test_a_file_system_that_does_not_sync_folders_is_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, code: int
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(atomic.os, step, _failing(code))
        atomic.sync_folder(tmp_path)
    monkeypatch.setattr(atomic.os, step, _failing(errno.EIO))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        atomic.sync_folder(tmp_path)


@pytest.mark.parametrize("step", ["replace", "fsync", "chmod"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    atomic.write_bytes(tmp_path / "f", b"old")
    monkeypatch.setattr(atomic.os, step, _failing(errno.ENOSPC))
    with pytest.raises(OutputError, match="the disk is full"):
        atomic.write_bytes(tmp_path / "f", b"new")
    monkeypatch.undo()
    assert (tmp_path / "f").read_bytes() == b"old"
    assert _names(tmp_path) == {"f"}


def test_a_stop_in_mid_write_cleans_up_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(atomic.os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        atomic.write_bytes(tmp_path / "f", b"new")
    assert _names(tmp_path) == set()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_a_failure_names_the_place(tmp_path: Path, code: int) -> None:
    with pytest.raises(OutputError, match=str(tmp_path / "x")), atomic.writing(tmp_path / "x"):
        raise OSError(code, os.strerror(code))


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("in the way")
    with pytest.raises(OutputError, match="a file of that name is in the way"):
        atomic.make_folder(tmp_path / "f")
    with pytest.raises(OutputError, match="is a file, not a folder"):
        atomic.write_bytes(tmp_path / "f" / "g" / "x", b"")


def test_a_folder_where_a_file_should_be(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    with pytest.raises(OutputError, match="it is a folder, not a file"):
        atomic.write_bytes(tmp_path / "d", b"x")
    assert _names(tmp_path) == {"d"}


def test_json_by_key_has_a_line_for_each_key_and_reads_back(tmp_path: Path) -> None:
    values = {"α": {"b": [1, 0.1, None]}, "text": 'ü "→"\n', "none": {}}
    text = atomic.write_json_by_key(tmp_path / "j.json", values).read_text(encoding="utf-8")
    assert text.splitlines() == ["{", ' "α": {"b":[1,0.1,null]},', ' "text": "ü \\"→\\"\\n",', ' "none": {}', "}"]
    assert list(json.loads(text).items()) == list(values.items())


@pytest.mark.parametrize("write", [atomic.write_json, atomic.write_json_by_key])
def test_json_refuses_nan_before_it_touches_the_disk(tmp_path: Path, write: Any) -> None:
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path / "j.json", {"x": [float("nan")]})
    assert _names(tmp_path) == set()


def test_what_grows_takes_its_place_even_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), atomic.growing(tmp_path / "f") as draft:
        draft.write_text(f"half{draft.write_text('half') / 0}")
    assert (tmp_path / "f").read_text() == "half"
    assert _names(tmp_path) == {"f"}


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    with atomic.folder_in_place(tmp_path / "deep" / "m") as temporary:
        (temporary / "sub").mkdir()
        (temporary / "sub" / "x").write_text("1")
        assert not (tmp_path / "deep" / "m").exists()
    assert (tmp_path / "deep" / "m" / "sub" / "x").read_text() == "1"
    assert _names(tmp_path / "deep") == {"m"}


def test_a_folder_replaces_the_old_one(tmp_path: Path) -> None:
    for text in ("old", "new"):
        with atomic.folder_in_place(tmp_path / "m") as temporary:
            (temporary / text).write_text(text)
    assert _names(tmp_path) == {"m"}
    assert _names(tmp_path / "m") == {"new"}


def test_a_full_disk_names_the_folder_that_was_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run publishes a folder that the model fills by the same means: neither draft is anybody's business."""
    monkeypatch.setattr(atomic.os, "fsync", _failing(errno.ENOSPC))
    outer = atomic.folder_in_place(tmp_path / "model")
    with pytest.raises(OutputError) as caught, outer as draft, atomic.folder_in_place(draft) as inner:
        atomic.write_bytes(inner / "weights", b"x")
    assert str(caught.value).startswith(f"cannot write {tmp_path / 'model' / 'weights'}: the disk is full")
    assert _names(tmp_path) == set()


def test_a_failed_folder_leaves_the_old_one(tmp_path: Path) -> None:
    with atomic.folder_in_place(tmp_path / "m") as temporary:
        (temporary / "x").write_text("old")
    with pytest.raises(ZeroDivisionError), atomic.folder_in_place(tmp_path / "m") as temporary:
        (temporary / "x").write_text(f"new {1 / 0}")
    assert _names(tmp_path) == {"m"}
    assert (tmp_path / "m" / "x").read_text() == "old"


def test_a_failed_swap_puts_the_old_folder_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with atomic.folder_in_place(tmp_path / "m") as temporary:
        (temporary / "x").write_text("old")
    real, calls = os.replace, []

    def second_fails(source: object, target: object) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise OSError(errno.EIO, "broken")
        real(source, target)  # type: ignore[arg-type]

    monkeypatch.setattr(atomic.os, "replace", second_fails)
    with pytest.raises(OutputError, match="broken"), atomic.folder_in_place(tmp_path / "m") as temporary:
        (temporary / "x").write_text("new")
    assert _names(tmp_path) == {"m"}
    assert (tmp_path / "m" / "x").read_text() == "old"


def test_a_file_is_not_replaced_by_a_folder(tmp_path: Path) -> None:
    (tmp_path / "m").write_text("precious")
    with pytest.raises(OutputError, match="is a file, not a folder"), atomic.folder_in_place(tmp_path / "m"):
        pass
    assert (tmp_path / "m").read_text() == "precious"
    assert _names(tmp_path) == {"m"}


def _folder(path: Path, text: str) -> None:
    path.mkdir()
    (path / "x").write_text(text)


@pytest.mark.parametrize(("call", "number"), [("fsync", 1), ("replace", 1)])
def test_the_draft_of_a_killed_writer_is_swept_by_the_next(tmp_path: Path, call: str, number: int) -> None:
    killed_while_writing(tmp_path / "f", call=call, number=number, kind="file")
    (left,) = _names(tmp_path)
    assert left.endswith(".part")
    atomic.write_text(tmp_path / "other", "whole")
    assert _names(tmp_path) == {"other"}


def test_drafts_of_others_are_left_alone(tmp_path: Path) -> None:
    far = f".f.elsewhere-{dead_tag().split('-')[1]}-abc.part"
    others = {f"{atomic._prefix('f')}abc.part", "f.gz.part", ".f.abcdefgh.part", ".vim.part", far}
    for name in others:
        (tmp_path / name).write_text("half")
    atomic.write_text(tmp_path / "g", "whole")
    assert _names(tmp_path) == {*others, "g"}
    atomic.sweep(tmp_path, own=("f",))  # who holds the lock knows that nobody writes it
    assert _names(tmp_path) == {"f.gz.part", ".f.abcdefgh.part", ".vim.part", "g"}


def test_a_folder_is_swept_once_in_a_process(tmp_path: Path) -> None:
    atomic.write_text(tmp_path / "a", "")
    (tmp_path / f".f.{dead_tag()}-abc.part").write_text("half")
    atomic.write_text(tmp_path / "b", "")
    assert len(_names(tmp_path)) == 3


def test_a_long_name_has_room_for_its_draft(tmp_path: Path) -> None:
    for name in ("x" * 255, "ü" * 127):
        atomic.write_text(tmp_path / name, "1")
        assert (tmp_path / name).read_text() == "1"


@pytest.mark.parametrize("number", [1, 2])
def test_a_kill_between_the_renames_of_a_folder_loses_neither(tmp_path: Path, number: int) -> None:
    _folder(tmp_path / "m", "old")
    killed_while_writing(tmp_path / "m", call="replace", number=number, kind="folder")
    assert (tmp_path / "m").exists() == (number == 1)
    atomic.recover(tmp_path / "m")
    assert (tmp_path / "m" / "x").read_text() == ("old" if number == 1 else "new")
    with atomic.folder_in_place(tmp_path / "m") as draft:
        (draft / "x").write_text("newest")
    assert _names(tmp_path) == {"m"}
    assert (tmp_path / "m" / "x").read_text() == "newest"


def test_the_old_folder_comes_back_if_the_new_one_is_gone(tmp_path: Path) -> None:
    _folder(tmp_path / f".m.{dead_tag()}-abc.old", "old")
    atomic.recover(tmp_path / "m")
    assert (tmp_path / "m" / "x").read_text() == "old"
    assert _names(tmp_path) == {"m"}


def test_a_writer_recovers_other_folders_beside_its_own(tmp_path: Path) -> None:
    tag = dead_tag()
    _folder(tmp_path / f".m.{tag}-abc.old", "old")
    _folder(tmp_path / f".m.{tag}-abc.part", "new")
    _folder(tmp_path / f".m.{tag}-xyz.part", "half")  # of another write
    atomic.write_text(tmp_path / "note", "")
    assert _names(tmp_path) == {"m", "note"}
    assert (tmp_path / "m" / "x").read_text() == "new"


@pytest.mark.parametrize("own", [(), ("m",)])
def test_a_folder_that_cannot_be_put_in_place_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: tuple[str, ...]
) -> None:
    tag = dead_tag()
    names = {f".m.{tag}-abc.old": "old", f".m.{tag}-abc.part": "new", f".m.{tag}-xyz.part": "half"}
    for name, text in names.items():
        _folder(tmp_path / name, text)
    with monkeypatch.context() as patched:
        patched.setattr(atomic.os, "replace", _failing(errno.EACCES))
        atomic.sweep(tmp_path, own)
    assert _names(tmp_path) == {f".m.{tag}-abc.old", f".m.{tag}-abc.part"}
    atomic.sweep(tmp_path, own)
    assert _names(tmp_path) == {"m"}
    assert (tmp_path / "m" / "x").read_text() == "new"


def test_a_reader_may_finish_the_swap_of_a_running_writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _folder(tmp_path / "m", "old")
    real, seen = os.replace, []

    def replace(source: Any, target: Any) -> None:
        real(source, target)
        if str(target).endswith(".old") and not seen:
            atomic.recover(tmp_path / "m")  # a reader comes between the two renames
            seen.append((tmp_path / "m" / "x").read_text())

    monkeypatch.setattr(atomic.os, "replace", replace)
    with atomic.folder_in_place(tmp_path / "m") as draft:
        (draft / "x").write_text("new")
    assert seen == ["new"]
    assert (tmp_path / "m" / "x").read_text() == "new"
    assert _names(tmp_path) == {"m"}
