"""Requests to the server, handed to the application itself: every one gets an answer, and one below 500."""

import asyncio
import base64
import io
import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzing import ODD_TEXT, RefusedError, Target, as_json, nested, odd, spoilt_bytes, spoilt_values
from PIL import Image

from tiny_models import save_tiny


@dataclass(frozen=True)
class Sent:
    """One request."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


class Requests(Target):
    name = "requests"
    deadline = 10.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        from saccade.web.app import create_app
        from saccade.web.service import Service

        self.loop = asyncio.new_event_loop()
        self.app = create_app(Service([save_tiny(folder / "tiny", name="tiny")], "cpu"))
        buffer = io.BytesIO()
        Image.new("RGB", (34, 31), "red").save(buffer, "PNG")
        self.png = buffer.getvalue()
        picture = "data:image/png;base64," + base64.b64encode(self.png).decode()
        self.upload = {"picture": picture, "name": "a.png", "model": "tiny"}
        status, reply = self.loop.run_until_complete(self._replied(_posted("/api/encode", self.upload)))
        if status != 200:
            raise AssertionError(f"a good picture got {status}: {reply[:200]!r}")
        digits = [{"digit": 1, "x": 3, "y": 4, "size": 20, "colour": "red"}]
        scene = {"digits": digits, "background": "black", "seed": 1}
        ask = {"model": "tiny", "encoding": json.loads(reply)["encoding"], "question": "1", "picture": False}
        self.calls: dict[str, Any] = {
            "/api/ask": ask,
            "/api/ask_all": {"model": "tiny", "scene": scene},
            "/api/scene": scene,
            "/api/encode": self.upload,
        }

    def corpus(self) -> Mapping[str, Any]:
        found: dict[str, Any] = {f"good {path}": _posted(path, body) for path, body in self.calls.items()}
        paths = ("/", "/api/models", "/api/records/../../etc", "/%00", "/api/\ud800", "/api/" + "a" * 5000,
                 "/..%2f..%2f", "/api/records/" + "A" * 64 + "/strip.png", "//evil.example")  # fmt: skip
        for path in paths:
            for method in ("GET", "HEAD", "POST", "OPTIONS", "TRACE", "x"):
                found[f"{method} {path[:40]!r}"] = Sent(method, path, b"{}" if method == "POST" else b"")
        bodies = (b"", b"null", b'{"model": NaN}', b'{"model": "a', b"\xe9", b"\0", b"[" * 100_000 + b"]" * 100_000)
        values = ("\ud800", "a\0b", 10**400, 2**63, float("inf"), nested(70), None, [], {}, "x" * 5000, True, -1, 1.5)
        for path, body in self.calls.items():
            found |= {f"{path} {content[:20]!r}": _sent(path, content) for content in bodies}
            for key in body:
                found |= {f"{path} {key} {number}": _posted(path, {**body, key: value})
                          for number, value in enumerate(values)}  # fmt: skip
        headers = {"host": "evil.example", "origin": "null", "content-length": "-1", "content-encoding": "gzip"}
        headers |= {"upgrade": "websocket", "transfer-encoding": "chunked", "cookie": "a" * 5000, "accept": "\xff"}
        for name, value in headers.items():
            sent = {"content-type": "application/json", name: value}
            found[f"header {name}"] = Sent("POST", "/api/ask", b"{}", sent)
        return found | {"picture of a strange name": self._upload(self.png, "../\0\n.png")}

    def drawn(self, rng: random.Random) -> Sent:
        path = rng.choice(list(self.calls))
        what = rng.randrange(9)
        if what < 5:
            return _posted(path, spoilt_values(rng, self.calls[path]))
        if what == 5:
            return _sent(path, spoilt_bytes(rng, as_json(self.calls[path])))
        if what == 6:
            return self._upload(spoilt_bytes(rng, self.png), rng.choice(ODD_TEXT))
        if what == 7:
            address = rng.choice(("/api/records/", "/families/", "/", "/api/")) + str(odd(rng))[:300]
            return Sent(rng.choice(("GET", "HEAD", "POST")), address, b"")
        headers = {rng.choice(("host", "origin", "content-type", "accept", "cookie", "range")): rng.choice(ODD_TEXT)}
        return Sent("POST", path, as_json(self.calls[path]), {"content-type": "application/json", **headers})

    def run(self, case: Sent) -> None:
        status, reply = self.loop.run_until_complete(self._replied(case))
        if status is None:
            raise AssertionError("no reply")
        if status >= 500:
            raise AssertionError(f"{status}: {reply[:300]!r}")
        if status >= 400:
            raise RefusedError(f"{status}: {reply[:300]!r}")

    def _upload(self, data: bytes, name: str) -> Sent:
        picture = "data:image/png;base64," + base64.b64encode(data).decode()
        return _posted("/api/encode", {**self.upload, "picture": picture, "name": name})

    async def _replied(self, sent: Sent) -> tuple[int | None, bytes]:
        """Status and body that the application sends back; None: it sent nothing."""
        headers = {"host": "127.0.0.1", "content-length": str(len(sent.body)), **sent.headers}
        path, _, query = sent.path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": sent.method, "scheme": "http",
            "path": path.encode("utf-8", "replace").decode(), "raw_path": path.encode("utf-8", "replace"),
            "root_path": "", "query_string": query.encode("utf-8", "replace"), "client": ("127.0.0.1", 5000),
            "server": ("127.0.0.1", 80),
            "headers": [(name.encode(), value.encode("latin-1", "replace")) for name, value in headers.items()],
        }  # fmt: skip
        waiting, replies = [{"type": "http.request", "body": sent.body, "more_body": False}], []

        async def receive() -> dict[str, Any]:
            if not waiting:
                await asyncio.Event().wait()  # the client stays until it is answered
            return waiting.pop(0)

        async def send(message: dict[str, Any]) -> None:
            replies.append(message)

        await self.app(scope, receive, send)  # type: ignore[arg-type]
        body = b"".join(message.get("body", b"") for message in replies)
        return next((message["status"] for message in replies if "status" in message), None), body


def _sent(path: str, body: bytes) -> Sent:
    return Sent("POST", path, body, {"content-type": "application/json"})


def _posted(path: str, body: Any) -> Sent:
    return _sent(path, as_json(body))
