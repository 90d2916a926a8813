"""Batches that are scored side by side on a CPU, in threads of one core each, and handed on in their order.

A forward pass of a few pictures is too little for several cores: they wait for each other after every layer. Whole
batches need nothing of each other. Each is computed as it would be alone, so the results do not depend on the number
of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import torch

MAX_THREADS = 4
"""Each thread holds a batch with all its maps, some 300 MB of 250 questions."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def thread_count(device: torch.device) -> int:
    """How many batches are scored at once: on a CPU as many as torch has threads, four at most; else one."""
    return min(MAX_THREADS, torch.get_num_threads()) if device.type == "cpu" else 1


def thread_map(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """``work(item)`` of each item, in their order; a few are under way at a time.

    Args:
        work: called in several threads at once, with autograd as it is by default.
        items: taken one by one, when a thread is free.
        threads: 1 computes in this thread, with all the cores that torch has.
    """
    if threads <= 1:
        yield from map(work, items)
        return
    cores = torch.get_num_threads()
    remaining, under_way = iter(items), deque[Future[Result]]()
    pool = ThreadPoolExecutor(threads, "scoring", lambda: torch.set_num_threads(max(1, cores // threads)))
    try:
        under_way.extend(pool.submit(work, item) for item in islice(remaining, threads + 1))
        while under_way:
            result = under_way.popleft().result()
            under_way.extend(pool.submit(work, item) for item in islice(remaining, 1))
            yield result
    finally:
        pool.shutdown(cancel_futures=True)  # waits for the batches under way, and begins no other
        torch.set_num_threads(cores)  # a thread that set its own number changed that of threads to come
