"""Work is bounded: decoding in processes, memory, queues; and who hangs up leaves nothing behind."""

import asyncio
import base64
import contextlib
import io
import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from live_server import LiveServer, png, serving, until
from PIL import Image

import hostile_pictures
from hostile_pictures import jpeg_of_scans, ppm_of_comments, tiff_of_frames
from saccade.errors import DataError
from saccade.web import decode
from saccade.web.decode import Sandbox, memory_for
from saccade.web.guard import Limits
from saccade.web.models import LruStore, ServedModel, Worker
from saccade.web.schemas import ApiError

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
