"""Lets 64 clients at a server at once, honest and hostile, and checks that it stays right, polite and small.

``make soak MINUTES=10`` starts ``saccade serve`` as a process of its own. Honest clients ask what was asked before and
compare the answers. Hostile ones send half a header, endless bodies, pictures that take minutes to decode, broken JSON,
and hang up in the middle. It fails if

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
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from PIL import Image

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from hostile_pictures import gif_of_frames, jpeg_of_scans, png, ppm_of_comments, tiff_of_frames

MODELS = ("soft-mref", "hattnet-ctx-mref")
HONEST, HOSTILE = 40, 24
GROWTH = 0.02
"""Of memory at rest."""
REST = 12.0
"""Seconds without load before memory is read: the deadline of a picture, and time to give memory back."""
HEAD = b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
JSON = (b"[" * 9000, b'{"a":' * 9000, b"\xff\xfe", b'{"model": 7}', b'{"seed": 1e999}', b"null", b'"\\ud800"')

Request = tuple[str, str, bytes, str]


class Server:
    """The process, and what came back from it."""

    def __init__(self, stderr: Path) -> None:
        command = [sys.executable, "-m", "saccade", "serve", *MODELS, "--port", "0", "--device", "cpu", "--quiet"]
        with stderr.open("w") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        address = self.process.stdout.readline().strip() if self.process.stdout else ""
        if not address:
            raise SystemExit(f"the server did not start: {stderr.read_text()}")
        self.port = int(address.rstrip("/").rsplit(":", 1)[1])
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

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

    def send_raw(self, *pieces: bytes, wait: float = 20.0) -> None:
        """Send bytes, and wait for what comes back."""
        reply = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection, suppress(OSError):
            for piece in pieces:
                connection.sendall(piece)
            connection.settimeout(max(wait, 0.01))
            while part := connection.recv(65536):
                reply += part
        if reply.startswith(b"HTTP/1.1 "):
            self.judge(int(reply[9:12]), reply, "raw bytes")

    def judge(self, status: int, data: bytes, asked: str) -> None:
        """Count a status; one of the 500s is a fault, unless it says that it is meant."""
        is_refusal = status == 503 and any(code in data for code in (b'"busy"', b'"too_slow"'))
        self.counts[f"{status} (deliberate)" if is_refusal else str(status)] += 1
        if status >= 500 and not is_refusal:
            self.faults.append(f"{asked}: {status} {data[:200]!r}")

    def at_rest(self) -> int:
        """Bytes in memory of the server itself after a while without load."""
        time.sleep(REST)
        size = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        print(f"at rest: {size / 1e6:.1f} MB, {len(list(Path(f'/proc/{self.process.pid}/fd').iterdir()))} open files")
        return size


def question(seed: int, model: str = MODELS[0], ask: str = "3") -> Request:
    """A question about a scene."""
    asked = {"model": model, "scene": {"seed": seed}, "question": ask}
    return "POST", "/api/ask", json.dumps(asked).encode(), "application/json"


def upload(data: bytes) -> Request:
    """A form with a picture."""
    head = b'--soak\r\nContent-Disposition: form-data; name="picture"; filename="a.png"\r\n\r\n'
    return "POST", "/api/encode", head + data + b"\r\n--soak--\r\n", "multipart/form-data; boundary=soak"


def honest_requests(rng: random.Random) -> list[Request]:
    """Questions about scenes, uploads, and the calls around them."""
    made: list[Request] = [("GET", path, b"", "") for path in ("/api/models", "/", "/api/scene")]
    made += [question(number, MODELS[number % 2], str(number % 10)) for number in range(60)]
    for number, kind in enumerate(("PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "PPM")):
        noise = Image.frombytes("RGB", (300 + 200 * number, 300), rng.randbytes(3 * 300 * (300 + 200 * number)))
        buffer = io.BytesIO()
        noise.save(buffer, kind)
        made.append(upload(buffer.getvalue()))
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


def ask_again(server: Server, known: dict[Request, Any], rng: random.Random) -> None:
    """Ask what was asked before, and now and then something new, which fills the caches."""
    if rng.random() < 0.2:
        server.send(*question(rng.randrange(1 << 30)))
        return
    wanted = rng.choice(list(known))
    status, data = server.send(*wanted)
    if status == 200 and comparable(data) == known[wanted]:
        server.counts["answers equal to those before"] += 1
    elif status not in (429, 503):
        server.faults.append(f"{wanted[1]} {wanted[2][:80]!r}: another answer than before: {status} {data[:200]!r}")


def do_harm(server: Server, bombs: Sequence[bytes], rng: random.Random) -> None:
    """One bad thing."""
    damaged = bytearray(bombs[-1])
    for _ in range(5):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    _, _, body, _ = question(rng.randrange(1 << 30))
    begun = HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode()
    block = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    acts: dict[str, Callable[[], object]] = {
        "bomb": lambda: server.send(*upload(rng.choice(bombs))),
        "damaged picture": lambda: server.send(*upload(bytes(damaged))),
        "half a header": lambda: server.send_raw(HEAD),
        "a body that never comes": lambda: server.send_raw(HEAD + b"Content-Length: 1073741824\r\n\r\n"),
        "endless body": lambda: server.send_raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[block] * 9),
        "wrong JSON": lambda: server.send("POST", rng.choice(["/api/ask", "/api/scene"]), rng.choice(JSON)),
        "noise": lambda: server.send_raw(rng.randbytes(200) + b"\r\n\r\n"),
        "hang up": lambda: server.send_raw(begun + body[: rng.randrange(1, len(body) + 1)], wait=0),
        "no reader": lambda: server.send_raw(b"GET /viewer.html HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40, wait=0),
    }
    name = rng.choice(list(acts))
    server.counts[f"hostile: {name}"] += 1
    acts[name]()


def load(server: Server, known: dict[Request, Any], bombs: Sequence[bytes], seconds: float) -> None:
    """All clients at once, for ``seconds``."""
    end = time.monotonic() + seconds

    def run(number: int) -> None:
        rng = random.Random(number)
        while time.monotonic() < end and server.process.poll() is None:
            try:
                ask_again(server, known, rng) if number < HONEST else do_harm(server, bombs, rng)
            except (OSError, http.client.HTTPException) as error:
                server.counts[f"connection lost ({type(error).__name__})"] += 1

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(HONEST + HOSTILE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 180)
        if thread.is_alive():
            server.faults.append("a client still waits for its answer")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    minutes = parser.parse_args().minutes
    bombs = [jpeg_of_scans(4000, 400), ppm_of_comments(1_600_000), tiff_of_frames(25_000), gif_of_frames(2000)]
    bombs += [png(8000, 8000), png(5600, 5600), png(300, 200)]
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder, "stderr"))
        try:
            known = {asked: comparable(server.send(*asked)[1]) for asked in honest_requests(random.Random(0))}
            for seed in range(1500):  # as many answers as the server keeps, and more
                server.send(*question((1 << 20) + seed))
            load(server, known, bombs, 12 * minutes)
            before = server.at_rest()
            load(server, known, bombs, 48 * minutes)
            after = server.at_rest()
            server.faults += [
                f"{asked[1]} after the load: another answer than before"
                for asked, answer in known.items()
                if comparable(server.send(*asked)[1]) != answer
            ]
            if server.process.poll() is not None or Path(folder, "stderr").read_text():
                server.faults.append(f"the server ended, or wrote {Path(folder, 'stderr').read_text()[:2000]}")
            if after > before * (1 + GROWTH):
                server.faults.append(f"memory grew by {after / before - 1:+.1%}, at most {GROWTH:.0%}")
        finally:
            server.process.terminate()
            server.process.wait(60)
    print("\n".join(f"{count:>8,}  {name}" for name, count in sorted(server.counts.items())))
    print("\n".join(f"FAULT {fault}" for fault in server.faults[:20]))
    print(f"{len(server.faults)} faults")
    return 1 if server.faults else 0


if __name__ == "__main__":
    sys.exit(main())
