"""What must not get in does not, whatever is sent gets an answer below 500, and nothing of it is run or opened."""

from __future__ import annotations

import base64
import json
import socket
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from live_server import LiveServer, png, serving

from saccade.web.guard import Limits
from saccade.web.pictures import shown_name
from tiny_models import save_tiny

HTML = "<script>alert(1)</script>"


def bomb(side: int) -> bytes:
    """A small PNG whose header promises side × side pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(1_000_000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory):
    """A server with limits that tests can afford to hit."""
    folder = save_tiny(tmp_path_factory.mktemp("strict") / "m", name="tiny")
    limits = Limits(picture_bytes=50_000, request_bytes=5_000, pixels=10_000)
    with serving(folder, limits=limits) as running:
        yield running


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "[::1]:8765", "127.0.0.2", "localhost."])
def test_the_servers_own_names_are_let_in(server: LiveServer, host: str) -> None:
    assert server.get("/api/models", Host=host).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "", "localhost.evil.example", "192.168.1.7", "0.0.0.0", "[fe80::1]"],
)
def test_a_rebound_name_is_not(server: LiveServer, host: str) -> None:
    reply = server.get("/api/models", Host=host)
    assert (reply.status, reply.code) == (421, "wrong_host")


@pytest.mark.parametrize(
    "header", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
def test_pages_from_elsewhere_may_not_ask(server: LiveServer, header: dict) -> None:
    for path in ("/api/ask", "/api/encode", "/api/scene"):
        assert server.post(path, {}, **header).code == "wrong_origin"
    assert server.get("/api/models", **header).code == "wrong_origin"


def test_the_page_itself_may(server: LiveServer) -> None:
    own = {
        "Host": f"127.0.0.1:{server.port}",
        "Origin": f"http://127.0.0.1:{server.port}",
        "Sec-Fetch-Site": "same-origin",
    }
    assert server.get("/api/models", **own).status == 200
    other_port = {**own, "Origin": "http://127.0.0.1:1"}
    assert server.get("/api/models", **other_port).code == "wrong_origin"


def test_a_link_from_elsewhere_leads_to_the_page_but_not_into_the_api(server: LiveServer) -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert server.get("/", **followed).status == 200
    assert server.get("/api/models", **followed).code == "wrong_origin"
    assert server.get("/", **{**followed, "Sec-Fetch-Dest": "iframe"}).code == "wrong_origin"


@pytest.mark.parametrize("path", ["/", "/api/models", "/api/nothing", "/js/nothing.js"])
def test_every_response_is_strict_with_the_browser(server: LiveServer, path: str) -> None:
    headers = server.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


def test_no_other_origin_is_ever_allowed_to_read(server: LiveServer) -> None:
    reply = server.send("OPTIONS", "/api/ask", headers={"Access-Control-Request-Method": "POST"})
    assert reply.status == 405
    assert not [name for name in reply.headers if name.startswith("access-control")]


TRAVERSAL = [
    "../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "....//....//etc/passwd",
    "..\\..\\windows\\win.ini", "C:\\Windows\\win.ini", "%00", "/etc/passwd", "//etc/passwd", "file:///etc/passwd",
    "..%c0%af..%c0%afetc/passwd", "%252e%252e%252fetc%252fpasswd", "js/../../app.py", "../app.py",
    "js/%2e%2e/%2e%2e/app.py",
]  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSAL)
def test_no_path_leads_out_of_the_page(server: LiveServer, path: str) -> None:
    for prefix in ("/", "/js/", "/api/records/", "/api/"):
        reply = server.get(f"{prefix}{path}".replace(" ", "%20"))
        assert 400 <= reply.status < 500, (prefix, path)
        assert reply.code


@pytest.mark.parametrize("path", TRAVERSAL)
def test_no_name_is_a_path(server: LiveServer, path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert server.post("/api/ask", {"model": path, "encoding": "p0", "question": "1"}).code == "unknown_model"
    assert server.post("/api/ask", {"model": "words", "encoding": path, "question": "1"}).status == 422
    assert server.post("/api/encode", {"picture": path}).code == "invalid"
    assert server.post("/api/scene", {"digits": [], "background": f"photo:{path}"}).code == "invalid"
    named = server.upload(png(), path)
    assert named.status == 200
    assert "/" not in named.json["picture"]["name"]
    assert "\\" not in named.json["picture"]["name"]
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=300))
def test_a_shown_name_is_a_short_name_without_folders(name: str) -> None:
    shown = shown_name(name)
    assert 1 <= len(shown) <= 120
    assert not {"/", "\\", "\0", "\n", "\r"} & set(shown)
    json.dumps(shown).encode("ascii")
    shown.encode("utf-8")


def test_a_file_name_is_escaped_in_the_page_that_is_downloaded(server: LiveServer) -> None:
    encoding = server.upload(png((33, 33)), f"{HTML}.png").json["encoding"]
    view = server.post("/api/ask", {"model": "words", "encoding": encoding, "question": "north"}).json
    assert view["picture"]["name"] == "script>.png"  # what looks like a folder is cut off
    hostile = server.upload(png((33, 32)), "<b onclick=x>").json["encoding"]
    view = server.post("/api/ask", {"model": "words", "encoding": hostile, "question": "north"}).json
    page = server.get(f"/api/records/{view['record']}/page.html").body
    assert b"<b onclick" not in page
    assert b"\\u003cb onclick=x>" in page  # inside the page's data, which no element can begin in


def test_a_download_is_named_by_us(server: LiveServer) -> None:
    encoding = server.upload(png(), 'a"; filename="evil.exe').json["encoding"]
    view = server.post("/api/ask", {"model": "words", "encoding": encoding, "question": "north"}).json
    name = server.get(f"/api/records/{view['record']}/strip.png").headers["content-disposition"]
    assert name == 'attachment; filename="words-north.png"'


def test_a_decompression_bomb_is_refused_by_its_header(server: LiveServer) -> None:
    """Its pixels are not all there: had they been decoded, the answer would be that it is cut short."""
    for side in (6_000, 30_000):
        reply = server.upload(bomb(side), "bomb.png")
        assert (reply.status, reply.code) == (422, "invalid")
        assert "32 million allowed" in reply.message
    assert "cut short" in server.upload(bomb(5_000)).message
    assert server.upload(png()).status == 200


def test_the_servers_own_pixel_limit_holds(strict: LiveServer) -> None:
    assert strict.upload(png((100, 100))).status == 200
    reply = strict.upload(png((101, 100)))
    assert reply.status == 422
    assert "101×100 pixels are more than the 0.01 million allowed" in reply.message


def as_url(data: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(
    "url",
    [
        *map(
            as_url, (b"", b"GIF89a", b"%!PS-Adobe-3.0 EPSF", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.7")
        ),
        *("", "x", "data:image/png;base64,@@", "data:image/png,abc", "http://127.0.0.1:1/a.png"),
        *("file:///etc/passwd", "data:text/html;base64,PGI+"),
    ],
)
def test_what_is_no_data_address_of_a_picture_is_refused(server: LiveServer, url: str) -> None:
    reply = server.post("/api/encode", {"picture": url})
    assert (reply.status, reply.code) == (422, "invalid")


def test_a_body_that_says_it_is_too_large_is_not_read(strict: LiveServer) -> None:
    head = b"POST /api/encode HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n"
    reply = strict.raw(head)  # not one byte of the gigabyte is sent
    assert reply.startswith(b"HTTP/1.1 413")
    assert b"too_large" in reply


def test_a_body_that_does_not_say_is_counted(strict: LiveServer) -> None:
    head = b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    reply = strict.raw(head, *[b"400\r\n" + b"x" * 1024 + b"\r\n"] * 6)
    assert reply.startswith(b"HTTP/1.1 413")


def test_one_who_hangs_up_leaves_no_trace(strict: LiveServer) -> None:
    with socket.create_connection(("127.0.0.1", strict.port), timeout=20) as connection:
        connection.sendall(b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345")
    assert strict.get("/api/models").status == 200


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20) | st.just("words"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NEARLY = st.fixed_dictionaries(
    {"digits": st.lists(st.fixed_dictionaries({"digit": st.integers(-1, 10), "x": st.integers(-1, 101), "y": st.just(0),
     "size": st.integers(0, 120), "colour": st.sampled_from(["red", "pink"])}), max_size=3)},
    optional={"seed": st.integers(-1, 1 << 40), "background": st.sampled_from(["black", "clutter", "photo:cat", "x"])},
)  # fmt: skip
FIELDS = st.sampled_from(["model", "encoding", "scene", "question", "picture", "digits", "background", "seed", "name"])
ASKED = st.fixed_dictionaries({"model": st.just("words"), "scene": NEARLY, "question": JSON_VALUES | st.just("north")})
BODIES = st.dictionaries(FIELDS, JSON_VALUES, max_size=6) | JSON_VALUES | NEARLY | ASKED
ENDPOINTS = st.sampled_from(["/api/ask", "/api/ask_all", "/api/encode", "/api/scene", "/api/models", "/api/records/a"])
FUZZ = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FUZZ
@given(ENDPOINTS, BODIES)
def test_any_json_gets_an_answer_below_500(server: LiveServer, path: str, body: object) -> None:
    reply = server.post(path, body)
    assert reply.status < 500
    assert reply.status == 200 or reply.code


@FUZZ
@given(
    ENDPOINTS,
    st.binary(max_size=400),
    st.sampled_from(["application/json", "multipart/form-data", "text/plain", ""]),
    st.sampled_from(["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"]),
)
def test_any_bytes_get_an_answer_below_500(server: LiveServer, path: str, body: bytes, kind: str, method: str) -> None:
    reply = server.send(method, path, body, {"Content-Type": kind})
    assert reply.status < 500


@settings(FUZZ, max_examples=30)  # a process each
@given(st.binary(max_size=200), st.integers(0, 60), st.binary(max_size=6))
def test_any_damaged_picture_gets_an_answer_below_500(server: LiveServer, tail: bytes, cut: int, patch: bytes) -> None:
    data = bytearray(png())
    data[cut : cut + len(patch)] = patch
    assert server.upload(bytes(data) + tail).status < 500


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 20_000,
        b'{"a":' * 20_000,
        b"1" * 20_000,
        b'"\\ud800"',
        b'{"seed": 1e999}',
        b'{"seed": NaN}',
        b"\xff\xfe",
        b"",
    ],
)
def test_json_made_to_break_parsers_is_refused(server: LiveServer, body: bytes) -> None:
    for path in ("/api/scene", "/api/ask", "/api/encode"):
        reply = server.send("POST", path, body, {"Content-Type": "application/json"})
        assert 400 <= reply.status < 500
        assert reply.code
