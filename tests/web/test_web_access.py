"""Who and what is let in: addresses, origins, the token, sizes; and work that is waited for, bounded and given up."""

import asyncio
import base64
import contextlib
import io
import json
import logging
import re
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_server import LiveServer, png, serving, until
from PIL import Image

import hostile_pictures
import saccade
from hostile_pictures import jpeg_of_scans, ppm_of_comments, tiff_of_frames
from saccade.commands.serve import _listening, _reach, serve
from saccade.errors import ConfigError, DataError, MissingExtraError, OutputError
from saccade.web import decode
from saccade.web.decode import Sandbox, memory_for
from saccade.web.guard import LOG, Limits
from saccade.web.models import LruStore, ServedModel, Worker
from saccade.web.schemas import ApiError

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


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not enforce RLIMIT_AS")


def run_apart(coroutine: Any) -> Any:
    """Run it on a thread of its own: in this one a browser of another test may have left its loop running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def read(data: bytes, **limits: Any) -> tuple[Image.Image, tuple[str, ...]]:
    async def once() -> tuple[Image.Image, tuple[str, ...]]:
        return await Sandbox(Limits(**{"decoding_seconds": 60, **limits})).read(data, "a.png")

    return run_apart(once())


def test_a_picture_is_decoded_and_a_large_one_reduced() -> None:
    image = Image.open(io.BytesIO(png((90, 60))))
    found, notes = read(png((90, 60)))
    assert (found.tobytes(), notes) == (image.tobytes(), ())
    found, notes = read(png((90, 60)), side=32)
    image.thumbnail((32, 32), Image.Resampling.LANCZOS)
    assert (found.tobytes(), notes) == (image.tobytes(), ("reduced from 90×60",))
    assert read(tiff_of_frames(3000))[1] == ("the first of several frames",)


def test_what_takes_too_long_is_killed() -> None:
    for data in (jpeg_of_scans(2000, 3000), ppm_of_comments(1_500_000)):
        with pytest.raises(DataError, match=r"a\.png.*0\.3 s"):
            read(data, decoding_seconds=0.3)


@pytest.mark.parametrize(
    "said",
    [
        "print('')",
        "print('{\"size\": [1, 1], \"notes\": []}\\nab', end='')",  # too few pixels
        "print('{\"size\": [-1, -1], \"notes\": []}\\nabc', end='')",
        "while True: print('a' * 1000000)",
    ],
)
def test_a_process_that_was_taken_over_is_not_believed(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "_BOOT", said)
    with pytest.raises(DataError, match="crashed"):
        read(png())


@linux
def test_memory_has_a_limit_and_what_a_header_may_say_fits_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The format that takes the most is 21 bytes a pixel; 5,000² transparent pixels take 200 MB beside Python."""
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    Image.new("RGBA", (2000, 2000)).save(buffer, "WEBP", lossless=True, quality=0, method=0, exif=exif)
    assert read(buffer.getvalue(), pixels=4_000_000)[0].size == (1024, 1024)
    assert memory_for(32_000_000) < 0.92e9
    narrow = "import saccade.web.decode as d; d.memory_for = lambda _: 200 << 20; "
    monkeypatch.setattr(decode, "_BOOT", decode._BOOT.replace("main(sys", narrow + "main(sys"))
    with pytest.raises(DataError, match="more than 200 MiB"):
        read(hostile_pictures.png(5000, 5000))


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 12)), max_size=40))
def test_a_store_keeps_its_budget(puts: list[tuple[str, int]]) -> None:
    store: LruStore[int] = LruStore("thing", budget=20, places=4)
    for name, size in puts:
        store.put(name, size, size)
        sizes = [there for other in "abcdef" if (there := store.get(other)) is not None]
        assert store.get(name) == size
        assert len(sizes) <= 4
        assert sum(sizes) <= 20


def test_a_full_queue_says_so() -> None:
    worker, gate = Worker("tiny", 2, 60.0), threading.Event()

    async def three() -> ApiError:
        waiting = [asyncio.create_task(worker.run(lambda: gate.wait(20))) for _ in range(2)]
        await asyncio.sleep(0)  # until both are in hand
        with pytest.raises(ApiError, match="'tiny' has 2 requests in hand") as caught:
            await worker.run(lambda: 0)
        gate.set()
        assert await asyncio.gather(*waiting) == [True, True]
        return caught.value

    assert run_apart(three()).status == 429
    worker.close()


