"""A server of ours on a free port, in a thread, and a client that sends it whatever a test wants, good or bad."""

import base64
import http.client
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("fastapi")

import uvicorn

from saccade.commands.serve import _listening
from saccade.web.app import create_app
from saccade.web.guard import Limits, server_config
from saccade.web.service import Service


def png(size: tuple[int, int] = (34, 31), seed: int = 0) -> bytes:
    """A noisy picture (width, height)."""
    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def until(is_so: Callable[[], bool]) -> None:
    """Let the server work until something is so."""
    for _ in range(20_000):
        if is_so():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it never came")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of an error, which must have the one form that errors have."""
        assert set(self.json) == {"error"}
        assert set(self.json["error"]) == {"code", "message"}
        assert self.json["error"]["message"]
        return self.json["error"]["code"]

    @property
    def message(self) -> str:
        return self.json["error"]["message"]


@dataclass(frozen=True)
class LiveServer:
    port: int
    service: Service

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, headers=headers)

    def post(self, path: str, value: Any, **headers: str) -> Reply:
        return self.send("POST", path, json.dumps(value).encode(), {"Content-Type": "application/json", **headers})

    def upload(self, data: bytes, filename: str = "a.png", **fields: str) -> Reply:
        """A picture as a data address."""
        url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        return self.post("/api/encode", {"picture": url, "name": filename, **fields})

    def send(self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.putrequest(method, path, skip_host="Host" in (headers or {}), skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if body or method == "POST":
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders()
            if body:
                connection.send(body)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, found, response.read())
        finally:
            connection.close()

    def raw(self, *pieces: bytes) -> bytes:
        """Bytes as they are; what comes back until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            try:
                for piece in pieces:
                    connection.sendall(piece)
            except OSError:
                pass  # it has hung up on us already; what it said is still there
            return b"".join(iter(lambda: _received(connection), b""))


def _received(connection: socket.socket) -> bytes:
    try:
        return connection.recv(65536)
    except ConnectionError:
        return b""


class _Announced(uvicorn.Server):
    """A server that says when it takes requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()


@contextmanager
def serving(
    *folders: Path, limits: Limits | None = None, names: tuple[str, ...] = (), token: str | None = None
) -> Iterator[LiveServer]:
    """The models in ``folders`` behind a real socket."""
    service = Service(folders, "cpu", limits)
    with _listening("127.0.0.1", 0) as open_socket:
        server = _Announced(server_config(create_app(service, names, token), service.limits))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [open_socket]}, daemon=True)
        thread.start()
        assert server.ready.wait(60)
        try:
            yield LiveServer(open_socket.getsockname()[1], service)
        finally:
            server.should_exit = True
            thread.join(10)
