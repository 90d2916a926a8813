"""The server under load: a dragged digit, ten questions to one picture, then 64 clients at once.

python benchmarks/bench_serve.py [--clients 64] [--seconds 60]

Clients and server share the machine. At the end: requests a second, the worst status, and the server's memory after a
warm-up and in the end; the exit code is 1 if any request got a 5xx or memory grew by more than a tenth.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

MODELS = ("hattnet-ctx-mref", "hattnet-mref", "soft-mref", "hard-mdist")
TARGET = {"soft-mref": 1.5, "hard-mdist": 1.5, "hattnet-mref": 5.0, "hattnet-ctx-mref": 5.0}
COLOURS = ("green", "yellow", "white", "red", "blue")


def post(connection: http.client.HTTPConnection, path: str, value: object) -> tuple[int, bytes]:
    """Status and body of one request on a connection that is kept open."""
    connection.request("POST", path, json.dumps(value), {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, response.read()


def connected(port: int) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", port, timeout=60)


def scene(number: int) -> dict:
    """Seven digits, of which the first is somewhere else in every scene."""
    digits = [{"digit": 7, "x": number % 70, "y": number // 70 % 70, "size": 30, "colour": "red"}]
    digits += [
        {"digit": digit, "x": 24 * (digit % 3), "y": 33 * (digit // 3), "size": 24, "colour": COLOURS[digit % 5]}
        for digit in range(6)
    ]
    return {"digits": digits}


def milliseconds(work, repeats: int) -> float:
    """Median."""
    times = []
    for number in range(repeats):
        start = time.perf_counter()
        work(number)
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def dragged(port: int, repeats: int) -> float:
    """A digit is moved: the scene is drawn, encoded, asked about, and its maps come back."""
    client = connected(port)

    def move(number: int) -> None:
        status, view = post(client, "/api/ask", {"model": MODELS[0], "scene": scene(number), "question": 7})
        assert status == 200, view

    milliseconds(move, 5)
    return milliseconds(lambda number: move(1000 + number), repeats)


def ten_to_one(port: int, model: str, repeats: int) -> tuple[float, float]:
    """Milliseconds to encode a new picture and ask it once, and to encode one and ask it everything."""
    client, numbers = connected(port), iter(range(100_000, 900_000, 7))

    def asked(path: str, more: dict) -> float:
        drawn = post(client, "/api/scene", scene(next(numbers)))[1]  # outside the clock
        encoding = json.loads(drawn)["encoding"]
        return milliseconds(lambda _: post(client, path, {"model": model, "encoding": encoding, **more}), 1)

    one = [asked("/api/ask", {"question": 7}) for _ in range(repeats)]
    ten = [asked("/api/ask_all", {}) for _ in range(repeats)]
    return statistics.median(one), statistics.median(ten)


def resident(pid: int) -> float:
    """MB of a process in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def crowd(port: int, pid: int, clients: int, seconds: float) -> tuple[Counter, float, float, list[float]]:
    """Statuses, memory after a fifth of the time and at the end, and every latency in ms."""
    statuses: Counter = Counter()
    latencies: list[float] = []
    end = time.monotonic() + seconds

    def one_client(number: int) -> None:
        client, turn = connected(port), 0
        while time.monotonic() < end:
            turn += 1
            asked = {"model": MODELS[(number + turn) % len(MODELS)], "question": turn % 10}
            start = time.perf_counter()
            status, _ = post(client, "/api/ask", {**asked, "scene": scene(number * 10_000 + turn)})
            latencies.append(1e3 * (time.perf_counter() - start))
            statuses[status] += 1

    threads = [threading.Thread(target=one_client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 5)
    before = resident(pid)
    for thread in threads:
        thread.join()
    return statuses, before, resident(pid), latencies


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60.0)
    wanted = parser.parse_args()
    command = [sys.executable, "-m", "saccade", "serve", *MODELS, "--port", "0", "--device", "cpu", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            port = int(server.stdout.readline().strip().rstrip("/").rpartition(":")[2])
            print(f"a dragged digit, {MODELS[0]}   {dragged(port, 60):8.1f} ms   (at most 60)")
            for model in MODELS:
                one, ten = ten_to_one(port, model, 15)
                note = "" if ten / one <= TARGET[model] else "   above its target"
                print(
                    f"ten questions, {model:18} {ten:8.1f} ms = {ten / one:.2f} × one (at most {TARGET[model]}){note}"
                )
            statuses, before, after, latencies = crowd(port, server.pid, wanted.clients, wanted.seconds)
        finally:
            server.terminate()
            server.wait(20)
    latencies.sort()
    print(
        f"{wanted.clients} clients for {wanted.seconds:g} s: {sum(statuses.values())} requests, {dict(statuses)}, "
        f"{sum(statuses.values()) / wanted.seconds:.0f}/s, median {latencies[len(latencies) // 2]:.0f} ms, "
        f"95 % {latencies[int(0.95 * len(latencies))]:.0f} ms, 99 % {latencies[int(0.99 * len(latencies))]:.0f} ms, "
        f"memory {before:.0f} → {after:.0f} MB"
    )
    return int(max(statuses) >= 500 or after > 1.1 * before)


if __name__ == "__main__":
    sys.exit(main())