def test_work_that_takes_too_long_is_given_up_and_what_waited_is_not_begun() -> None:
    worker, gate, begun = Worker("tiny", 8, 0.05), threading.Event(), []

    async def slow_then_waiting() -> int:
        slow = asyncio.create_task(worker.run(lambda: gate.wait(20)))
        await asyncio.sleep(0)  # until it is in hand
        waiting = asyncio.create_task(worker.run(lambda: begun.append(1)))
        for task in (slow, waiting):
            with pytest.raises(ApiError, match=r"did not answer within 0\.05 s") as caught:
                await task
            assert caught.value.status == 503
        gate.set()
        for _ in range(1000):  # on a busy machine even this may take longer than the worker's 0.05 s
            with contextlib.suppress(ApiError):
                return await worker.run(lambda: 7)
        raise AssertionError("the worker never worked again")

    assert run_apart(slow_then_waiting()) == 7
    assert begun == []
    worker.close()


def question(number: int) -> dict[str, Any]:
    digits = [{"digit": number % 4, "x": number % 70, "y": 5, "size": 30, "colour": "red"}]
    return {"model": "digits", "scene": {"digits": digits, "seed": number}, "question": number % 4}


def request(path: str, value: Any) -> bytes:
    """A request as bytes."""
    body = json.dumps(value).encode()
    headers = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"POST {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode() + body


def in_hand(model: ServedModel) -> int:
    """Pieces of work of a model."""
    return Limits().waiting - model.worker._places._value


@pytest.fixture
def served(tiny_folder: Path) -> Iterator[Callable[..., LiveServer]]:
    """Starts a server under limits of its own."""
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(serving(tiny_folder / "digits", limits=Limits(**limits)))


def test_a_decoder_is_waited_for_and_free_again_when_its_client_hangs_up(served: Callable[..., LiveServer]) -> None:
    """A process has 600 s and is the only one: the last upload would wait for it."""
    server = served(decoding_seconds=600, decoding_wait_seconds=0.2, decoders=1)
    url = f"data:image/png;base64,{base64.b64encode(ppm_of_comments(1_500_000)).decode()}"
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
        slow.sendall(request("/api/encode", {"picture": url}))
        until(lambda: server.service.decoders._free.locked())
        reply = server.upload(png())
        assert (reply.status, reply.code) == (429, "busy")
        assert "within 0.2 s" in reply.message
    until(lambda: not server.service.decoders._free.locked())
    assert server.upload(png()).status == 200


def test_no_model_runs_for_one_who_hung_up(served: Callable[..., LiveServer]) -> None:
    server = served(answer_seconds=120)
    model, gate, encoded, answered = server.service.models["digits"], threading.Event(), [], []
    assert server.post("/api/ask", question(0)).status == 200
    predictor = model.predictor()
    encode, ask = predictor.encode, predictor.ask
    predictor.encode = lambda *given: (encoded.append(given), gate.wait(60), encode(*given))[2]  # type: ignore[method-assign]
    predictor.ask = lambda *given: (answered.append(given), ask(*given))[1]  # type: ignore[method-assign]
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as first:
        first.sendall(request("/api/ask", question(1)))
        until(lambda: bool(encoded))
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as second:
            second.sendall(request("/api/ask", question(2)))
            until(lambda: in_hand(model) == 2)
        until(lambda: in_hand(model) == 1)  # the second is gone and was never begun
    until(model.worker._given_up.is_set)
    gate.set()
    assert server.post("/api/ask", question(3)).status == 200
    assert len(encoded) == 2  # the first and the last
    assert len(answered) == 1  # the last: the first was encoded and not asked


def test_a_picture_may_be_encoded_as_several_tensors_by_name(served: Callable[..., LiveServer]) -> None:
    server = served()
    predictor = server.service.models["digits"].predictor()
    encode, ask = predictor.encode, predictor.ask
    predictor.encode = lambda *given: replace(made := encode(*given), features={"map": made.features})  # type: ignore[method-assign]
    predictor.ask = lambda made, *given: ask(replace(made, features=made.features["map"]), *given)  # type: ignore[method-assign]
    assert server.post("/api/ask", question(0)).status == 200


def test_when_all_have_work_a_new_one_is_told_to_come_back(served: Callable[..., LiveServer]) -> None:
    server = served(connections=3, answer_seconds=120)
    model, gate = server.service.models["digits"], threading.Event()
    original = model.predictor
    model.predictor = lambda: (gate.wait(60), original())[1]  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as clients:
        asked = [clients.submit(server.post, "/api/ask", question(number)) for number in range(2)]
        until(lambda: in_hand(model) == 2)
        reply = server.get("/api/models")
        gate.set()
        assert reply.status == 503
        assert [answer.result().status for answer in asked] == [200, 200]
