"""Nobody holds the server: connections, headers, pictures and work that was given up all end, and the rest goes on."""

from __future__ import annotations

import base64
import json
import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from live_server import LiveServer, png, serving

from hostile_pictures import ppm_of_comments, tiff_of_frames
from saccade.web.guard import LOG, Limits
from saccade.web.models import ServedModel

MANY_TURNS = 20_000


def question(number: int = 1) -> dict:
    digits = [{"digit": number % 4, "x": number % 70, "y": 5, "size": 30, "colour": "red"}]
    return {"model": "digits", "scene": {"digits": digits, "seed": number}, "question": number % 4}


def request(path: str, body: bytes) -> bytes:
    """A request as bytes."""
    headers = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return f"POST {path} HTTP/1.1\r\n{headers}\r\n\r\n".encode() + body


def upload_of(data: bytes) -> bytes:
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    return request("/api/encode", json.dumps({"picture": url}).encode())


def until(is_so: Callable[[], bool]) -> None:
    """Let the server work until something is so."""
    for _ in range(MANY_TURNS):
        if is_so():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it never came")


def in_hand(model: ServedModel) -> int:
    """Pieces of work of a model."""
    return Limits().waiting - model.worker._places._value


@pytest.fixture
def served(tiny_folder: Path) -> Iterator[Callable[..., LiveServer]]:
    """Starts a server under limits of its own."""
    with ExitStack() as stack:
        yield lambda **limits: stack.enter_context(serving(tiny_folder / "digits", limits=Limits(**limits)))


def test_many_frames_are_no_work(server: LiveServer) -> None:
    reply = server.upload(tiff_of_frames(3000), "frames.tif")
    assert reply.status == 200
    assert reply.json["picture"]["notes"] == ["the first of several frames"]


def test_who_waits_too_long_for_a_decoder_is_told_to_come_back(served: Callable[..., LiveServer]) -> None:
    server = served(decoding_seconds=600, decoding_wait_seconds=0.2, decoders=1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
        slow.sendall(upload_of(ppm_of_comments(1_500_000)))
        until(lambda: server.service.decoders._free.locked())
        reply = server.upload(png())
    assert (reply.status, reply.code) == (429, "busy")
    assert "within 0.2 s" in reply.message


def test_one_who_hangs_up_leaves_no_decoding_behind(served: Callable[..., LiveServer]) -> None:
    """Its process has 600 s and is the only one: the next upload would wait for it."""
    server = served(decoding_seconds=600, decoding_wait_seconds=60, decoders=1)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as slow:
        slow.sendall(upload_of(ppm_of_comments(1_500_000)))
        until(lambda: server.service.decoders._free.locked())
    assert server.upload(png()).status == 200


def test_no_model_runs_for_one_who_hung_up(served: Callable[..., LiveServer]) -> None:
    server = served(answer_seconds=120)
    model, gate, asked = server.service.models["digits"], threading.Event(), []
    assert server.post("/api/ask", question(0)).status == 200
    predictor = model.predictor()
    encode = predictor.encode

    def slow(*sources: object) -> object:
        asked.append(sources)
        gate.wait(60)
        return encode(*sources)

    predictor.encode = slow  # type: ignore[method-assign]
    answered: list[object] = []
    ask = predictor.ask
    predictor.ask = lambda *given: (answered.append(given), ask(*given))[1]  # type: ignore[method-assign]
    body = request("/api/ask", json.dumps(question(1)).encode())
    waiting = request("/api/ask", json.dumps(question(2)).encode())
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as first:
        first.sendall(body)
        until(lambda: bool(asked))  # it is being encoded
        with socket.create_connection(("127.0.0.1", server.port), timeout=60) as second:
            second.sendall(waiting)
            until(lambda: in_hand(model) == 2)
        until(lambda: in_hand(model) == 1)  # the second is gone and was never begun
    until(model.worker._given_up.is_set)
    gate.set()
    assert server.post("/api/ask", question(3)).status == 200
    assert len(asked) == 2  # the first and the last
    assert len(answered) == 1  # the last: the first was encoded and not asked


def test_when_all_have_work_a_new_one_is_told_to_come_back(served: Callable[..., LiveServer]) -> None:
    server = served(connections=3, answer_seconds=120)
    model, gate = server.service.models["digits"], threading.Event()
    original = model.predictor
    model.predictor = lambda: (gate.wait(60), original())[1]  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as clients:
        held = [clients.submit(server.post, "/api/ask", question(number)) for number in range(2)]
        until(lambda: in_hand(model) == 2)
        reply = server.get("/api/models")
        gate.set()
        assert reply.status == 503
        assert [each.result().status for each in held] == [200, 200]


LINE = re.compile(r'^[0-9a-f.:]+ "[^"]*" \d{3} \d+ B \d+\.\d{3} s$')


def test_every_request_has_one_line_of_one_form(
    served: Callable[..., LiveServer], caplog: pytest.LogCaptureFixture
) -> None:
    server = served()
    with caplog.at_level(logging.INFO, LOG.name):
        server.get("/api/models?token=secret")
        server.get("/api/nothing")
        server.post("/api/ask", {"model": 7})
        server.get("/api/models", Host="evil.example")
        server.get("/%0a127.0.0.1%20forged")
        server.get('/a"b' + "d" * 1000)
        until(lambda: sum(each.name == LOG.name for each in caplog.records) == 6)  # written once an answer is sent
    lines = [each.getMessage() for each in caplog.records if each.name == LOG.name]
    quoted = lines.pop()
    assert [line for line in lines if not LINE.match(line)] == []
    assert '/a\\"bddd' in quoted
    assert len(quoted) < 300
    assert [line.split('"')[2].split()[0] for line in lines] == ["200", "404", "422", "421", "404"]
    assert lines[0].startswith('127.0.0.1 "GET /api/models" 200')
    assert "secret" not in "".join(lines)
    assert "/%0a127.0.0.1%20forged" in lines[4]
