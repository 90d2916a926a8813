"""Who and what is let in: addresses, origins, the token, paths, names, sizes; and which address a server takes."""

import base64
import json
import logging
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_server import LiveServer, png, serving, until

import saccade
from saccade.commands.serve import _listening, _reach, serve
from saccade.errors import ConfigError, MissingExtraError, OutputError
from saccade.web.guard import LOG, Limits

TOKEN = "a-token-of-this-test"


@pytest.fixture(scope="module")
def remote(tiny_folder: Path) -> Iterator[LiveServer]:
    with serving(tiny_folder / "words", names=("", "lab-machine"), token=TOKEN) as running:
        yield running


@pytest.fixture(scope="module")
def strict(tiny_folder: Path) -> Iterator[LiveServer]:
    """A server with limits that tests can afford to hit."""
    with serving(tiny_folder / "words", limits=Limits(picture_bytes=50_000, request_bytes=5_000, pixels=10_000)) as own:
        yield own


def test_own_names_are_let_in_and_a_rebound_name_is_not(server: LiveServer) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST:80", "[::1]:8765", "127.0.0.2", "localhost."):
        assert server.get("/api/models", Host=host).status == 200, host
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example", "192.168.1.7", "[fe80::1]"):
        reply = server.get("/api/models", Host=host)
        assert (reply.status, reply.code) == (421, "wrong_host"), host


def test_pages_from_elsewhere_may_not_ask_and_the_page_itself_may(server: LiveServer) -> None:
    origin = f"http://127.0.0.1:{server.port}"
    own = {"Host": f"127.0.0.1:{server.port}", "Origin": origin, "Sec-Fetch-Site": "same-origin"}
    assert server.get("/api/models", **own).status == 200
    for header in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
                   {"Sec-Fetch-Site": "cross-site"}):  # fmt: skip
        for path in ("/api/ask", "/api/encode", "/api/scene"):
            assert server.post(path, {}, **header).code == "wrong_origin"
        assert server.get("/api/models", **header).code == "wrong_origin"
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert server.get("/", **followed).status == 200  # a link from elsewhere leads to the page
    assert server.get("/api/models", **followed).code == "wrong_origin"
    assert server.get("/", **{**followed, "Sec-Fetch-Dest": "iframe"}).code == "wrong_origin"


def test_every_response_is_strict_with_the_browser(server: LiveServer) -> None:
    preflight = server.send("OPTIONS", "/api/ask", headers={"Access-Control-Request-Method": "POST"})
    assert preflight.status == 405
    for reply in (preflight, *map(server.get, ("/", "/api/models", "/api/nothing", "/js/nothing.js"))):
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cross-origin-resource-policy"] == "same-origin"
        assert not [name for name in reply.headers if name.startswith("access-control")]


def test_without_the_token_nothing_is_answered(remote: LiveServer) -> None:
    wrong = ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN}, {"Authorization": "Basic " + TOKEN},
             {"Cookie": f"saccade_{remote.port}=wrong"})  # fmt: skip
    for path in ("/", "/api/models", "/viewer.html", "/api/nothing", "/?token=wrong"):
        for headers in wrong:
            reply = remote.get(path, **headers)
            assert (reply.status, reply.code) == (401, "token_wanted")
            assert reply.headers["www-authenticate"] == "Bearer"
    assert remote.post(f"/api/ask?token={TOKEN}", {}).status == 401  # an address of a page only
    for sent in (f"Bearer {TOKEN}", f"bearer  {TOKEN}"):
        assert remote.get("/api/models", Authorization=sent).status == 200


def test_a_browser_opens_the_address_once_and_keeps_a_cookie(remote: LiveServer) -> None:
    reply = remote.get(f"/?model=words&token={TOKEN}")
    assert (reply.status, reply.headers["location"]) == (303, "/?model=words")
    cookie = reply.headers["set-cookie"]
    assert {"httponly", "samesite=lax"} <= {part.strip().lower() for part in cookie.split(";")}
    assert remote.get("/", Cookie=f"other=1; {cookie.partition(';')[0]}").status == 200
    for path in ("//evil.example/", "/\\evil.example", "/%5cevil.example", "/%2fevil.example"):
        assert re.match(r"^/[^/\\]", remote.get(f"{path}?token={TOKEN}").headers["location"])


def test_addresses_and_own_names_are_let_in_and_no_other_name(remote: LiveServer) -> None:
    sent = {"Authorization": f"Bearer {TOKEN}"}
    for host, status in {"192.168.1.7:80": 200, "lab-machine": 200, "[fe80::1]": 200, "evil.example": 421}.items():
        assert remote.get("/api/models", Host=host, **sent).status == status
    assert remote.get("/api/models", Origin="http://evil.example", **sent).code == "wrong_origin"


def test_another_address_gets_a_token_and_the_loopback_none(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apps, announced = [], []
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: apps.append(server.config.app))
    for host in ("127.0.0.1", "0.0.0.0"):
        serve([tiny_folder / "words"], host=host, port=0, allow_remote=True, log=False, announce=announced.append)
    assert [app._token is not None for app in apps] == [False, True]
    assert "token" not in announced[0]
    assert re.search(r"/\?token=[\w-]{43}$", announced[1])


TRAVERSAL = [
    "../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "..\\..\\windows\\win.ini",
    "C:\\Windows\\win.ini", "%00", "/etc/passwd", "//etc/passwd", "file:///etc/passwd", "..%c0%af..%c0%afetc/passwd",
    "%252e%252e%252fetc%252fpasswd", "js/../../app.py", "js/%2e%2e/%2e%2e/app.py",
]  # fmt: skip


