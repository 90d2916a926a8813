"""What a server keeps is bounded, and its queues have a length and a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("fastapi")

from hypothesis import given
from hypothesis import strategies as st

from saccade.web.models import LruStore, Worker
from saccade.web.schemas import ApiError


def run_apart(coroutine):
    """Run it on a thread of its own: in this one a browser of another test may have left its loop running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def test_the_least_recently_used_makes_room() -> None:
    store: LruStore[str] = LruStore("thing", budget=100, places=2)
    store.put("a", "A", 1)
    store.put("b", "B", 1)
    assert store.get("a") == "A"  # now b is the older
    store.put("c", "C", 1)
    assert (store.get("a"), store.get("b"), store.get("c")) == ("A", None, "C")


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 12)), max_size=40))
def test_the_shelf_is_never_over_its_budget(puts: list[tuple[str, int]]) -> None:
    store: LruStore[int] = LruStore("thing", budget=20, places=4)
    for name, size in puts:
        store.put(name, size, size)
        held = {each: store.get(each) for each in "abcdef"}
        sizes = [size for size in held.values() if size is not None]
        assert held[name] == size
        assert len(sizes) <= 4
        assert sum(sizes) <= 20


def test_work_is_done_one_after_the_other() -> None:
    worker, at_once, most, second = Worker("tiny", 8, 60.0), 0, 0, threading.Event()

    def work(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        if number:
            second.set()
        else:
            second.wait(0.2)  # in vain: nobody begins while this one is at work
        at_once -= 1
        return number

    async def all_of_them() -> list[int]:
        return await asyncio.gather(*(worker.run(lambda n=n: work(n)) for n in range(6)))

    assert run_apart(all_of_them()) == list(range(6))
    assert most == 1
    worker.close()


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
