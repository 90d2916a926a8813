"""Many clients at once: everyone gets an answer, the answers are right, and memory stays where it was."""

from __future__ import annotations

import gc
import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from live_server import live_server

from saccade.web.serve import Limits
from saccade.web.service import Service


def scene(number: int) -> dict:
    digits = [{"digit": number % 4, "x": number % 70, "y": number * 7 % 70, "size": 30, "colour": "red"}]
    return {"digits": digits, "seed": number}


def resident() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_stays_flat(tiny_folder: Path) -> None:
    limits = Limits(kept_bytes=2 << 20, records_bytes=2 << 20, encodings_bytes=2 << 20)
    with live_server(Service([tiny_folder / "digits"], "cpu", limits)) as small:

        def ask(number: int) -> int:
            return small.post("/api/ask", {"model": "digits", "scene": scene(number), "question": 1}).status

        with ThreadPoolExecutor(8) as clients:
            assert set(clients.map(ask, range(150))) == {200}
            gc.collect()
            before = resident()
            assert set(clients.map(ask, range(150, 450))) == {200}
            gc.collect()
    assert resident() - before < 12 << 20


def test_a_crowd_is_told_to_wait_and_nobody_gets_a_5xx(tiny_folder: Path) -> None:
    service = Service([tiny_folder / "digits"], "cpu", Limits(waiting=2, answer_seconds=120))
    gate = threading.Event()
    with live_server(service) as busy, ThreadPoolExecutor(8) as clients:
        assert busy.post("/api/ask", {"model": "digits", "scene": scene(0), "question": 1}).status == 200
        served = service.models["digits"]
        original = served.predictor
        served.predictor = lambda: (gate.wait(60), original())[1]  # type: ignore[method-assign]
        replies = [
            clients.submit(busy.post, "/api/ask", {"model": "digits", "scene": scene(n), "question": 1})
            for n in range(8)
        ]
        list(itertools.islice(as_completed(replies, timeout=60), 6))
        gate.set()
        found = [reply.result() for reply in replies]
    assert sorted(reply.status for reply in found) == [200] * 2 + [429] * 6
    refused = next(reply for reply in found if reply.status == 429)
    assert refused.headers["retry-after"] == "1"