def test_no_path_leads_out_of_the_page_and_no_name_is_a_path(
    server: LiveServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in TRAVERSAL:
        for prefix in ("/", "/js/", "/api/records/", "/api/"):
            reply = server.get(f"{prefix}{path}")
            assert 400 <= reply.status < 500, (prefix, path)
            assert reply.code
        assert server.post("/api/ask", {"model": path, "encoding": "p0", "question": "1"}).code == "unknown_model"
        assert server.post("/api/ask", {"model": "words", "encoding": path, "question": "1"}).status == 422
        assert server.post("/api/scene", {"digits": [], "background": f"photo:{path}"}).code == "invalid"
        name = server.upload(png(), path).json["picture"]["name"]
        assert not {"/", "\\"} & set(name)
    assert list(tmp_path.iterdir()) == []


def test_a_hostile_file_name_is_escaped_and_names_no_download(server: LiveServer) -> None:
    encoding = server.upload(png(), '<b onclick=x>"; filename="evil.exe').json["encoding"]
    view = server.post("/api/ask", {"model": "words", "encoding": encoding, "question": "north"}).json
    record = f"/api/records/{view['record']}"
    assert b"<b onclick" not in server.get(f"{record}/page.html").body
    assert b"\\u003cb onclick=x>" in server.get(f"{record}/page.html").body  # in the data, where no element can begin
    name = server.get(f"{record}/strip.png").headers["content-disposition"]
    assert name == 'attachment; filename="words-north.png"'


def test_pictures_of_too_many_pixels_are_refused(strict: LiveServer) -> None:
    assert strict.upload(png((100, 100))).status == 200
    assert "101×100 pixels are more than the 0.01 million allowed" in strict.upload(png((101, 100))).message


def test_what_is_no_data_address_of_a_picture_is_refused(server: LiveServer) -> None:
    files = (b"", b"GIF89a", b"%!PS-Adobe-3.0 EPSF", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7")
    addresses = ("", "x", "data:image/png;base64,@@", "data:image/png,abc", "http://127.0.0.1:1/a.png", "file:///etc/x")
    for url in (*(f"data:image/png;base64,{base64.b64encode(file).decode()}" for file in files), *addresses):
        reply = server.post("/api/encode", {"picture": url})
        assert (reply.status, reply.code) == (422, "invalid"), url


def test_a_body_that_is_too_large_is_not_read_and_one_that_does_not_say_is_counted(strict: LiveServer) -> None:
    head = b"POST /api/encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n"
    assert strict.raw(head).startswith(b"HTTP/1.1 413")  # not one byte of the gigabyte is sent
    head = b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert strict.raw(head, *[b"400\r\n" + b"x" * 1024 + b"\r\n"] * 6).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", strict.port), timeout=20) as connection:  # hangs up in the middle
        connection.sendall(b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
    assert strict.get("/api/models").status == 200


def test_every_request_has_one_line_of_one_form(tiny_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with serving(tiny_folder / "words") as server, caplog.at_level(logging.INFO, LOG.name):
        server.get("/api/models?token=secret")
        server.post("/api/ask", {"model": 7})
        server.get("/api/models", Host="evil.example")
        server.get("/%0a127.0.0.1%20forged")
        server.get('/a"b' + "d" * 1000)
        until(lambda: sum(record.name == LOG.name for record in caplog.records) == 5)  # written once an answer is sent
    *lines, quoted = (record.getMessage() for record in caplog.records if record.name == LOG.name)
    assert all(re.match(r'^[0-9a-f.:]+ "[^"]*" \d{3} \d+ B \d+\.\d{3} s$', line) for line in lines)
    assert [line.split('"')[2].split()[0] for line in lines] == ["200", "422", "421", "404"]
    assert lines[0].startswith('127.0.0.1 "GET /api/models" 200')
    assert "/%0a127.0.0.1%20forged" in lines[3]
    assert '/a\\"bddd' in quoted
    assert len(quoted) < 300
    assert "secret" not in json.dumps(lines)


@pytest.mark.parametrize(
    ("host", "is_remote"),
    [
        *((host, False) for host in ("127.0.0.1", "localhost", "::1", "127.0.0.9")),
        *((host, True) for host in ("0.0.0.0", "::", "192.168.1.7", "lab-machine", "")),
    ],
)
def test_any_address_but_the_loopback_needs_leave(host: str, is_remote: bool) -> None:
    assert _reach(host)[0] == is_remote
    if is_remote:
        with pytest.raises(ConfigError, match="allow_remote"):
            saccade.serve(host=host)


def test_a_missing_extra_is_named_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtraError, match=r"uvicorn is not installed: pip install 'saccade-attention\[web\]'"):
        saccade.serve()


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OutputError, match=f"cannot listen on 127.0.0.1 port {port}"):
            _listening("127.0.0.1", port)


def test_the_command_serves_until_it_is_ended(tiny_folder: Path) -> None:
    pytest.importorskip("fastapi")
    command = [sys.executable, "-m", "saccade", "serve", str(tiny_folder / "words"), "--port", "0", "--device", "cpu"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().strip()
            assert address.startswith("http://127.0.0.1:")
            # its socket listens by now: a request waits there until the server takes it
            with urllib.request.urlopen(f"{address}api/models", timeout=60) as reply:
                assert b'"words"' in reply.read()
        finally:
            process.terminate()
            process.wait(60)
