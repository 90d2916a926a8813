"""Lets 64 clients at a server at once, honest and hostile, and checks that it stays right, polite and small.

``make soak MINUTES=10`` starts ``saccade serve`` as a process of its own. Honest clients ask what was asked before and
compare the answers. Hostile ones send half a header, endless bodies, pictures that take minutes to decode, broken JSON,
web sockets, and hang up in the middle. It fails if

- an answer differs from the one before the load,
- a status is 5xx; a 503 that says "busy" or "too_slow" is a deliberate refusal and counted apart,
- the memory of the server at rest grows by more than 2 % after warming up,
- the server ends, or writes to stderr.
"""

from __future__ import annotations

import argparse
import http.client
import io
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from hostile_pictures import gif_of_frames, jpeg_of_scans, png, ppm_of_comments, tiff_of_frames  # noqa: E402

MODELS = ("soft-mref", "hattnet-ctx-mref")
CLIENTS = 64
HONEST = 40
GROWTH = 0.02
"""Of memory at rest."""
REST = 12.0
"""Seconds without load before memory is read: the deadline of a picture, and time to give memory back."""
BOUNDARY = "soak"


@dataclass
class Server:
    """The process, and what came back from it."""

    process: subprocess.Popen[str]
    port: int
    said: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        """One more of ``what``."""
        with self.lock:
            self.said[what] += 1

    def fault(self, what: str) -> None:
        """Something that must not happen."""
        with self.lock:
            self.faults.append(what)

    def send(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> tuple[int, bytes]:
        """Status and body of one request; every status is counted."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body or None, {"Content-Type": kind} if body else {})
            reply = connection.getresponse()
            status, data = reply.status, reply.read()
        finally:
            connection.close()
        self.judge(status, data, f"{method} {path}")
        return status, data

    def judge(self, status: int, data: bytes, asked: str) -> None:
        """Count a status; one of the 500s is a fault, unless it says that it is meant."""
        is_refusal = status == 503 and any(code in data for code in (b'"busy"', b'"too_slow"'))
        self.count(f"{status} (deliberate)" if is_refusal else str(status))
        if status >= 500 and not is_refusal:
            self.fault(f"{asked}: {status} {data[:200]!r}")

    def memory(self) -> tuple[int, int]:
        """Bytes in memory of the server itself, and how many processes it has."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        children = [each for task in tasks for each in (task / "children").read_text().split()]
        return pages * os.sysconf("SC_PAGE_SIZE"), len(set(children))

    def open_files(self) -> int:
        """Files and connections that the server holds."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


@contextmanager
def server(stderr: Path) -> Iterator[Server]:
    command = [sys.executable, "-m", "saccade", "serve", *MODELS, "--port", "0", "--device", "cpu", "--quiet"]
    with stderr.open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        address = process.stdout.readline().strip() if process.stdout else ""
        if not address:
            raise SystemExit(f"the server did not start: {stderr.read_text()}")
        yield Server(process, int(address.rstrip("/").rsplit(":", 1)[1]))
    finally:
        process.terminate()
        process.wait(60)


Request = tuple[str, str, bytes, str]


def upload(data: bytes) -> tuple[bytes, str]:
    """The body and the type of a form with a picture."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="picture"; filename="a.png"\r\n\r\n'.encode()
    return head + data + f"\r\n--{BOUNDARY}--\r\n".encode(), f"multipart/form-data; boundary={BOUNDARY}"


def honest_requests(rng: random.Random) -> list[Request]:
    """Questions about scenes, uploads, and the calls around them."""
    made: list[Request] = [("GET", "/api/models", b"", ""), ("GET", "/", b"", ""), ("GET", "/api/scene", b"", "")]
    for number in range(60):
        scene = {"background": rng.choice(["black", "distractors", "clutter"]), "seed": number}
        asked = {"model": MODELS[number % 2], "scene": scene, "question": str(number % 10)}
        made.append(("POST", "/api/ask", json.dumps(asked).encode(), "application/json"))
    for number in range(6):
        asked = {"model": MODELS[number % 2], "scene": {"seed": 100 + number}}
        made.append(("POST", "/api/ask_all", json.dumps(asked).encode(), "application/json"))
        made.append(("POST", "/api/scene", json.dumps({"seed": number}).encode(), "application/json"))
    for number, kind in enumerate(("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "PPM")):
        noise = Image.frombytes("RGB", (300 + 200 * number, 300), rng.randbytes(3 * 300 * (300 + 200 * number)))
        buffer = io.BytesIO()
        noise.save(buffer, kind)
        made.append(("POST", "/api/encode", *upload(buffer.getvalue())))
    return made


def comparable(data: bytes) -> Any:
    """A body without the names that differ from answer to answer."""
    try:
        found = json.loads(data)
    except ValueError:
        return data
    if isinstance(found, dict):
        found.pop("record", None)
    return found


class Honest:
    """Asks again what was asked before, and now and then something new, which fills the caches."""

    def __init__(self, to: Server, known: dict[Request, Any], number: int) -> None:
        self._to, self._known, self._rng = to, known, random.Random(number)

    def __call__(self) -> None:
        """One request."""
        if self._rng.random() < 0.2:
            seed = self._rng.randrange(1 << 30)
            asked = {"model": self._rng.choice(MODELS), "scene": {"seed": seed}, "question": "3"}
            self._to.send("POST", "/api/ask", json.dumps(asked).encode())
            return
        wanted = self._rng.choice(list(self._known))
        status, data = self._to.send(*wanted)
        if status in (429, 503):
            return
        if status != 200:
            self._to.fault(f"{wanted[0]} {wanted[1]}: {status} {data[:200]!r}")
        elif comparable(data) != self._known[wanted]:
            self._to.fault(f"{wanted[0]} {wanted[1]} {wanted[2][:80]!r}: another answer than before: {data[:200]!r}")
        else:
            self._to.count("answers equal to those before")


class Hostile:
    """Does one bad thing after the other."""

    def __init__(self, to: Server, bombs: list[bytes], number: int) -> None:
        self._to, self._bombs, self._rng = to, bombs, random.Random(1000 + number)
        acts = [self.half_header, self.drip, self.huge_body, self.endless_body, self.wrong_json, self.upgrade]
        acts += [self.not_http, self.hang_up, self.no_reader, self.damaged]
        self._acts = [self.bomb, self.bomb_and_gone] if number < 6 else acts

    def __call__(self) -> None:
        """One bad thing."""
        act: Callable[[], None] = self._rng.choice(self._acts)
        with suppress(OSError, http.client.HTTPException):
            act()
        self._to.count(f"hostile: {act.__name__}")

    def bomb(self) -> None:
        """A picture that takes long or much."""
        self._to.send("POST", "/api/encode", *upload(self._rng.choice(self._bombs)))

    def bomb_and_gone(self) -> None:
        """The same, and away before it is done."""
        body, kind = upload(self._rng.choice(self._bombs))
        self._raw(_head("/api/encode", len(body), kind) + body, wait=self._rng.random())

    def half_header(self) -> None:
        """A header that never ends."""
        self._raw(b"GET /api/models HTTP/1.1\r\nHost: localhost\r\nX-Half: ", wait=20, judged=True)

    def drip(self) -> None:
        """A header, a byte at a time."""
        with self._connected(3) as connection:
            for letter in b"GET /api/models HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 60:
                connection.sendall(bytes([letter]))
                time.sleep(0.1)

    def huge_body(self) -> None:
        """A body that is announced and never comes."""
        self._raw(_head("/api/encode", 1 << 30), wait=20, judged=True)

    def endless_body(self) -> None:
        """A body that does not say how long it is."""
        head = b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        self._raw(head + b"10000\r\n" + b"x" * 65536 + b"\r\n", *[b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 8, wait=20)

    def wrong_json(self) -> None:
        """What is no JSON, or not what was asked for."""
        bodies = (b"[" * 9000, b'{"a":' * 9000, b"\xff\xfe", b'{"model": 7}', b'{"seed": 1e999}', b"null", b'"\\ud800"')
        path = self._rng.choice(["/api/ask", "/api/ask_all", "/api/scene", "/api/encode"])
        self._to.send("POST", path, self._rng.choice(bodies))

    def upgrade(self) -> None:
        """A web socket."""
        head = b"GET /api/models HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        self._raw(
            head + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", judged=True
        )

    def not_http(self) -> None:
        """Noise."""
        self._raw(self._rng.randbytes(200) + b"\r\n\r\n", judged=True)

    def hang_up(self) -> None:
        """A question whose answer, or whose second half, nobody waits for."""
        asked = {"model": MODELS[1], "scene": {"seed": self._rng.randrange(1 << 30)}, "question": "3"}
        body = json.dumps(asked).encode()
        cut = self._rng.randrange(1, len(body)) if self._rng.random() < 0.5 else len(body)
        self._raw(_head("/api/ask", len(body)) + body[:cut], wait=0)

    def no_reader(self) -> None:
        """Forty pages that nobody reads."""
        with self._connected(3) as connection:
            connection.sendall(b"GET /viewer.html HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40)
            time.sleep(3)

    def damaged(self) -> None:
        """A picture with a few wrong bytes."""
        data = bytearray(self._bombs[-1])
        for _ in range(5):
            data[self._rng.randrange(len(data))] = self._rng.randrange(256)
        self._to.send("POST", "/api/encode", *upload(bytes(data)))

    def _connected(self, seconds: float) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self._to.port), timeout=max(seconds, 0.01))

    def _raw(self, *pieces: bytes, wait: float = 20.0, judged: bool = False) -> None:
        """Send bytes; wait for what comes back; its status counts."""
        with self._connected(20) as connection:
            reply = b""
            with suppress(OSError):
                for piece in pieces:
                    connection.sendall(piece)
                connection.settimeout(max(wait, 0.01))
                while part := connection.recv(65536):
                    reply += part
        if reply.startswith(b"HTTP/1.1 "):
            self._to.judge(int(reply[9:12]), reply, "raw bytes")
        elif judged and not reply:
            self._to.count("hung up without an answer")


def _head(path: str, length: int, kind: str = "application/json") -> bytes:
    lines = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n"
    return lines.encode()


def load(clients: list[Callable[[], None]], seconds: float, to: Server) -> None:
    """All ``clients`` at once, for ``seconds``."""
    end = time.monotonic() + seconds

    def run(client: Callable[[], None]) -> None:
        while time.monotonic() < end and to.process.poll() is None:
            try:
                client()
            except (OSError, http.client.HTTPException) as error:
                to.count(f"connection lost ({type(error).__name__})")

    threads = [threading.Thread(target=run, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 180)
        if thread.is_alive():
            to.fault("a client still waits for its answer")


def fill_caches(to: Server) -> None:
    """As many scenes and answers as the server keeps, and more: from then on it throws one away for each new one."""

    def ask(seed: int) -> None:
        scene = {"seed": (1 << 20) + seed}
        if to.send("POST", "/api/scene", json.dumps(scene).encode())[0] != 200:
            to.fault("a scene was not rendered")
        if seed % 2:
            asked = {"model": MODELS[seed // 2 % 2], "scene": scene, "question": "3"}
            to.send("POST", "/api/ask", json.dumps(asked).encode())

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(ask, range(1500)))


def at_rest(to: Server) -> int:
    time.sleep(REST)
    bytes_used, processes = to.memory()
    print(f"at rest: {bytes_used / 1e6:.1f} MB, {processes} processes that decode, {to.open_files()} open files")
    return bytes_used


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--warm-up", type=float, default=None, help="minutes; by default a fifth of the time")
    options = parser.parse_args()
    warm_up = options.minutes / 5 if options.warm_up is None else options.warm_up
    bombs = [jpeg_of_scans(4000, 400), ppm_of_comments(1_600_000), tiff_of_frames(25_000), gif_of_frames(2000)]
    bombs += [png(8000, 8000), png(5600, 5600), png(300, 200)]
    with tempfile.TemporaryDirectory() as folder, server(Path(folder, "stderr")) as to:
        requests = honest_requests(random.Random(0))
        known = {asked: comparable(to.send(*asked)[1]) for asked in requests}
        print(f"{len(known)} requests answered; {CLIENTS} clients, {HONEST} of them honest")
        clients: list[Callable[[], None]] = [Honest(to, known, number) for number in range(HONEST)]
        clients += [Hostile(to, bombs, number) for number in range(CLIENTS - HONEST)]
        fill_caches(to)
        load(clients, 60 * warm_up, to)
        print(f"warmed up for {warm_up:g} min")
        before = at_rest(to)
        load(clients, 60 * (options.minutes - warm_up), to)
        after = at_rest(to)
        if to.process.poll() is not None:
            to.fault(f"the server ended with {to.process.returncode}")
        if wrote := Path(folder, "stderr").read_text():
            to.fault(f"the server wrote to stderr: {wrote[:2000]}")
        growth = after / before - 1
        if growth > GROWTH:
            to.fault(f"memory grew by {growth:+.1%}, at most {GROWTH:.0%}")
        for asked in requests:  # once more, alone
            if comparable(to.send(*asked)[1]) != known[asked]:
                to.fault(f"{asked[0]} {asked[1]} after the load: another answer than before")
    for what, many in sorted(to.said.items()):
        print(f"{many:>8,}  {what}")
    print(f"memory {before / 1e6:.1f} MB → {after / 1e6:.1f} MB ({growth:+.2%})")
    for fault in to.faults[:20]:
        print(f"FAULT {fault}")
    print(f"{len(to.faults)} faults")
    return 1 if to.faults else 0


if __name__ == "__main__":
    sys.exit(main())
