"""Digests of files by content: twins are told apart, unchanged files are not read again, the index stays whole."""

import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from saccade.data.pictures import content_digest
from saccade.data.pictures.content_digest import content_digests, files_digest
from saccade.errors import DataError

NORMALISED = (1_000_000_000, 1_000_000_000)  # nanoseconds, as "tar --mtime" gives all files one time


@pytest.fixture(autouse=True)
def index(tmp_path, monkeypatch) -> Path:
    """The index of an empty cache folder; files need not lie still for a second to be remembered."""
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(content_digest, "_SETTLED_NS", 0)
    return tmp_path / "home" / "contents.index"


@pytest.fixture
def reads(monkeypatch) -> list[Path]:
    """Files that are opened."""
    opened: list[Path] = []
    real = Path.open

    def noted(path, *arguments, **options):
        opened.append(path)
        return real(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", noted)
    return opened


def written(folder: Path, contents: list[bytes]) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.png" for number in range(len(contents))]
    for path, content in zip(paths, contents):
        path.write_bytes(content)
        os.utime(path, ns=NORMALISED)
    return paths


def test_a_digest_is_that_of_the_bytes(tmp_path):
    paths = written(tmp_path / "a", [b"one", b"", b"x" * 3_000_000])
    assert content_digests(paths) == [hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in paths]
    assert content_digests([]) == []


def test_folders_with_equal_names_sizes_and_times_are_told_apart(tmp_path):
    one, other = written(tmp_path / "a", [b"12", b"34"]), written(tmp_path / "b", [b"12", b"35"])
    for left, right in zip(one, other):
        assert left.name == right.name
        assert (left.stat().st_size, left.stat().st_mtime_ns) == (right.stat().st_size, right.stat().st_mtime_ns)
    assert files_digest(one) != files_digest(other)


def test_names_places_and_times_do_not_matter_but_order_does(tmp_path):
    paths = written(tmp_path / "a", [b"12", b"34"])
    before = files_digest(paths)
    moved = tmp_path / "elsewhere.jpg"
    paths[1].rename(moved)
    os.utime(moved, ns=(7, 7))
    assert files_digest([paths[0], moved]) == before
    assert files_digest([moved, paths[0]]) != before


def test_a_file_that_was_touched_is_read_again_and_keeps_its_digest(tmp_path, reads):
    paths = written(tmp_path / "a", [b"12", b"34"])
    before = content_digests(paths)
    os.utime(paths[0], ns=(5, 6))
    reads.clear()
    assert content_digests(paths) == before
    assert reads.count(paths[0]) == 1
    assert paths[1] not in reads


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps no time of the last change of an inode")
def test_a_file_that_was_rewritten_in_place_with_its_time_put_back_is_noticed(tmp_path):
    (path,) = written(tmp_path / "a", [b"12"])
    before, inode = content_digests([path]), path.stat().st_ino
    while True:  # until the system's clock has moved on, which is what tells the two apart
        was = path.stat().st_ctime_ns
        path.write_bytes(b"13")
        os.utime(path, ns=NORMALISED)
        if path.stat().st_ctime_ns != was:
            break
    assert path.stat().st_ino == inode
    assert path.stat().st_mtime_ns == NORMALISED[1]
    assert content_digests([path]) != before


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo"])
def test_what_cannot_be_read_is_named(tmp_path, kind):
    path = tmp_path / "thing.png"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    message = "cannot be read" if kind == "missing" else "not a regular file"
    with pytest.raises(DataError, match=rf"thing\.png: {message}"):
        content_digests([path])


def test_files_that_did_not_change_are_not_read_again(tmp_path, reads):
    paths = written(tmp_path / "a", [b"12", b"34"])
    before = content_digests(paths)
    reads.clear()
    assert content_digests(paths) == before
    assert not set(paths) & set(reads)


def test_a_relative_path_is_the_same_file(tmp_path, monkeypatch, reads):
    (path,) = written(tmp_path / "a", [b"12"])
    before = content_digests([path])
    monkeypatch.chdir(tmp_path / "a")
    reads.clear()
    assert content_digests([Path("0.png")]) == before
    assert Path("0.png") not in reads


def test_a_file_that_changed_a_moment_ago_is_not_remembered(tmp_path, monkeypatch, index):
    monkeypatch.setattr(content_digest, "_SETTLED_NS", 1 << 62)
    content_digests(written(tmp_path / "a", [b"12"]))
    assert not index.exists()


@pytest.mark.parametrize("damage", ["a byte", "cut short", "empty", "another file"])
def test_a_damaged_index_is_made_anew(tmp_path, index, reads, damage):
    paths = written(tmp_path / "a", [b"12", b"34"])
    before = content_digests(paths)
    content = bytearray(index.read_bytes())
    content[-40] ^= 1  # of the last digest
    index.write_bytes({"a byte": content, "cut short": content[:-5], "empty": b"", "another file": b"x" * 99}[damage])
    assert content_digests(paths) == before
    reads.clear()
    assert content_digests(paths) == before
    assert not set(paths) & set(reads)


def test_the_index_is_bounded_and_the_newest_stay(tmp_path, monkeypatch, index, reads):
    monkeypatch.setattr(content_digest, "MOST", 3)
    paths = written(tmp_path / "a", [bytes([number]) for number in range(5)])
    for path in paths:
        content_digests([path])
    assert index.stat().st_size == len(content_digest._HEADER) + 3 * 32 + 32
    reads.clear()
    content_digests(paths[2:])
    assert not set(paths) & set(reads)
    content_digests(paths[:1])
    assert paths[0] in reads


def test_a_cache_folder_that_cannot_be_written_only_costs_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path / "file"))
    paths = written(tmp_path / "a", [b"12"])
    assert content_digests(paths) == content_digests(paths)


def test_processes_that_write_at_once_leave_a_whole_index(tmp_path, index):
    """Whatever each of them adds, digests are right, and the index can be read."""
    paths = written(tmp_path / "a", [f"{number}".encode() for number in range(40)])
    expected = [hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest() for path in paths]
    code = (
        "import sys; from pathlib import Path\n"
        "from saccade.data.pictures import content_digest as c; c._SETTLED_NS = 0\n"
        "for path in sys.argv[1:]: c.content_digests([Path(path)])"
    )
    others = [subprocess.Popen([sys.executable, "-c", code, *map(str, paths[start::2])]) for start in range(2)]
    found: list[list[str]] = []
    threads = [threading.Thread(target=lambda: found.append(content_digests(paths))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait() for process in others] == [0, 0]
    assert found == [expected] * 3
    assert content_digest._read_index(index)
    assert content_digests(paths) == expected
